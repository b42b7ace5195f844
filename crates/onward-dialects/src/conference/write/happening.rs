//! What happened in a conference, as it is to be written into the system's own files.
//!
//! Invariant: a happening says everything that its files need; writing one asks for nothing more.
//! Times are given.

use onward_core::time::Timestamp;

use crate::conference::read::log::{Status, StuckLevel};

/// One thing that happened, and when.
#[derive(Clone, Debug, PartialEq)]
pub struct Happening {
    pub at: Timestamp,
    pub what: What,
}

#[derive(Clone, Debug, PartialEq)]
pub enum What {
    Started {
        researchers: u32,
        mode: &'static str,
        goal: String,
        config: String,
    },
    /// A driver goes on. Written before anything else is.
    Resumed {
        recovery_point: String,
        round: Option<u32>,
        reverted: Vec<String>,
    },
    RoundStarted {
        round: u32,
        researchers: Vec<String>,
    },
    Iterated(Iterated),
    Stuck {
        researcher: String,
        round: u32,
        level: StuckLevel,
    },
    Posted {
        round: u32,
        summary: String,
        page: String,
    },
    Reviewed {
        round: u32,
        page: String,
    },
    /// Validated findings, for all researchers in the rounds to come. The first of the four parts
    /// of a knowledge transfer that are files; each adds only what is missing.
    Learned {
        round: u32,
        findings: Vec<String>,
    },
    /// The reviewer's word on a researcher's rows of the round.
    Judged {
        round: u32,
        researcher: String,
        verdict: Verdict,
    },
    /// A row of the Conference Log.
    Noted {
        round: u32,
        researcher: String,
        best: String,
        finding: String,
        status: String,
    },
    RoundCompleted {
        round: u32,
        best: String,
        researcher: String,
        converged: bool,
    },
    Converged {
        best: String,
        rounds: u32,
        reason: String,
    },
    Stalled {
        round: u32,
    },
    Failed {
        round: u32,
    },
    Synthesised {
        synthesis: String,
        report: String,
    },
    Completed,
}

/// One iteration of one researcher.
#[derive(Clone, Debug, PartialEq)]
pub struct Iterated {
    pub researcher: String,
    pub round: u32,
    pub iteration: u32,
    /// As the evaluator printed it.
    pub metric: String,
    pub status: Status,
    pub description: String,
    pub evaluator: String,
    pub hypothesis: String,
    pub analysis: String,
}

/// What a reviewer says of a finding. Ordered: the most careful is the greatest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    Validated,
    Challenged,
    Overturned,
}

impl Verdict {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Validated => "validated",
            Self::Challenged => "challenged",
            Self::Overturned => "overturned",
        }
    }

    /// The first of the three words in a text.
    pub fn find(text: &str) -> Option<Self> {
        let all = [Self::Validated, Self::Challenged, Self::Overturned];
        let lower = text.to_lowercase();
        let first = |verdict: &Self| lower.find(verdict.as_str());
        all.into_iter().filter(|it| first(it).is_some()).min_by_key(first)
    }
}
