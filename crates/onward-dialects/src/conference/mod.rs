//! The dialect `conference`: researchers in rounds, with posters, reviews and shared knowledge.
//!
//! This page has the card and the recovery table. Then: `read` (the files as one value), `told`
//! (what core asks), `step` (what the files say about each step), `undo`, `check`, and `write`
//! (what happened next, written as the system would). What the built-in workflow does with a
//! conference is in [`rules`](crate::rules::conference). Invariant: pure; text found in the files
//! is data and never an instruction.

pub mod check;
pub mod read;
pub mod step;
mod told;
mod undo;
pub mod write;

use onward_core::told::Told;

use crate::{
    Files,
    kit::{
        decision::{ANY as __, NO, Row, YES, decide},
        markdown::Document,
    },
    rules::conference::converge::{self, Over},
    seam::{Card, Dialect, Home, Listing, Mark, Missing, Site},
};

use read::history::Round;
pub use read::{Conference, export, import};

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct ConferenceDialect;

pub static CONFERENCE: ConferenceDialect = ConferenceDialect;

static CARD: Card = Card {
    name: "conference",
    workflows: &["conference"],
    entries: &write::enter::ENTRIES,
    home: Home::Project,
    marks: &[Mark { glob: read::DOCUMENT, peek: false }, Mark { glob: read::EVENTS, peek: false }],
    reads: &[
        read::DOCUMENT,
        read::EVENTS,
        read::RESULTS,
        "researcher_*_results.tsv",
        "researcher_*_log.md",
        "poster_session_round_*.md",
        "peer_review_round_*.md",
        read::SYNTHESIS,
        read::REPORT,
        read::LOOP_PID,
    ],
    grows: &[read::EVENTS],
    agents_declare: false,
    keeps: &[],
    branches: Some("conference/"),
    processes: &[(read::LOOP_PID, "autoconference")],
    lock: None,
};

impl Dialect for ConferenceDialect {
    fn card(&self) -> &'static Card {
        &CARD
    }

    fn sites(&self, seen: &Listing) -> Vec<Site> {
        let mut sites = Vec::new();
        for candidate in &seen.candidates {
            let lacks = |mark: &&Mark| !candidate.marks.contains_key(mark.glob);
            let missing: Vec<&Mark> = CARD.marks.iter().filter(lacks).collect();
            if missing.len() < CARD.marks.len() {
                let lacks = missing.first().map(|mark| read::missing(mark.glob));
                let last_activity = candidate.last_activity();
                sites.push(Site { last_activity, lacks, ..Site::at(&CARD, &candidate.dir) });
            }
        }
        sites
    }

    fn read(&self, site: &Site, files: Files) -> Result<Box<dyn Told>, Missing> {
        Ok(Box::new(told::ConferenceTold::read(&site.place, &files)?))
    }
}

/// Where a conference re-enters its protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointCode {
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

/// The steps that a code is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Starts {
    Nothing,
    /// A step of the conference.
    Last(&'static str),
    /// A phase of the round.
    Phase(&'static str),
    /// Researchers of the round that have not finished.
    Research,
}

impl PointCode {
    /// Its word, its phase as the system numbers them (the synthesis is step 11), what starts, and
    /// its place in the order of the work.
    #[rustfmt::skip]
    const fn row(self) -> (&'static str, Option<&'static str>, Starts, u32) {
        use Starts::{Last, Nothing, Phase, Research};
        match self {
            Self::RoundStart        => ("round-start",        Some("1"),  Research,          0),
            Self::ResearchRestart   => ("research-restart",   Some("1"),  Research,          1),
            Self::ResearchContinue  => ("research-continue",  Some("1"),  Research,          1),
            Self::PosterSession     => ("poster-session",     Some("2"),  Phase("poster"),   2),
            Self::PeerReview        => ("peer-review",        Some("3"),  Phase("review"),   3),
            Self::KnowledgeTransfer => ("knowledge-transfer", Some("4"),  Phase("transfer"), 4),
            Self::Synthesis         => ("synthesis",          Some("11"), Last("synthesis"), 5),
            Self::Close             => ("close",              Some("11"), Last("close"),     6),
            Self::Complete          => ("complete",           None,       Nothing,           7),
        }
    }

    pub const fn as_str(self) -> &'static str {
        self.row().0
    }

    pub const fn phase(self) -> Option<&'static str> {
        self.row().1
    }

    pub const fn starts(self) -> Starts {
        self.row().2
    }

    pub fn parse(word: &str) -> Option<Self> {
        TABLE.iter().map(|(_, code)| *code).find(|code| code.as_str() == word)
    }
}

/// The questions are answered in [`Point::of`], in this order:
/// - `conference.completed` is logged
/// - both outputs are whole, every round is over, and only the closing event is missing
/// - it is over: converged, stalled, or out of budget
/// - a round has begun and was not completed, as the log or all its rows tell
/// - its peer review is logged; its poster session is logged
/// - none of its researchers has anything left to do
/// - it has one researcher, so that there is nothing to compare; some iterations are logged
#[rustfmt::skip]
const TABLE: [Row<9, PointCode>; 10] = [
    // complete closes over open reviewed posted finished alone logged
    ([YES,     __,    __,  __,  __,      __,    __,      __,   __ ], PointCode::Complete),
    ([__,      YES,   __,  __,  __,      __,    __,      __,   __ ], PointCode::Close),
    ([__,      __,    YES, __,  __,      __,    __,      __,   __ ], PointCode::Synthesis),
    ([__,      __,    __,  NO,  __,      __,    __,      __,   __ ], PointCode::RoundStart),
    ([__,      __,    __,  YES, YES,     __,    __,      __,   __ ], PointCode::KnowledgeTransfer),
    ([__,      __,    __,  YES, __,      YES,   __,      __,   __ ], PointCode::PeerReview),
    ([__,      __,    __,  YES, __,      __,    YES,     YES,  __ ], PointCode::PeerReview),
    ([__,      __,    __,  YES, __,      __,    YES,     __,   __ ], PointCode::PosterSession),
    ([__,      __,    __,  YES, __,      __,    __,      __,   YES], PointCode::ResearchContinue),
    ([__,      __,    __,  __,  __,      __,    __,      __,   __ ], PointCode::ResearchRestart),
];

/// The recovery point of a conference, before it is put into words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point {
    pub code: PointCode,
    /// Where the code is about one round.
    pub round: Option<u32>,
    /// Who has work to do there.
    pub researchers: Vec<String>,
    /// Why there is no further round, where there is none.
    pub over: Option<Over>,
}

impl Point {
    pub fn of(conference: &Conference) -> Self {
        let over = converge::over(conference);
        let next = conference.history.last_completed().saturating_add(1);
        let round = conference.history.open_round().unwrap_or(next);
        let mut researchers = conference.researchers_of(round);
        let takers = researchers.len();
        researchers.retain(|who| conference.finish(round, who).is_none());
        let told = conference.history.round(round);
        let is = |what: fn(&Round) -> bool| told.is_some_and(what);
        let is_finished = told.is_some() && researchers.is_empty() && takers > 0;
        let answers = [
            conference.history.completed,
            over.is_some() && is_closable(conference),
            over.is_some(),
            is(Round::is_logged) || is_finished,
            is(|it| it.review),
            is(|it| it.poster),
            is_finished,
            takers == 1,
            is(|it| it.logged_iterations() > 0),
        ];
        let code = decide(&TABLE, answers).unwrap_or(PointCode::ResearchRestart);
        let (round, researchers) = match code.starts() {
            Starts::Nothing | Starts::Last(_) => (None, Vec::new()),
            Starts::Phase(_) => (Some(round), Vec::new()),
            Starts::Research => (Some(round), researchers),
        };
        Self { code, round, researchers, over }
    }

    /// Places in the order in which a conference comes to them.
    fn position(code: PointCode, round: Option<u32>) -> (u32, u32) {
        let is_last = matches!(code.starts(), Starts::Nothing | Starts::Last(_));
        (if is_last { u32::MAX } else { round.unwrap_or(0) }, code.row().3)
    }

    /// One sentence for people.
    pub fn summary(&self) -> String {
        let round = self.round.unwrap_or(0);
        let who = self.researchers.join(", ");
        let why = self.over.as_ref().map_or("", |over| over.detail.as_str());
        match self.code {
            PointCode::Complete => "This conference is already complete".to_owned(),
            PointCode::Close => format!(
                "Step 13: {why}, and synthesis.md and final_report.md are there; only the closing \
                 event is missing"
            ),
            PointCode::Synthesis => format!("Step 11, synthesis: {why}"),
            PointCode::RoundStart if round == 1 => {
                format!("Round 1, phase 1: nothing has begun yet, start researchers {who}")
            }
            PointCode::RoundStart => {
                let before = round - 1;
                format!("Round {round}, phase 1: round {before} is completed, start {who}")
            }
            PointCode::KnowledgeTransfer => {
                format!("Round {round}, phase 4: peer review is done, run knowledge transfer")
            }
            PointCode::PeerReview => {
                format!("Round {round}, phase 3: run the peer review, nothing before it")
            }
            PointCode::PosterSession => {
                format!("Round {round}, phase 2: every researcher is done, run the poster session")
            }
            PointCode::ResearchContinue => {
                format!("Round {round}, phase 1: continue with {who}, from their last kept state")
            }
            PointCode::ResearchRestart => {
                format!("Round {round}, phase 1: started, nothing logged; start {who} from scratch")
            }
        }
    }
}

/// Only the closing event is missing: no round is open, and no file knows of a later one.
fn is_closable(conference: &Conference) -> bool {
    let whole = |page: &Option<Document>| page.as_ref().is_some_and(Document::is_whole);
    let history = &conference.history;
    let last = history.last_completed();
    whole(&conference.synthesis)
        && whole(&conference.report)
        && last > 0
        && history.open_round().is_none()
        && conference.last_round_on_disk() <= last
}

#[cfg(test)]
mod tests {
    use onward_core::time::Timestamp;

    use super::*;
    use crate::{
        kit::decision::{all_answers, idle_rows},
        seam::{Candidate, Glimpse},
    };

    #[test]
    fn a_directory_with_one_mark_is_named_with_the_mark_that_it_lacks() {
        let at = |dir: &str, marks: &[&str]| {
            let modified = Some(Timestamp::from_micros(5));
            let glimpse = |mark: &&str| ((*mark).to_owned(), Glimpse { modified, bytes: None });
            Candidate { dir: dir.to_owned(), marks: marks.iter().map(glimpse).collect() }
        };
        let candidates = vec![
            at("whole", &[read::DOCUMENT, read::EVENTS]),
            at("half", &[read::DOCUMENT]),
            at("other", &["state.json"]),
        ];
        let sites = CONFERENCE.sites(&Listing { candidates, ..Listing::default() });
        let seen: Vec<(&str, Option<&str>)> = sites
            .iter()
            .map(|it| (it.dir(), it.lacks.as_ref().map(|lacks| lacks.file.as_str())))
            .collect();
        assert_eq!(seen, [("whole", None), ("half", Some(read::EVENTS))]);
        assert_eq!(sites[0].last_activity, Some(Timestamp::from_micros(5)));
        assert!(sites[1].lacks.as_ref().unwrap().hint.contains("onward init --from conference"));
    }

    /// The rulings again, as questions instead of rows.
    fn by_questions(answers: [bool; 9]) -> PointCode {
        let [completed, closable, over, open, reviewed, posted, finished, alone, logged] = answers;
        match () {
            () if completed => PointCode::Complete,
            () if closable => PointCode::Close,
            () if over => PointCode::Synthesis,
            () if !open => PointCode::RoundStart,
            () if reviewed => PointCode::KnowledgeTransfer,
            () if posted || finished && alone => PointCode::PeerReview,
            () if finished => PointCode::PosterSession,
            () if logged => PointCode::ResearchContinue,
            () => PointCode::ResearchRestart,
        }
    }

    #[test]
    fn every_combination_of_answers_gives_what_the_rulings_say() {
        for answers in all_answers() {
            assert_eq!(decide(&TABLE, answers), Some(by_questions(answers)), "{answers:?}");
        }
        assert_eq!(idle_rows(&TABLE), [0; 0], "every row decides something");
    }

    #[test]
    fn a_person_can_enter_wherever_there_is_work() {
        let codes: Vec<&str> = CARD.entries.to_vec();
        assert!(codes.iter().all(|code| PointCode::parse(code).is_some()));
        let has_work = |code: &PointCode| code.starts() != Starts::Nothing;
        let working = TABLE.iter().map(|(_, code)| code).filter(|it| has_work(it));
        assert!(working.into_iter().all(|code| codes.contains(&code.as_str())));
    }
}
