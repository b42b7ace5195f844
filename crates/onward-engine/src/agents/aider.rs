//! Aider: plain text, and exit code 0 whatever happened. Its words are all there is.
//!
//! A message stands between what aider tells of itself, which ends with the line `Repo-map`, and
//! the line with the tokens of the message.

use onward_core::{
    evidence::Usd,
    said::{Closed, Said, Spent},
    workflow::permissions::Permissions,
};

use super::{
    Adapter, Card, Cost, Entry, Order, Stream,
    events::{options, words},
    notice,
};

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct Aider;

const CARD: Card = Card {
    install: Some("python3 -m pip install aider-chat"),
    names_tools: false,
    // Where it knows the price of the model.
    cost: Cost::Usd,
    credentials: &["ANTHROPIC_API_KEY", "OPENAI_API_KEY"],
    ..Card::usual("aider", "aider")
};

impl Adapter for Aider {
    fn card(&self) -> &Card {
        &CARD
    }

    fn argv(&self, order: &Order<'_>, _: Entry<'_>) -> Vec<String> {
        let mut argv = words(&["aider", "--yes-always", "--no-pretty", "--no-check-update"]);
        argv.extend(words(&["--analytics-disable", "--no-stream", "--no-show-release-notes"]));
        argv.extend(match order.permissions {
            Permissions::ReadOnly => words(&["--dry-run", "--no-suggest-shell-commands"]),
            Permissions::Edit => words(&["--no-suggest-shell-commands"]),
            Permissions::Full => Vec::new(),
        });
        argv.extend(options(&[("--model", order.model), ("--read", order.system_file)]));
        argv.extend(["--message".to_owned(), order.argument()]);
        argv
    }

    fn read(&self, from: Stream, lines: &[u8], said: &mut Said) {
        match from {
            Stream::Out => String::from_utf8_lossy(lines).lines().for_each(|it| take(it, said)),
            Stream::Err => {}
        }
    }
}

fn take(line: &str, said: &mut Said) {
    let is_known = || notice::cause_of(None, line).is_some();
    if line.starts_with("Repo-map: ") {
        said.draft.clear();
    } else if line.starts_with("litellm.") || line.starts_with("The API provider") {
        // Its library names the error first, in words that may be broken over lines; then aider
        // explains it, and a limit without its reset.
        let explains = said.limit.is_some() && !line.starts_with("litellm.");
        if !ended_badly(said) || is_known() && !explains {
            notice::end_badly(said, CARD.provider, None, line);
        }
    } else if ended_badly(said) && is_known() {
        notice::end_badly(said, CARD.provider, None, line);
    } else if ended_badly(said) && line.starts_with("Retrying in ") {
        said.draft.clear();
    } else if line.starts_with("^C ") {
        notice::end_interrupted(said);
    } else if line.starts_with("Did not apply edit to ") && line.ends_with(" (--dry-run)") {
        said.deny("edit");
    } else if let Some(spent) = spent(line) {
        // It got an answer after all.
        said.closed = Some(Closed::Well);
        said.limit = None;
        said.spent = said.spent.plus(spent);
        let answer = std::mem::take(&mut said.draft).trim().to_owned();
        if notice::is_limit_notice(&answer) {
            notice::end_badly(said, CARD.provider, None, &answer);
        }
        said.answer = Some(answer);
    } else if let Some(usd) = cost(line).filter(|_| said.draft.is_empty()) {
        // With much to tell of its cache, it tells the price in a line of its own.
        said.spent = said.spent.plus(Spent::of_usd(usd));
    } else {
        // The words of an error go on, or a message begins after it.
        if let Some(words) = limit_words(said).filter(|it| it.len() < LIMIT_BYTES_MAX) {
            words.push(' ');
            words.push_str(line);
        }
        if said.draft.len() < MESSAGE_BYTES_MAX {
            said.draft.push_str(line);
            said.draft.push('\n');
        }
    }
}

/// More of a message is not looked at.
const MESSAGE_BYTES_MAX: usize = 1 << 20;

/// The reset stands near the beginning of what is said of a limit.
const LIMIT_BYTES_MAX: usize = 400;

/// The words that have the reset of the limit which it met last.
fn limit_words(said: &mut Said) -> Option<&mut String> {
    let is_last = ended_badly(said);
    said.limit.as_mut().filter(|_| is_last)?.words.as_mut()
}

fn ended_badly(said: &Said) -> bool {
    matches!(said.closed, Some(Closed::Badly { .. }))
}

/// `Tokens: 5.9k sent, 3k cache hit, 7 received. Cost: $0.02 message, $0.31 session.`
fn spent(line: &str) -> Option<Spent> {
    let (tokens, rest) = line.strip_prefix("Tokens: ")?.split_once(" received.")?;
    let counts = || tokens.split(", ").filter_map(|it| it.split_once(' ').or(Some((it, ""))));
    let counted = |what: &str| counts().find(|it| it.1 == what).map(|it| number(it.0));
    let (sent, received) = (counted("sent")??, counted("")??);
    let (hit, write) = (counted("cache hit").flatten(), counted("cache write").flatten());
    let (hit, write) = (hit.unwrap_or(0), write.unwrap_or(0));
    Some(Spent {
        input_tokens: sent.saturating_sub(hit).saturating_sub(write),
        output_tokens: received,
        cache_read_tokens: hit,
        cache_write_tokens: write,
        usd: cost(rest.trim_start()),
    })
}

/// `Cost: $0.02 message, $0.31 session.`
fn cost(line: &str) -> Option<Usd> {
    let (dollars, _) = line.strip_prefix("Cost: $")?.split_once(" message, ")?;
    Usd::from_dollars(dollars.parse().ok()?)
}

/// `593`, `5.9k`
fn number(text: &str) -> Option<u64> {
    let (digits, scale) = match text.strip_suffix('k') {
        Some(digits) => (digits, 1000),
        None => (text, 1),
    };
    let (whole, part) = digits.split_once('.').unwrap_or((digits, "0"));
    let tenth: u64 = part.get(..1)?.parse().ok()?;
    Some(whole.parse::<u64>().ok()?.saturating_mul(scale).saturating_add(tenth * scale / 10))
}
