//! How far a story is, in any spelling, and what a state file says about it.
//!
//! Invariant: a word that is not in the table is no status; it is never guessed.

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    Draft,
    Ready,
    InProgress,
    InReview,
    Done,
    Blocked,
}

impl Status {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Draft => "Draft",
            Self::Ready => "Ready",
            Self::InProgress => "InProgress",
            Self::InReview => "InReview",
            Self::Done => "Done",
            Self::Blocked => "Blocked",
        }
    }
}

/// Letters and digits of one or more words, without accents and in lower case. The longest that a
/// text begins with counts, so that `Ready for Review` is not `Ready`.
#[rustfmt::skip]
const SPELLINGS: [(&str, Status); 51] = [
    ("draft",               Status::Draft),
    ("rascunho",            Status::Draft),
    ("backlog",             Status::Draft),
    ("planned",             Status::Draft),
    ("todo",                Status::Draft),
    ("notstarted",          Status::Draft),
    ("pending",             Status::Draft),
    ("ready",               Status::Ready),
    ("readyfordev",         Status::Ready),
    ("readyfordevelopment", Status::Ready),
    ("readyforimplementation", Status::Ready),
    ("readytostart",        Status::Ready),
    ("approved",            Status::Ready),
    ("validated",           Status::Ready),
    ("pronto",              Status::Ready),
    ("pronta",              Status::Ready),
    ("aprovado",            Status::Ready),
    ("aprovada",            Status::Ready),
    ("inprogress",          Status::InProgress),
    ("indevelopment",       Status::InProgress),
    ("started",             Status::InProgress),
    ("active",              Status::InProgress),
    ("wip",                 Status::InProgress),
    ("emandamento",         Status::InProgress),
    ("emprogresso",         Status::InProgress),
    ("emdesenvolvimento",   Status::InProgress),
    ("inreview",            Status::InReview),
    ("review",              Status::InReview),
    ("readyforreview",      Status::InReview),
    ("readyforqa",          Status::InReview),
    ("underreview",         Status::InReview),
    ("gatereview",          Status::InReview),
    ("inqa",                Status::InReview),
    ("qareview",            Status::InReview),
    ("qa",                  Status::InReview),
    ("emrevisao",           Status::InReview),
    ("done",                Status::Done),
    ("complete",            Status::Done),
    ("completed",           Status::Done),
    ("finished",            Status::Done),
    ("closed",              Status::Done),
    ("merged",              Status::Done),
    ("concluida",           Status::Done),
    ("concluido",           Status::Done),
    ("completa",            Status::Done),
    ("feito",               Status::Done),
    ("blocked",             Status::Blocked),
    ("onhold",              Status::Blocked),
    ("bloqueada",           Status::Blocked),
    ("bloqueado",           Status::Blocked),
    ("failed",              Status::Blocked),
];

/// No spelling has more words.
const WORDS_MAX: usize = 4;

/// `None` for a text that begins with no status.
pub fn status(text: &str) -> Option<Status> {
    let words = words(text);
    let longest = WORDS_MAX.min(words.len());
    (1..=longest).rev().find_map(|count| {
        let joined = words[..count].concat();
        SPELLINGS.iter().find(|(known, _)| *known == joined).map(|(_, status)| *status)
    })
}

/// The words of a text in lower case and without accents; signs and pictures are none.
pub(crate) fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut after_small = false;
    for c in text.chars() {
        let plain = plain(c);
        let begins = c.is_ascii_uppercase() && after_small;
        if plain.is_none() || begins {
            words.push(String::new());
        }
        if let (Some(plain), Some(last)) = (plain, words.last_mut()) {
            last.push(plain);
        }
        after_small = c.is_lowercase();
    }
    words.retain(|word| !word.is_empty());
    words
}

fn plain(c: char) -> Option<char> {
    let folded = match c {
        'á' | 'à' | 'â' | 'ã' | 'ä' | 'Á' | 'À' | 'Â' | 'Ã' | 'Ä' => 'a',
        'é' | 'ê' | 'è' | 'É' | 'Ê' => 'e',
        'í' | 'Í' => 'i',
        'ó' | 'ô' | 'õ' | 'ö' | 'Ó' | 'Ô' | 'Õ' => 'o',
        'ú' | 'ü' | 'Ú' | 'Ü' => 'u',
        'ç' | 'Ç' => 'c',
        other => other,
    };
    folded.is_ascii_alphanumeric().then(|| folded.to_ascii_lowercase())
}

/// What a state file says about a story.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Says {
    Pending,
    InProgress,
    InReview,
    Completed,
    Failed,
    Blocked,
    Skipped,
}

impl Says {
    pub fn of(text: &str) -> Option<Self> {
        match words(text).concat().as_str() {
            "pending" | "ready" | "draft" | "notstarted" | "todo" => Some(Self::Pending),
            "inprogress" | "active" | "running" | "started" => Some(Self::InProgress),
            "inreview" | "review" | "gatereview" => Some(Self::InReview),
            "completed" | "complete" | "done" | "merged" => Some(Self::Completed),
            "failed" | "error" => Some(Self::Failed),
            "blocked" => Some(Self::Blocked),
            "skipped" => Some(Self::Skipped),
            _ => None,
        }
    }

    /// Nothing is left to be done.
    pub const fn is_over(self) -> bool {
        match self {
            Self::Completed | Self::Skipped => true,
            Self::Pending | Self::InProgress | Self::InReview | Self::Failed | Self::Blocked => {
                false
            }
        }
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "InProgress",
            Self::InReview => "InReview",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Blocked => "blocked",
            Self::Skipped => "skipped",
        }
    }
}

/// What it means when the state and the story itself speak of the same thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    Consistent,
    /// Another program finished the story: a conflict.
    CompletedOutside,
    /// The story was set back: the state is stale.
    Reset,
    /// The story was validated in the pause.
    ValidatedMeanwhile,
    /// The story is further than the state, and not done.
    StoryAhead,
    /// The state says that it is over, and the story does not.
    StoryBehind,
}

/// The discrepancy table.
#[rustfmt::skip]
pub const fn reading(says: Says, story: Status) -> Reading {
    use Reading::{CompletedOutside, Consistent, Reset, StoryAhead, StoryBehind, ValidatedMeanwhile};
    match (says, story) {
        (Says::Pending,    Status::Ready)                            => ValidatedMeanwhile,
        (Says::Skipped, Status::Draft | Status::Ready | Status::InProgress | Status::InReview
            | Status::Done | Status::Blocked)
        | (Says::Completed, Status::Done)
        | (Says::Pending,   Status::Draft | Status::Blocked)
        | (Says::InProgress, Status::Ready | Status::InProgress | Status::Blocked)
        | (Says::InReview, Status::InReview | Status::InProgress | Status::Blocked)
        | (Says::Failed | Says::Blocked, Status::Draft | Status::Ready | Status::InProgress
            | Status::InReview | Status::Blocked)                    => Consistent,
        (Says::InProgress, Status::Draft)
        | (Says::InReview, Status::Draft | Status::Ready)            => Reset,
        (Says::Pending,    Status::InProgress | Status::InReview)
        | (Says::InProgress, Status::InReview)                       => StoryAhead,
        (Says::Completed,  Status::Draft | Status::Ready | Status::InProgress
            | Status::InReview | Status::Blocked)                    => StoryBehind,
        (Says::Pending | Says::InProgress | Says::InReview | Says::Failed | Says::Blocked,
            Status::Done)                                            => CompletedOutside,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_known_in_every_spelling_that_was_seen() {
        for (text, expected) in [
            ("Ready for Dev", Status::Ready),
            ("Ready for Review", Status::InReview),
            ("In Progress", Status::InProgress),
            ("InProgress", Status::InProgress),
            ("in_progress (3/5)", Status::InProgress),
            ("IN-REVIEW", Status::InReview),
            ("Done", Status::Done),
            ("✅ Done (2026-02-06)", Status::Done),
            ("📋 Ready to Start", Status::Ready),
            ("Approved", Status::Ready),
            ("Concluída", Status::Done),
            ("Em revisão", Status::InReview),
            ("Rascunho", Status::Draft),
            ("**Draft**", Status::Draft),
            ("🚫 Blocked by 3.1", Status::Blocked),
        ] {
            assert_eq!(status(text), Some(expected), "{text}");
        }
        for unknown in ["", "perhaps", "✅", "undone", "Superseded"] {
            assert_eq!(status(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn the_five_rows_of_the_discrepancy_table() {
        for (says, story, expected) in [
            (Says::InProgress, Status::InProgress, Reading::Consistent),
            (Says::InProgress, Status::Done, Reading::CompletedOutside),
            (Says::InProgress, Status::Draft, Reading::Reset),
            (Says::InReview, Status::Done, Reading::CompletedOutside),
            (Says::Pending, Status::Ready, Reading::ValidatedMeanwhile),
        ] {
            assert_eq!(reading(says, story), expected, "{says:?} {story:?}");
        }
    }
}
