//! The recovery table: what to do with an attempt that an interruption left behind.
//!
//! The table *is* the policy. Exactly one row matches any set of facts; a test tries all of them.
//! To find the rule for a case, go down the columns: the first row whose marks fit is the only one.

use serde::Serialize;

/// What can be observed about one attempt after an interruption.
#[expect(clippy::struct_excessive_bools, reason = "independent observations, one per column")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The journal has `attempt.started`.
    pub announced: bool,
    /// The process existed, as far as anybody can tell; doubt counts as yes.
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
    /// Somebody else changed the same paths after it ended, or that cannot be ruled out.
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

/// One row: its name in the journal and in `plan`, its marks, its decision, its reason.
pub struct Row {
    pub name: &'static str,
    marks: [Option<bool>; 8],
    pub decision: Decision,
    pub why: &'static str,
}

const __: Option<bool> = None;
const NO: Option<bool> = Some(false);
const YES: Option<bool> = Some(true);

const fn row(
    name: &'static str,
    marks: [Option<bool>; 8],
    decision: Decision,
    why: &'static str,
) -> Row {
    Row { name, marks, decision, why }
}

#[rustfmt::skip]
pub const TABLE: [Row; 14] = [
    //                        announced spawned sealed alive proof session dirty contested
    row("seal-out-of-nowhere",    [NO,  __,  YES, __,  __,  __,  __,  __ ], Decision::Refuse,
        "an exit is sealed that no start announced"),
    row("process-out-of-nowhere", [NO,  __,  NO,  YES, __,  __,  __,  __ ], Decision::Refuse,
        "a process of this run lives that no start announced"),
    row("spawn-out-of-nowhere",   [NO,  YES, NO,  NO,  __,  __,  __,  __ ], Decision::Refuse,
        "a process was spawned that no start announced"),
    row("never-announced",        [NO,  NO,  NO,  NO,  __,  __,  __,  __ ], Decision::Start,
        "it never began"),
    row("sealed",                 [YES, __,  YES, __,  __,  __,  __,  __ ], Decision::AdoptSeal,
        "it ended, and how is on disk"),
    row("alive",                  [YES, __,  NO,  YES, __,  __,  __,  __ ], Decision::Reattach,
        "it is still running"),
    row("never-spawned",          [YES, NO,  NO,  NO,  __,  __,  NO,  __ ], Decision::Start,
        "it was announced and never spawned"),
    row("never-spawned-yet-dirty",[YES, NO,  NO,  NO,  __,  __,  YES, __ ], Decision::Ask,
        "it was never spawned, yet its paths changed: somebody else did that"),
    row("proved",                 [YES, YES, NO,  NO,  YES, __,  __,  __ ], Decision::AdoptProof,
        "it died, but what it left proves itself"),
    row("contested",              [YES, YES, NO,  NO,  NO,  __,  __,  YES], Decision::Ask,
        "it died, and somebody changed the same paths since"),
    row("session-dirty",          [YES, YES, NO,  NO,  NO,  YES, YES, NO ], Decision::Continue,
        "it died half-way, and its session knows what it was doing"),
    row("session-clean",          [YES, YES, NO,  NO,  NO,  YES, NO,  NO ], Decision::Continue,
        "it died, and its session can go on"),
    row("died-dirty",             [YES, YES, NO,  NO,  NO,  NO,  YES, NO ],
        Decision::RevertThenRerun, "it died half-way"),
    row("died-clean",             [YES, YES, NO,  NO,  NO,  NO,  NO,  NO ], Decision::Rerun,
        "it died and left nothing"),
];

/// Whether an attempt that was given up under this name was to go on in its own session.
pub fn continues(name: &str) -> bool {
    TABLE.iter().any(|row| row.name == name && row.decision == Decision::Continue)
}

/// The one row that matches.
pub fn row_for(facts: Facts) -> &'static Row {
    matching(facts).next().expect("the table is total")
}

fn matching(facts: Facts) -> impl Iterator<Item = &'static Row> {
    let Facts { announced, spawned, sealed, alive, proof, session, dirty, contested } = facts;
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

    fn all_facts() -> impl Iterator<Item = Facts> {
        (0_u8..=255).map(|bits| {
            let bit = |index: u8| bits & (1 << index) != 0;
            Facts {
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
            assert!(all_facts().any(|facts| row_for(facts).name == row.name), "{}", row.name);
            assert_eq!(TABLE.iter().filter(|it| it.name == row.name).count(), 1);
            assert!(!row.why.is_empty());
        }
    }

    #[test]
    fn only_the_rows_about_sessions_let_an_attempt_go_on_in_its_own() {
        let names: Vec<&str> =
            TABLE.iter().map(|row| row.name).filter(|it| continues(it)).collect();
        assert_eq!(names, ["session-dirty", "session-clean"]);
        assert!(!continues("exit 1"), "a failure has other words");
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
            // Only what the attempt itself changed is undone, and only when nobody else did.
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
        let row = row_for(Facts {
            announced: has('A'),
            spawned: has('S'),
            sealed: has('x'),
            alive: has('a'),
            proof: has('p'),
            session: has('s'),
            dirty: has('d'),
            contested: has('c'),
        });
        assert_eq!((row.name, row.decision), (name, decision), "{letters}");
    }

    #[test]
    fn an_effect_that_may_have_happened_is_never_repeated_on_a_guess() {
        assert_eq!(effect_decision(Probed::Happened), Decision::AdoptProof);
        assert_eq!(effect_decision(Probed::Absent), Decision::Rerun);
        assert_eq!(effect_decision(Probed::Unknown), Decision::Ask);
    }
}
