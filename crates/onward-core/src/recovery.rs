//! The recovery table: what to do with an attempt that an interruption left behind.
//!
//! The table *is* the policy. Exactly one row matches any set of facts; a test tries all of them.
//! To find the rule for a case, go down the columns: the first row whose marks fit is the only one.

use serde::{Deserialize, Serialize};

/// What can be observed about one attempt after an interruption.
#[expect(clippy::struct_excessive_bools, reason = "independent observations, one per column")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AttemptFacts {
    /// The journal has `attempt.started`.
    pub announced: bool,
    /// The process existed, as far as the supervisor can tell; doubt counts as yes.
    pub spawned: bool,
    /// The supervisor wrote down how it ended.
    pub sealed: bool,
    /// The very same process lives, and a live supervisor of ours holds it.
    pub alive: bool,
    /// Something the attempt left proves by itself that the work is done: a result that fits its
    /// schema, an output that carries its own status, an attributed commit. That a file merely
    /// exists proves nothing.
    pub proof: bool,
    /// The agent's own session can be taken up again.
    pub session: bool,
    /// The attempt changed something, compared with what was saved before it.
    pub dirty: bool,
    /// The same paths were changed after it ended and not by it, or that cannot be ruled out.
    pub contested: bool,
}

/// What is done about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// Spawn the announced attempt now; no attempt is burned.
    Start,
    /// Take the sealed exit and judge it as if it had just come in.
    AdoptSeal,
    /// Wait for the living process.
    Reattach,
    /// Count the work as done, on the strength of its own proof.
    AdoptProof,
    /// A new attempt that goes on in the agent's own session.
    Continue,
    /// A new attempt; nothing is to be undone.
    Rerun,
    /// Save what was left to the rescue, undo it, then a new attempt with a brief.
    RevertThenRerun,
    /// Only a person can tell.
    Ask,
    /// The journal and the world contradict each other: a lost tail. Nothing is touched.
    Refuse,
}

crate::listed! {
    /// Why an attempt was given up: `rung` of `attempt.lost`, and the reason in `plan`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Rung {
        // The rows of the recovery table.
        SealOutOfNowhere,
        ProcessOutOfNowhere,
        SpawnOutOfNowhere,
        NeverAnnounced,
        Sealed,
        Alive,
        NeverSpawned,
        NeverSpawnedYetDirty,
        Proved,
        Contested,
        SessionDirty,
        SessionClean,
        DiedDirty,
        DiedClean,
        // Effects beyond this machine.
        /// The probe says that the effect did not happen.
        EffectAbsent,
        /// A person accepts that nothing can tell, and the step runs again.
        EffectAccepted,
        /// What it was made from is made again, so that its result cannot count.
        Superseded,
        /// It is asked for differently now, or what it read or made is not what it was.
        Outdated,
        // What happened outside of a resume.
        /// The process was gone before its end could be sealed, while the engine lived.
        Vanished,
        /// The run was archived while the attempt was open.
        Archived,
        /// A repair of the journal found the start and no end.
        Repair,
    }
}

impl Rung {
    /// The word in the journal and on the screen.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SealOutOfNowhere => "seal-out-of-nowhere",
            Self::ProcessOutOfNowhere => "process-out-of-nowhere",
            Self::SpawnOutOfNowhere => "spawn-out-of-nowhere",
            Self::NeverAnnounced => "never-announced",
            Self::Sealed => "sealed",
            Self::Alive => "alive",
            Self::NeverSpawned => "never-spawned",
            Self::NeverSpawnedYetDirty => "never-spawned-yet-dirty",
            Self::Proved => "proved",
            Self::Contested => "contested",
            Self::SessionDirty => "session-dirty",
            Self::SessionClean => "session-clean",
            Self::DiedDirty => "died-dirty",
            Self::DiedClean => "died-clean",
            Self::EffectAbsent => "effect-absent",
            Self::EffectAccepted => "effect-accepted",
            Self::Superseded => "superseded",
            Self::Outdated => "outdated",
            Self::Vanished => "vanished",
            Self::Archived => "archived",
            Self::Repair => "repair",
        }
    }

    /// The reason in words.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::EffectAbsent => "it did not happen",
            Self::EffectAccepted => "whether it happened is not known; it runs again, as asked",
            Self::Superseded => "a step before it runs again, or came out otherwise",
            Self::Outdated => "what it was asked for, read or made is not what it was",
            Self::Vanished => "its process was gone, and nothing says how it ended",
            Self::Archived => "the run was archived",
            Self::Repair => "a repair of the journal found no end of it",
            Self::SealOutOfNowhere
            | Self::ProcessOutOfNowhere
            | Self::SpawnOutOfNowhere
            | Self::NeverAnnounced
            | Self::Sealed
            | Self::Alive
            | Self::NeverSpawned
            | Self::NeverSpawnedYetDirty
            | Self::Proved
            | Self::Contested
            | Self::SessionDirty
            | Self::SessionClean
            | Self::DiedDirty
            | Self::DiedClean => {
                TABLE.iter().find(|row| row.rung == self).map_or("given up", |row| row.why)
            }
        }
    }

    /// Whether an attempt that was given up for this reason had begun, and died of it.
    pub const fn is_death(self) -> bool {
        match self {
            Self::Contested
            | Self::SessionDirty
            | Self::SessionClean
            | Self::DiedDirty
            | Self::DiedClean
            | Self::Vanished => true,
            Self::SealOutOfNowhere
            | Self::ProcessOutOfNowhere
            | Self::SpawnOutOfNowhere
            | Self::NeverAnnounced
            | Self::Sealed
            | Self::Alive
            | Self::NeverSpawned
            | Self::NeverSpawnedYetDirty
            | Self::Proved
            | Self::EffectAbsent
            | Self::EffectAccepted
            | Self::Superseded
            | Self::Outdated
            | Self::Archived
            | Self::Repair => false,
        }
    }

    /// Whether an attempt that was given up for this reason was to go on in its own session.
    pub fn continues(self) -> bool {
        TABLE.iter().any(|row| row.rung == self && row.decision == Decision::Continue)
    }
}

/// One row: its name in the journal and in `plan`, its marks, its decision, its reason.
pub struct Row {
    pub rung: Rung,
    marks: [Option<bool>; 8],
    pub decision: Decision,
    pub why: &'static str,
}

const __: Option<bool> = None;
const NO: Option<bool> = Some(false);
const YES: Option<bool> = Some(true);

const fn row(rung: Rung, marks: [Option<bool>; 8], decision: Decision, why: &'static str) -> Row {
    Row { rung, marks, decision, why }
}

#[rustfmt::skip]
pub const TABLE: [Row; 14] = [
    //                          announced spawned sealed alive proof session dirty contested
    row(Rung::SealOutOfNowhere,     [NO,  __,  YES, __,  __,  __,  __,  __ ], Decision::Refuse,
        "an exit was recorded for a start that the journal does not have"),
    row(Rung::ProcessOutOfNowhere,  [NO,  __,  NO,  YES, __,  __,  __,  __ ], Decision::Refuse,
        "a process of this run is alive that the journal never started"),
    row(Rung::SpawnOutOfNowhere,    [NO,  YES, NO,  NO,  __,  __,  __,  __ ], Decision::Refuse,
        "a process was started that the journal does not have"),
    row(Rung::NeverAnnounced,       [NO,  NO,  NO,  NO,  __,  __,  __,  __ ], Decision::Start,
        "not started"),
    row(Rung::Sealed,               [YES, __,  YES, __,  __,  __,  __,  __ ], Decision::AdoptSeal,
        "finished while the engine was down"),
    row(Rung::Alive,                [YES, __,  NO,  YES, __,  __,  __,  __ ], Decision::Reattach,
        "still running"),
    row(Rung::NeverSpawned,         [YES, NO,  NO,  NO,  __,  __,  NO,  __ ], Decision::Start,
        "about to start when the engine stopped"),
    row(Rung::NeverSpawnedYetDirty, [YES, NO,  NO,  NO,  __,  __,  YES, __ ], Decision::Ask,
        "it never started, yet its files changed"),
    row(Rung::Proved,               [YES, YES, NO,  NO,  YES, __,  __,  __ ], Decision::AdoptProof,
        "killed, but what it left proves that it was done"),
    row(Rung::Contested,            [YES, YES, NO,  NO,  NO,  __,  __,  YES], Decision::Ask,
        "killed, and the same files were edited afterwards"),
    row(Rung::SessionDirty,         [YES, YES, NO,  NO,  NO,  YES, YES, NO ], Decision::Continue,
        "killed half-way; its session can continue"),
    row(Rung::SessionClean,         [YES, YES, NO,  NO,  NO,  YES, NO,  NO ], Decision::Continue,
        "killed; its session can continue"),
    row(Rung::DiedDirty,            [YES, YES, NO,  NO,  NO,  NO,  YES, NO ],
        Decision::RevertThenRerun, "killed; left partial work"),
    row(Rung::DiedClean,            [YES, YES, NO,  NO,  NO,  NO,  NO,  NO ], Decision::Rerun,
        "killed; left nothing behind"),
];

/// The one row that matches.
pub fn row_for(facts: AttemptFacts) -> &'static Row {
    matching(facts).next().expect("the table is total")
}

fn matching(facts: AttemptFacts) -> impl Iterator<Item = &'static Row> {
    let AttemptFacts { announced, spawned, sealed, alive, proof, session, dirty, contested } =
        facts;
    let seen = [announced, spawned, sealed, alive, proof, session, dirty, contested];
    TABLE.iter().filter(move |row| {
        row.marks.iter().zip(seen).all(|(mark, seen)| mark.is_none_or(|mark| mark == seen))
    })
}

/// What a probe of an effect outside said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probed {
    Happened,
    Absent,
    /// It answered something else, or there is none.
    Unknown,
}

/// For an effect that was intended and never settled: the probe decides, not the table.
pub fn effect_decision(probed: Probed) -> Decision {
    match probed {
        Probed::Happened => Decision::AdoptProof,
        Probed::Absent => Decision::Rerun,
        Probed::Unknown => Decision::Ask,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_facts() -> impl Iterator<Item = AttemptFacts> {
        (0_u8..=255).map(|bits| {
            let bit = |index: u8| bits & (1 << index) != 0;
            AttemptFacts {
                announced: bit(0),
                spawned: bit(1),
                sealed: bit(2),
                alive: bit(3),
                proof: bit(4),
                session: bit(5),
                dirty: bit(6),
                contested: bit(7),
            }
        })
    }

    #[test]
    fn every_combination_of_facts_matches_exactly_one_row() {
        for facts in all_facts() {
            assert_eq!(matching(facts).count(), 1, "{facts:?}");
        }
    }

    #[test]
    fn every_row_is_the_answer_to_something_and_has_a_name_of_its_own() {
        for row in &TABLE {
            assert!(all_facts().any(|facts| row_for(facts).rung == row.rung), "{:?}", row.rung);
            assert_eq!(TABLE.iter().filter(|it| it.rung == row.rung).count(), 1);
            assert!(!row.why.is_empty());
        }
    }

    #[test]
    fn only_the_rows_about_sessions_let_an_attempt_go_on_in_its_own() {
        let rungs: Vec<Rung> = Rung::ALL.into_iter().filter(|it| it.continues()).collect();
        assert_eq!(rungs, [Rung::SessionDirty, Rung::SessionClean]);
    }

    #[test]
    fn the_journal_has_the_word_that_people_see() {
        for rung in Rung::ALL {
            assert_eq!(serde_json::to_value(rung).unwrap(), rung.as_str());
        }
    }

    #[test]
    fn the_careful_laws_hold_for_every_combination() {
        for facts in all_facts() {
            let decision = row_for(facts).decision;
            let text = format!("{facts:?} -> {decision:?}");
            if !facts.announced {
                let known = facts.spawned || facts.sealed || facts.alive;
                assert_eq!(decision == Decision::Refuse, known, "{text}");
                continue;
            }
            // What is known to have ended, or to live, is never run again.
            assert_eq!(decision == Decision::AdoptSeal, facts.sealed, "{text}");
            assert_eq!(decision == Decision::Reattach, facts.alive && !facts.sealed, "{text}");
            // Only what the attempt changed is undone, and only where nothing else changed it.
            if decision == Decision::RevertThenRerun {
                assert!(facts.spawned && facts.dirty && !facts.contested, "{text}");
            }
            if decision == Decision::Rerun {
                assert!(!facts.dirty && !facts.contested, "{text}");
            }
            if decision == Decision::AdoptProof {
                assert!(facts.proof, "{text}");
            }
        }
    }

    #[test]
    fn each_row_tells_its_story() {
        // Letters: Announced, Spawned, sealed x, alive a, proof p, session s, dirty d, contested c.
        check("", "never-announced", Decision::Start);
        check("d", "never-announced", Decision::Start);
        check("x", "seal-out-of-nowhere", Decision::Refuse);
        check("Sxa", "seal-out-of-nowhere", Decision::Refuse);
        check("a", "process-out-of-nowhere", Decision::Refuse);
        check("Sa", "process-out-of-nowhere", Decision::Refuse);
        check("S", "spawn-out-of-nowhere", Decision::Refuse);
        check("A", "never-spawned", Decision::Start);
        check("Apsc", "never-spawned", Decision::Start);
        check("Ad", "never-spawned-yet-dirty", Decision::Ask);
        check("ASx", "sealed", Decision::AdoptSeal);
        check("ASxapsdc", "sealed", Decision::AdoptSeal);
        check("ASa", "alive", Decision::Reattach);
        check("ASapsdc", "alive", Decision::Reattach);
        check("ASp", "proved", Decision::AdoptProof);
        check("ASpsdc", "proved", Decision::AdoptProof);
        check("ASc", "contested", Decision::Ask);
        check("ASsdc", "contested", Decision::Ask);
        check("ASsd", "session-dirty", Decision::Continue);
        check("ASs", "session-clean", Decision::Continue);
        check("ASd", "died-dirty", Decision::RevertThenRerun);
        check("AS", "died-clean", Decision::Rerun);
    }

    #[track_caller]
    fn check(letters: &str, name: &str, decision: Decision) {
        let has = |letter| letters.contains(letter);
        let row = row_for(AttemptFacts {
            announced: has('A'),
            spawned: has('S'),
            sealed: has('x'),
            alive: has('a'),
            proof: has('p'),
            session: has('s'),
            dirty: has('d'),
            contested: has('c'),
        });
        assert_eq!((row.rung.as_str(), row.decision), (name, decision), "{letters}");
    }

    #[test]
    fn an_effect_that_may_have_happened_is_never_repeated_on_a_guess() {
        assert_eq!(effect_decision(Probed::Happened), Decision::AdoptProof);
        assert_eq!(effect_decision(Probed::Absent), Decision::Rerun);
        assert_eq!(effect_decision(Probed::Unknown), Decision::Ask);
    }
}
