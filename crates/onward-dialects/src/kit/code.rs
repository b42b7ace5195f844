//! Words for what is wrong with another system's files, where core has none or means less by it.
//!
//! Invariant: one word, one severity, in one table; where a word has two, it has two rows, and the
//! name of each says what makes the difference.

use onward_core::finding::{DialectCode, Finding, RUN_OVER, RUN_SUPERSEDED, Severity};

onward_core::listed! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Odd {
        /// The files that say where a run stands cannot be read; nothing but a person helps.
        StateUnreadable,
        /// They cannot be read, and other files say enough.
        StateRebuilt,
        /// A write was begun and not finished.
        InterruptedWrite,
        /// The same, by what it left; it may hold what the file itself lost.
        LeftoverTempFile,
        /// A file names no phase, or one that is not known.
        MissingCurrentPhase,
        /// A value has another type than it should have, and was passed over.
        OddValue,
        /// A file names a path that leaves the project; nothing looks there.
        PathRefused,
        /// A task was under way when the session ended, and left nothing.
        OrphanTask,
        /// A task has been tried as often as the system allows.
        AttemptsUsedUp,
        /// The same, where a gate of the run asks about it: nothing else waits for that.
        UsedUpAskedByGate,
        /// There is no task that holds a pipeline together.
        NoPermanentTask,
        /// Several runs could be meant; one was chosen.
        OthersOpen,
        /// A task waits for one whose file is gone; it was most likely done and cleaned up.
        BlockerGone,
        /// A task is counted in the phase of its skill, and names another one.
        PhaseBySkill,
        /// A task names neither a phase nor a skill.
        TaskWithoutPhase,
        /// A task is in a phase that the tier leaves out.
        PhaseOffPath,
        /// A phase has no tasks, and counts as done because a later one has begun.
        PhaseWithoutTasks,
        /// Nothing says how large the work is.
        MissingTier,
        /// The files say that the run failed or was cancelled.
        RunOver,
        /// Another run has taken the place of the one that ours goes on with.
        RunSuperseded,
    }
}

impl Odd {
    #[rustfmt::skip]
    pub const fn row(self) -> DialectCode {
        use Severity::{Blocking, Info, Warning};
        let (word, severity) = match self {
            Self::StateUnreadable     => ("state-unreadable",      Blocking),
            Self::StateRebuilt        => ("state-rebuilt",         Warning),
            Self::InterruptedWrite    => ("interrupted-write",     Warning),
            Self::LeftoverTempFile    => ("leftover-temp-file",    Warning),
            Self::MissingCurrentPhase => ("missing-current-phase", Warning),
            Self::OddValue            => ("odd-value",             Warning),
            Self::PathRefused         => ("path-refused",          Warning),
            Self::OrphanTask          => ("orphan-task",           Info),
            Self::AttemptsUsedUp      => ("attempts-used-up",      Blocking),
            Self::UsedUpAskedByGate   => ("attempts-used-up",      Info),
            Self::NoPermanentTask     => ("no-permanent-task",     Blocking),
            Self::OthersOpen          => ("others-open",           Warning),
            Self::BlockerGone         => ("blocker-gone",          Info),
            Self::PhaseBySkill        => ("phase-by-skill",        Info),
            Self::TaskWithoutPhase    => ("task-without-phase",    Warning),
            Self::PhaseOffPath        => ("phase-off-path",        Warning),
            Self::PhaseWithoutTasks   => ("phase-without-tasks",   Warning),
            Self::MissingTier         => ("missing-tier",          Warning),
            Self::RunOver             => (RUN_OVER,                Blocking),
            Self::RunSuperseded       => (RUN_SUPERSEDED,          Blocking),
        };
        DialectCode { word, severity }
    }

    pub fn finding(self, message: impl Into<String>) -> Finding {
        Finding::of_dialect(self.row(), message)
    }
}
