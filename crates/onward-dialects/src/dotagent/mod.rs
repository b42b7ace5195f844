//! The dialect `dotagent`: five phases whose state is two files below `memory/state`.
//!
//! This page holds the card and the recovery table; `read` makes one value of the files, `tasks`
//! says how far each task is (`left` and `recall` where the list of them is lost), `check` what is
//! wrong, `told` and `step` answer core, `overtaken` says what of our own run counts no more,
//! `write` changes the state files. Invariant: pure; where the run re-enters is the table's
//! decision alone.

mod check;
mod enter;
mod last;
pub mod left;
mod overtaken;
pub mod read;
mod recall;
mod resumed;
mod step;
mod tasks;
mod told;
pub mod write;

use std::collections::BTreeMap;

use onward_core::{time::Timestamp, told::Told};
use serde_json::Value;

pub use tasks::ATTEMPTS_MAX;

use crate::{
    Files,
    kit::{
        age::stamp,
        decision::{ANY, NO, Row, YES, decide},
        path::{component, inside, literal},
    },
    seam::{Candidate, Card, Dialect, Home, Listing, Mark, Missing, Site},
};

pub const PHASE: &str = "memory/state/phase.json";
pub const EXECUTION: &str = "memory/state/execution.json";
/// What both files, and a run of ours, call the workflow by.
pub const ID: &str = "workflow_id";
const PHASE_TMP: &str = "memory/state/phase.json.tmp";

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct DotagentDialect;

pub static DOTAGENT: DotagentDialect = DotagentDialect;

static CARD: Card = Card {
    name: "dotagent",
    workflows: &["dotagent"],
    entries: &[
        "requirements",
        "approval",
        "architects",
        "roundtable",
        "implementation",
        "verification",
        "reflection",
    ],
    home: Home::Project,
    marks: &[
        Mark { glob: PHASE, peek: true },
        Mark { glob: PHASE_TMP, peek: true },
        Mark { glob: EXECUTION, peek: true },
    ],
    reads: &[
        "memory/state/*.json",
        "memory/state/*.json.tmp",
        "memory/reports/*.json",
        "memory/reports/*.json.tmp",
        "memory/reports/designs/*.json",
        "memory/reports/designs/*.json.tmp",
        "memory/contracts/*.json",
        "memory/reflections/*.json",
        "memory/tasks/*/output.json",
        "memory/tasks/*/output.json.tmp",
        "memory/tasks/*/verification.json",
        "memory/tasks/*/verification.json.tmp",
        // Those of earlier tries, put aside.
        "memory/tasks/*/output.*.json",
        "memory/tasks/*/verification.*.json",
    ],
    grows: &[],
    agents_declare: true,
    keeps: &[],
    branches: None,
    processes: &[],
    lock: None,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    Requirements,
    Architecture,
    Implementation,
    Verification,
    Reflection,
}

impl Phase {
    pub const ALL: [Self; 5] = [
        Self::Requirements,
        Self::Architecture,
        Self::Implementation,
        Self::Verification,
        Self::Reflection,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Requirements => "REQUIREMENTS",
            Self::Architecture => "ARCHITECTURE",
            Self::Implementation => "IMPLEMENTATION",
            Self::Verification => "VERIFICATION",
            Self::Reflection => "REFLECTION",
        }
    }

    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|phase| phase.as_str().eq_ignore_ascii_case(word.trim()))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    Requirements,
    Approval,
    Architects,
    Roundtable,
    Implementation,
    Verification,
    Reflection,
    Complete,
}

impl Code {
    /// Its word, and the phase that it re-enters.
    #[rustfmt::skip]
    const fn row(self) -> (&'static str, Option<Phase>) {
        match self {
            Self::Requirements   => ("requirements",   Some(Phase::Requirements)),
            Self::Approval       => ("approval",       Some(Phase::Requirements)),
            Self::Architects     => ("architects",     Some(Phase::Architecture)),
            Self::Roundtable     => ("roundtable",     Some(Phase::Architecture)),
            Self::Implementation => ("implementation", Some(Phase::Implementation)),
            Self::Verification   => ("verification",   Some(Phase::Verification)),
            Self::Reflection     => ("reflection",     Some(Phase::Reflection)),
            Self::Complete       => ("complete",       None),
        }
    }

    pub const fn as_str(self) -> &'static str {
        self.row().0
    }

    pub const fn phase(self) -> Option<Phase> {
        self.row().1
    }
}

/// What decides. A report counts only once the run has reached the phase that makes it, or when it
/// is younger than what comes before it: an older one is of a run before this.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "the columns of a decision table")]
pub struct Facts {
    /// `demand.json` is there and parses.
    pub demand: bool,
    /// The user has said yes to it.
    pub approved: bool,
    /// The designs parse: all that were asked for, or one where nothing says how many.
    pub designs: bool,
    /// `final_design.json` is there and parses.
    pub design: bool,
    /// Every task is verified, and there is at least one.
    pub built: bool,
    /// `verification.json` is there and parses.
    pub judged: bool,
    /// Its verdict is good.
    pub passed: bool,
    /// A reflection on this run is there and parses.
    pub reflected: bool,
}

/// The first row of the phase that fits decides; no code = look at the next phase.
#[rustfmt::skip]
const TABLE: [(Phase, Row<8, Option<Code>>); 13] = [
    //                      demand approved designs design built judged passed reflected
    (Phase::Requirements,   ([NO , ANY, ANY, ANY, ANY, ANY, ANY, ANY], Some(Code::Requirements))),
    (Phase::Requirements,   ([YES, NO , ANY, ANY, ANY, ANY, ANY, ANY], Some(Code::Approval))),
    (Phase::Requirements,   ([YES, YES, ANY, ANY, ANY, ANY, ANY, ANY], None)),
    (Phase::Architecture,   ([ANY, ANY, ANY, YES, ANY, ANY, ANY, ANY], None)),
    (Phase::Architecture,   ([ANY, ANY, NO , NO , ANY, ANY, ANY, ANY], Some(Code::Architects))),
    (Phase::Architecture,   ([ANY, ANY, YES, NO , ANY, ANY, ANY, ANY], Some(Code::Roundtable))),
    (Phase::Implementation, ([ANY, ANY, ANY, ANY, NO , ANY, ANY, ANY], Some(Code::Implementation))),
    (Phase::Implementation, ([ANY, ANY, ANY, ANY, YES, ANY, ANY, ANY], None)),
    (Phase::Verification,   ([ANY, ANY, ANY, ANY, ANY, NO , ANY, ANY], Some(Code::Verification))),
    (Phase::Verification,   ([ANY, ANY, ANY, ANY, ANY, YES, NO , ANY], Some(Code::Implementation))),
    (Phase::Verification,   ([ANY, ANY, ANY, ANY, ANY, YES, YES, ANY], None)),
    (Phase::Reflection,     ([ANY, ANY, ANY, ANY, ANY, ANY, ANY, NO ], Some(Code::Reflection))),
    (Phase::Reflection,     ([ANY, ANY, ANY, ANY, ANY, ANY, ANY, YES], Some(Code::Complete))),
];

impl Facts {
    const fn answers(self) -> [bool; 8] {
        let Self { demand, approved, designs, design, built, judged, passed, reflected } = self;
        [demand, approved, designs, design, built, judged, passed, reflected]
    }
}

/// The rows of one phase.
fn rows_of(phase: Phase) -> Vec<Row<8, Option<Code>>> {
    TABLE.iter().filter(|(of, _)| *of == phase).map(|(_, row)| *row).collect()
}

/// Where a run whose state names `phase` re-enters.
pub fn code(phase: Phase, facts: Facts) -> Code {
    for phase in Phase::ALL.into_iter().filter(|it| *it >= phase) {
        if let Some(code) = decide(&rows_of(phase), facts.answers()).flatten() {
            return code;
        }
    }
    Code::Complete
}

impl Dialect for DotagentDialect {
    fn card(&self) -> &'static Card {
        &CARD
    }

    fn sites(&self, seen: &Listing) -> Vec<Site> {
        seen.candidates.iter().filter_map(site).collect()
    }

    fn read(&self, site: &Site, files: Files) -> Result<Box<dyn Told>, Missing> {
        if [PHASE, PHASE_TMP, EXECUTION].iter().all(|path| !files.contains(path)) {
            return Err(Missing {
                dialect: CARD.name,
                file: PHASE.to_owned(),
                hint: "start the workflow again; nothing says how far it was".to_owned(),
            });
        }
        Ok(Box::new(told::DotagentTold::new(site.dir(), known_id(&site.inputs), files)))
    }

    /// One workflow after the other lies in the same place: its id says which one is meant.
    fn site(&self, dir: &str, _workflow: &str, inputs: &BTreeMap<String, Value>) -> Site {
        let mut site = Site::at(&CARD, dir);
        if let Some(id) = known_id(inputs) {
            site.inputs.insert(ID.to_owned(), id.into());
        }
        site
    }

    fn replaces(&self) -> bool {
        true
    }

    fn is_told_what(&self) -> bool {
        true
    }

    /// Reports and tasks, and with them what our journal knows.
    fn read_rest(&self, site: &Site, files: Files) -> Option<Box<dyn Told>> {
        files.iter().next()?;
        Some(Box::new(told::DotagentTold::new(site.dir(), known_id(&site.inputs), files)))
    }

    /// Where one of the two names no id, they are the same.
    fn is_of(&self, site: &Site, inputs: &BTreeMap<String, Value>) -> bool {
        known_id(&site.inputs).zip(known_id(inputs)).is_none_or(|(there, ours)| there == ours)
    }

    fn fresh(&self, given: &BTreeMap<String, Value>, now: Timestamp) -> BTreeMap<String, Value> {
        let made = || (ID.to_owned(), Value::from(format!("wf-{}", stamp(now))));
        known_id(given).is_none().then(made).into_iter().collect()
    }
}

/// The id of a workflow, where one is named.
fn known_id(inputs: &BTreeMap<String, Value>) -> Option<&str> {
    inputs.get(ID).and_then(Value::as_str).map(str::trim).filter(|it| !it.is_empty())
}

/// The run that a directory with `memory/` in it holds.
fn site(candidate: &Candidate) -> Option<Site> {
    let glimpse = |path: &str| candidate.marks.get(path).and_then(|it| it.bytes.as_deref());
    let known = [PHASE, PHASE_TMP, EXECUTION];
    if !known.iter().any(|path| candidate.marks.contains_key(*path)) {
        return None;
    }
    let mut site = Site::at(&CARD, &candidate.dir);
    let mut named = None;
    for bytes in known.iter().filter_map(|path| glimpse(path)) {
        let (id, outputs) = read::glance(bytes);
        named = named.or(id);
        // Outputs may lie where the card does not look.
        let explicit = outputs.iter().filter_map(|path| inside(path));
        if let Some(root) = site.roots.first_mut() {
            root.reads.extend(explicit.map(|path| literal(&path)));
        }
    }
    if let Some(root) = site.roots.first_mut() {
        let mut kept = std::collections::BTreeSet::new();
        root.reads.retain(|glob| kept.insert(glob.clone()));
    }
    site.name = match named.filter(|it: &String| !it.trim().is_empty()) {
        Some(id) => {
            let name = component(&id);
            site.inputs.insert(ID.to_owned(), id.into());
            name
        }
        None if candidate.dir == "." => CARD.name.to_owned(),
        None => site.name,
    };
    site.last_activity = candidate.last_activity();
    Some(site)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::decision::{all_answers, idle_rows};

    fn facts(answers: [bool; 8]) -> Facts {
        let [demand, approved, designs, design, built, judged, passed, reflected] = answers;
        Facts { demand, approved, designs, design, built, judged, passed, reflected }
    }

    /// The rulings again, as questions instead of rows.
    fn by_questions(phase: Phase, facts: Facts) -> Code {
        if phase == Phase::Requirements {
            if !facts.demand {
                return Code::Requirements;
            }
            if !facts.approved {
                return Code::Approval;
            }
        }
        if phase <= Phase::Architecture && !facts.design {
            return if facts.designs { Code::Roundtable } else { Code::Architects };
        }
        if phase <= Phase::Implementation && !facts.built {
            return Code::Implementation;
        }
        if phase <= Phase::Verification {
            if !facts.judged {
                return Code::Verification;
            }
            if !facts.passed {
                return Code::Implementation;
            }
        }
        if facts.reflected { Code::Complete } else { Code::Reflection }
    }

    #[test]
    fn every_phase_with_every_combination_of_facts_gives_what_the_rulings_say() {
        for phase in Phase::ALL {
            for facts in all_answers().map(facts) {
                assert_eq!(code(phase, facts), by_questions(phase, facts), "{phase:?} {facts:?}");
            }
        }
    }

    #[test]
    fn each_phase_decides_whatever_the_facts_are_and_each_row_is_needed() {
        for phase in Phase::ALL {
            let rows = rows_of(phase);
            assert!(all_answers().all(|it| decide(&rows, it).is_some()), "{phase:?}");
            assert_eq!(idle_rows(&rows), Vec::<usize>::new(), "{phase:?}");
        }
    }
}
