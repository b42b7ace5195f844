//! Where a conference re-enters its protocol: the table, and the facts it is asked with.
//!
//! Invariant: the code is the policy. The first row that fits decides, the last one fits anything,
//! and a test walks every combination of facts.

use super::{
    converge::{self, Over, Reason},
    state::{Conference, Page},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Code {
    Complete,
    Close,
    Synthesis,
    RoundStart,
    KnowledgeTransfer,
    PeerReview,
    PosterSession,
    ResearchContinue,
    ResearchRestart,
}

impl Code {
    const ALL: [Self; 9] = [
        Self::Complete,
        Self::Close,
        Self::Synthesis,
        Self::RoundStart,
        Self::KnowledgeTransfer,
        Self::PeerReview,
        Self::PosterSession,
        Self::ResearchContinue,
        Self::ResearchRestart,
    ];

    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.as_str() == word)
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Close => "close",
            Self::Synthesis => "synthesis",
            Self::RoundStart => "round-start",
            Self::KnowledgeTransfer => "knowledge-transfer",
            Self::PeerReview => "peer-review",
            Self::PosterSession => "poster-session",
            Self::ResearchContinue => "research-continue",
            Self::ResearchRestart => "research-restart",
        }
    }

    /// As the system numbers them; its synthesis is step 11.
    pub const fn phase(self) -> Option<&'static str> {
        match self {
            Self::Complete => None,
            Self::Close | Self::Synthesis => Some("11"),
            Self::RoundStart | Self::ResearchContinue | Self::ResearchRestart => Some("1"),
            Self::PosterSession => Some("2"),
            Self::PeerReview => Some("3"),
            Self::KnowledgeTransfer => Some("4"),
        }
    }
}

/// What decides. Each is a question about the log and the files, answered on its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "the columns of a decision table")]
pub struct Facts {
    /// `conference.completed` is logged.
    pub completed: bool,
    /// Both outputs are whole, every round is over, and only the closing event is missing.
    pub closable: bool,
    /// Converged, stalled, or out of budget.
    pub over: bool,
    /// A round has begun and was not completed.
    pub open: bool,
    /// Its peer review is logged.
    pub reviewed: bool,
    /// Its poster session is logged.
    pub posted: bool,
    /// None of its researchers has anything left to do.
    pub finished: bool,
    /// It has one researcher: there is nothing to compare in a poster session.
    pub alone: bool,
    /// Some of its iterations are logged.
    pub logged: bool,
}

impl Facts {
    const fn answers(self) -> [bool; 9] {
        let Self { completed, closable, over, open, .. } = self;
        let Self { reviewed, posted, finished, alone, logged, .. } = self;
        [completed, closable, over, open, reviewed, posted, finished, alone, logged]
    }
}

const YES: Option<bool> = Some(true);
const NO: Option<bool> = Some(false);
const __: Option<bool> = None;

/// The first row that fits decides.
#[rustfmt::skip]
const TABLE: [([Option<bool>; 9], Code); 10] = [
    // completed closable over  open  reviewed posted finished alone logged
    ([YES,       __,      __,   __,   __,      __,    __,      __,   __ ], Code::Complete),
    ([__,        YES,     __,   __,   __,      __,    __,      __,   __ ], Code::Close),
    ([__,        __,      YES,  __,   __,      __,    __,      __,   __ ], Code::Synthesis),
    ([__,        __,      __,   NO,   __,      __,    __,      __,   __ ], Code::RoundStart),
    ([__,        __,      __,   YES,  YES,     __,    __,      __,   __ ], Code::KnowledgeTransfer),
    ([__,        __,      __,   YES,  __,      YES,   __,      __,   __ ], Code::PeerReview),
    ([__,        __,      __,   YES,  __,      __,    YES,     YES,  __ ], Code::PeerReview),
    ([__,        __,      __,   YES,  __,      __,    YES,     __,   __ ], Code::PosterSession),
    ([__,        __,      __,   YES,  __,      __,    __,      __,   YES], Code::ResearchContinue),
    ([__,        __,      __,   __,   __,      __,    __,      __,   __ ], Code::ResearchRestart),
];

pub fn code(facts: Facts) -> Code {
    let answers = facts.answers();
    let fits = |row: &[Option<bool>; 9]| {
        let mut cells = row.iter().zip(answers);
        cells.all(|(cell, answer)| cell.is_none_or(|wanted| wanted == answer))
    };
    let row = TABLE.iter().find(|(row, _)| fits(row));
    row.map_or(Code::ResearchRestart, |(_, code)| *code)
}

/// The recovery point of a conference, before it is put into words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point {
    pub code: Code,
    /// Where the code is about one round.
    pub round: Option<u32>,
    /// Who has work to do there.
    pub researchers: Vec<String>,
    /// Why there is no further round, where there is none.
    pub over: Option<Over>,
}

pub fn point(conference: &Conference) -> Point {
    let over = converge::over(conference);
    let facts = facts(conference, over.as_ref());
    let code = code(facts);
    let next = conference.history.last_completed().saturating_add(1);
    let round = conference.history.open_round().unwrap_or(next);
    let everybody = || conference.researchers_of(round);
    let (round, researchers) = match code {
        Code::Complete | Code::Close | Code::Synthesis => (None, Vec::new()),
        Code::KnowledgeTransfer | Code::PeerReview | Code::PosterSession => {
            (Some(round), Vec::new())
        }
        Code::RoundStart | Code::ResearchRestart => (Some(round), everybody()),
        Code::ResearchContinue => {
            let unfinished = |it: &String| conference.finish(round, it).is_none();
            (Some(round), everybody().into_iter().filter(unfinished).collect())
        }
    };
    Point { code, round, researchers, over }
}

fn facts(conference: &Conference, over: Option<&Over>) -> Facts {
    let history = &conference.history;
    let open = history.open_round();
    let round = open.and_then(|number| history.round(number));
    let researchers = open.map(|number| conference.researchers_of(number)).unwrap_or_default();
    let number = open.unwrap_or(0);
    let is_finished = |researcher: &String| conference.finish(number, researcher).is_some();
    Facts {
        completed: history.completed,
        closable: over.is_some() && is_closable(conference),
        over: over.is_some(),
        open: open.is_some(),
        reviewed: round.is_some_and(|round| round.review),
        posted: round.is_some_and(|round| round.poster),
        finished: !researchers.is_empty() && researchers.iter().all(is_finished),
        alone: researchers.len() == 1,
        logged: round.is_some_and(|round| round.iterations() > 0),
    }
}

/// Only the closing event is missing: no round is open, and no file knows of a later one.
fn is_closable(conference: &Conference) -> bool {
    let whole = |page: &Option<Page>| page.as_ref().is_some_and(Page::is_whole);
    let history = &conference.history;
    let last = history.last_completed();
    whole(&conference.synthesis)
        && whole(&conference.report)
        && last > 0
        && history.open_round().is_none()
        && conference.last_round_on_disk() <= last
}

impl Point {
    /// One sentence for people.
    pub fn summary(&self) -> String {
        let round = self.round.unwrap_or(0);
        let who = self.researchers.join(", ");
        let why = self.over.as_ref().map_or("", |over| over.detail.as_str());
        match self.code {
            Code::Complete => "This conference is already complete".to_owned(),
            Code::Close => format!(
                "Step 13: {why}, and synthesis.md and final_report.md are there; only the closing \
                 event is missing"
            ),
            Code::Synthesis => format!("Step 11, synthesis: {why}"),
            Code::RoundStart if round == 1 => {
                format!("Round 1, phase 1: nothing has begun yet, start researchers {who}")
            }
            Code::RoundStart => {
                let before = round - 1;
                format!("Round {round}, phase 1: round {before} is completed, start {who}")
            }
            Code::KnowledgeTransfer => {
                format!("Round {round}, phase 4: peer review is done, run knowledge transfer")
            }
            Code::PeerReview => {
                format!("Round {round}, phase 3: run the peer review, nothing before it")
            }
            Code::PosterSession => {
                format!("Round {round}, phase 2: every researcher is done, run the poster session")
            }
            Code::ResearchContinue => {
                format!("Round {round}, phase 1: go on with {who}, from their last kept state")
            }
            Code::ResearchRestart => {
                format!("Round {round}, phase 1: started, nothing logged; start {who} from scratch")
            }
        }
    }

    /// Straight to the synthesis because the time is over.
    pub fn is_out_of_time(&self) -> bool {
        self.over.as_ref().is_some_and(|over| over.reason == Reason::Time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_facts() -> impl Iterator<Item = Facts> {
        (0_u16..1 << 9).map(|bits| {
            let bit = |index: u16| bits & (1 << index) != 0;
            Facts {
                completed: bit(0),
                closable: bit(1),
                over: bit(2),
                open: bit(3),
                reviewed: bit(4),
                posted: bit(5),
                finished: bit(6),
                alone: bit(7),
                logged: bit(8),
            }
        })
    }

    /// The rulings again, as questions instead of rows.
    fn by_questions(facts: Facts) -> Code {
        if facts.completed {
            return Code::Complete;
        }
        if facts.closable {
            return Code::Close;
        }
        if facts.over {
            return Code::Synthesis;
        }
        if !facts.open {
            return Code::RoundStart;
        }
        if facts.reviewed {
            return Code::KnowledgeTransfer;
        }
        if facts.posted || facts.finished && facts.alone {
            return Code::PeerReview;
        }
        if facts.finished {
            return Code::PosterSession;
        }
        if facts.logged { Code::ResearchContinue } else { Code::ResearchRestart }
    }

    #[test]
    fn every_combination_of_facts_gives_what_the_rulings_say() {
        for facts in all_facts() {
            assert_eq!(code(facts), by_questions(facts), "{facts:?}");
        }
    }

    #[test]
    fn every_row_of_the_table_decides_something() {
        for (index, (_, expected)) in TABLE.iter().enumerate() {
            let decided = all_facts().any(|facts| {
                let fits = |row: &[Option<bool>; 9]| {
                    row.iter().zip(facts.answers()).all(|(cell, it)| cell.is_none_or(|c| c == it))
                };
                TABLE.iter().position(|(row, _)| fits(row)) == Some(index)
            });
            assert!(decided, "row {index} ({}) is never reached", expected.as_str());
        }
    }
}
