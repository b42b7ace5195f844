//! What proves a step done, and every way in which it can fail.
//!
//! Invariant: an exit code alone is never evidence. [`Outcome::Done`] is given by the decider after
//! it has looked at the exit, the check, the declared outputs and the result.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::digest::Digest;

/// What others can see of a finished step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// Each declared output that exists, in path order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileProof>,
    /// Digest of the canonical JSON of the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Digest>,
    /// Digest of the first 64 KiB of standard output; only where a template refers to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdout: Option<Digest>,
    /// Head of the branch of the step's own worktree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch_head: Option<String>,
}

impl Evidence {
    pub fn is_empty(&self) -> bool {
        let Self { files, result, stdout, branch_head } = self;
        files.is_empty() && result.is_none() && stdout.is_none() && branch_head.is_none()
    }

    /// Takes out what is named. Gives what it was, if that changed it.
    pub fn without(&mut self, paths: Option<&BTreeSet<String>>) -> Option<Self> {
        let (paths, whole) = (paths?, self.clone());
        self.files.retain(|file| !paths.contains(&file.path));
        (*self != whole).then_some(whole)
    }

    /// What dependents compare. Content only: no stat data, no time, no attempt.
    pub fn digest(&self) -> Digest {
        let Self { files, result, stdout, branch_head } = self;
        let mut parts: Vec<&[u8]> = Vec::with_capacity(files.len() * 2 + 6);
        for file in files {
            parts.extend([file.path.as_bytes(), file.hash.as_bytes()]);
        }
        let optional = [
            ("result", result.as_ref().map(Digest::as_bytes)),
            ("stdout", stdout.as_ref().map(Digest::as_bytes)),
            ("branch", branch_head.as_ref().map(String::as_bytes)),
        ];
        for (name, value) in optional {
            parts.extend(value.map(|value| [name.as_bytes(), value]).into_iter().flatten());
        }
        Digest::of_parts(parts)
    }
}

/// One file as it was when it was looked at. While the stat is unchanged and not racy, so is the
/// content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileProof {
    /// Relative to the step's working directory, `/` as separator.
    pub path: String,
    pub hash: Digest,
    pub stat: Stat,
}

/// What a look without reading tells about a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stat {
    pub size: u64,
    /// Nanoseconds since 1970.
    pub mtime_ns: i64,
    pub inode: u64,
}

impl Stat {
    /// Of what lies outside of the project: it is known by where it is, and never read.
    pub const OUTSIDE: Self = Self { size: u64::MAX, mtime_ns: i64::MAX, inode: 0 };
}

/// How an attempt ended, as judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Done,
    Failed { cause: Cause, detail: String },
}

crate::listed! {
    /// The one list of causes: in `retry.on`, in the journal, on the screen.
    #[derive(
        Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
    )]
    #[serde(rename_all = "snake_case")]
    pub enum Cause {
        /// Died by a signal that onward did not send.
        Crash,
        /// Wall or idle time ran out.
        Timeout,
        Overloaded,
        Server,
        Network,
        /// Exit code other than 0, or an answer that says no.
        Failed,
        /// A declared output is missing, or the check failed.
        Unproved,
        SchemaViolation,
        RateLimited,
        UsageLimit,
        ContextOverflow,
        Auth,
        Budget,
        MaxTurns,
        PermissionDenied,
        /// Stopped by us: Ctrl-C, pause or cancel.
        Interrupted,
        SessionMissing,
        SessionBusy,
    }
}

impl Cause {
    /// The causes that are retried when a step does not say which.
    pub const RETRIED: [Self; 5] =
        [Self::Crash, Self::Timeout, Self::Overloaded, Self::Server, Self::Network];

    /// What it leads to besides `retry`: the one table of that.
    pub const fn leads_to(self) -> Reaction {
        match self {
            Self::RateLimited | Self::UsageLimit => Reaction::Park,
            Self::Overloaded | Self::Server | Self::Network => Reaction::Again,
            Self::ContextOverflow | Self::SessionMissing | Self::SessionBusy => Reaction::Fresh,
            Self::SchemaViolation => Reaction::Repair,
            Self::Auth | Self::Budget | Self::PermissionDenied => Reaction::Ask,
            Self::Crash
            | Self::Timeout
            | Self::Failed
            | Self::Unproved
            | Self::MaxTurns
            | Self::Interrupted => Reaction::Retry,
        }
    }

    /// As people read it: `schema violation`.
    pub fn in_words(self) -> String {
        self.as_str().replace('_', " ")
    }

    /// The next attempt goes on in the session of the one that failed, where it can. A stop says
    /// nothing about the session: it is as good as it was.
    pub const fn keeps_session(self) -> bool {
        matches!(self, Self::Interrupted) || self.leads_to().keeps_session()
    }

    /// A provider's limit: it says nothing about the work, and parks the step.
    pub const fn is_limit(self) -> bool {
        matches!(self.leads_to(), Reaction::Park)
    }

    /// Whether `on_failure: continue` covers it. What says nothing about the step's own work never
    /// lets the run go on without the step: limits park, and the rest is for a person to settle.
    pub const fn may_be_tolerated(self) -> bool {
        match self {
            Self::Crash
            | Self::Timeout
            | Self::Overloaded
            | Self::Server
            | Self::Network
            | Self::Failed
            | Self::Unproved
            | Self::SchemaViolation
            | Self::ContextOverflow
            | Self::MaxTurns
            | Self::SessionMissing
            | Self::SessionBusy => true,
            Self::RateLimited
            | Self::UsageLimit
            | Self::Auth
            | Self::Budget
            | Self::PermissionDenied
            | Self::Interrupted => false,
        }
    }

    /// The word in files and in settings.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Crash => "crash",
            Self::Timeout => "timeout",
            Self::Overloaded => "overloaded",
            Self::Server => "server",
            Self::Network => "network",
            Self::Failed => "failed",
            Self::Unproved => "unproved",
            Self::SchemaViolation => "schema_violation",
            Self::RateLimited => "rate_limited",
            Self::UsageLimit => "usage_limit",
            Self::ContextOverflow => "context_overflow",
            Self::Auth => "auth",
            Self::Budget => "budget",
            Self::MaxTurns => "max_turns",
            Self::PermissionDenied => "permission_denied",
            Self::Interrupted => "interrupted",
            Self::SessionMissing => "session_missing",
            Self::SessionBusy => "session_busy",
        }
    }
}

/// What becomes of a step whose attempt failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaction {
    /// As `retry` says.
    Retry,
    /// It waits for the reset of a limit and goes on in its session. That takes no try.
    Park,
    /// The provider was at fault: a few more tries in the same session, which take none of
    /// `retry.max`.
    Again,
    /// The session is of no use any more: one more try in a new one, with a brief.
    Fresh,
    /// The result does not count: one more turn in the same session to put it right.
    Repair,
    /// A person must do something first; the run waits.
    Ask,
}

impl Reaction {
    /// How long to wait before each try that takes none of `retry.max`.
    pub const fn free_waits_ms(self) -> &'static [u64] {
        match self {
            Self::Again => &[5_000, 30_000, 120_000],
            Self::Fresh | Self::Repair => &[0],
            Self::Retry | Self::Park | Self::Ask => &[],
        }
    }

    /// The next attempt goes on in the session of the one that failed, where it can.
    pub const fn keeps_session(self) -> bool {
        match self {
            Self::Park | Self::Again | Self::Repair => true,
            Self::Retry | Self::Fresh | Self::Ask => false,
        }
    }
}

/// Free tries that a step was given since it was first started, or last taken up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FreeTries {
    again: u8,
    fresh: u8,
    repair: u8,
}

impl FreeTries {
    /// How long to wait before the next one after this failure; `None` = there is none.
    pub fn next(self, cause: Cause, has_session: bool) -> Option<u64> {
        let reaction = cause.leads_to();
        let given = match reaction {
            Reaction::Again => self.again,
            Reaction::Fresh => self.fresh,
            // What has no session has nothing to put right in it.
            Reaction::Repair if !has_session => return None,
            Reaction::Repair => self.repair,
            Reaction::Retry | Reaction::Park | Reaction::Ask => return None,
        };
        reaction.free_waits_ms().get(usize::from(given)).copied()
    }

    /// Takes the one that [`next`](Self::next) told of.
    pub fn take(&mut self, cause: Cause) {
        let given = match cause.leads_to() {
            Reaction::Again => &mut self.again,
            Reaction::Fresh => &mut self.fresh,
            Reaction::Repair => &mut self.repair,
            Reaction::Retry | Reaction::Park | Reaction::Ask => return,
        };
        *given = given.saturating_add(1);
    }
}

/// How the process itself ended, before the engine judged it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum Ending {
    Exited {
        code: i32,
    },
    Signalled {
        signal: i32,
    },
    /// Our own time-out ended it; `idle` when no output came, else wall time.
    TimedOut {
        idle: bool,
    },
    /// The stop ladder ended it, on request of a person or a signal.
    Stopped,
    /// It could not be started at all, such as a missing program.
    NotStarted {
        why: String,
    },
}

impl Ending {
    pub fn is_success(&self) -> bool {
        *self == Self::Exited { code: 0 }
    }
}

/// Money, in millionths of a US dollar; a number of dollars in JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Usd(pub u64);

impl Usd {
    /// More than this is this much.
    const DOLLARS_MAX: f64 = 1e9;

    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    #[expect(clippy::cast_precision_loss, reason = "exact below nine billion dollars")]
    pub fn dollars(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// `None` for anything that is not an amount of money.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the range was looked at"
    )]
    pub fn from_dollars(dollars: f64) -> Option<Self> {
        (dollars >= 0.0).then(|| Self((dollars.min(Self::DOLLARS_MAX) * 1e6).round() as u64))
    }
}

impl Serialize for Usd {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.dollars())
    }
}

impl<'de> Deserialize<'de> for Usd {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let dollars = f64::deserialize(deserializer)?;
        Self::from_dollars(dollars)
            .ok_or_else(|| serde::de::Error::custom("not an amount in US dollars"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_has_one_spelling() {
        for cause in Cause::ALL {
            let json = serde_json::to_value(cause).unwrap();
            assert_eq!(json, cause.as_str());
        }
    }

    #[test]
    fn free_tries_come_to_an_end() {
        for (cause, has_session, waits) in [
            (Cause::Overloaded, false, &[5_000, 30_000, 120_000][..]),
            (Cause::ContextOverflow, true, &[0]),
            (Cause::SchemaViolation, true, &[0]),
            (Cause::SchemaViolation, false, &[]),
            (Cause::UsageLimit, true, &[]),
            (Cause::Auth, true, &[]),
            (Cause::Crash, true, &[]),
        ] {
            let mut tries = FreeTries::default();
            let mut given = Vec::new();
            while let Some(wait) = tries.next(cause, has_session) {
                given.push(wait);
                tries.take(cause);
            }
            assert_eq!(given, waits, "{cause:?}");
        }
        let mut tries = FreeTries::default();
        for cause in [Cause::Server, Cause::Network, Cause::Overloaded] {
            tries.take(cause);
        }
        assert_eq!(tries.next(Cause::Server, true), None);
        assert_eq!(tries.next(Cause::SessionMissing, true), Some(0));
    }

    #[test]
    fn evidence_is_content_and_not_when_or_where_it_was_seen() {
        let proof = |mtime_ns| FileProof {
            path: "a".into(),
            hash: Digest::of(b"x"),
            stat: Stat { size: 1, mtime_ns, inode: 7 },
        };
        let one = Evidence { files: vec![proof(1)], ..Evidence::default() };
        let two = Evidence { files: vec![proof(2)], ..Evidence::default() };
        assert_eq!(one.digest(), two.digest());
        assert_ne!(one.digest(), Evidence::default().digest());
        let result = Evidence { result: Some(Digest::of(b"x")), ..Evidence::default() };
        let stdout = Evidence { stdout: Some(Digest::of(b"x")), ..Evidence::default() };
        assert_ne!(result.digest(), stdout.digest());
        assert!(!result.is_empty() && Evidence::default().is_empty());
    }

    #[test]
    fn money_is_exact_to_the_millionth() {
        assert_eq!(Usd::from_dollars(0.1), Some(Usd(100_000)));
        assert_eq!(serde_json::to_string(&Usd(1_250_000)).unwrap(), "1.25");
        assert_eq!(serde_json::from_str::<Usd>("20").unwrap(), Usd(20_000_000));
        assert!(serde_json::from_str::<Usd>("-1").is_err());
        assert_eq!(Usd(1).plus(Usd(2)), Usd(3));
        assert_eq!(Usd::from_dollars(1e308), Usd::from_dollars(1e9), "never taken for nothing");
        assert_eq!(Usd::from_dollars(f64::NAN), None);
    }
}
