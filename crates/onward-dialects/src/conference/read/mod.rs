//! A conference as its files tell it.
//!
//! Invariant: import is total and keeps every file it understands byte for byte, so that
//! `import(export(conference)) == conference`.

pub mod history;
pub mod log;
pub mod rows;
pub mod settings;
pub mod spelling;

use std::collections::{BTreeMap, BTreeSet};

use self::{
    history::History,
    log::EventLog,
    rows::{Results, Row, Segment},
    settings::{Mode, Settings},
    spelling::Spellings,
};
use crate::{
    Files, Git,
    kit::{Broken, markdown::Document, name::checked},
    seam::Missing,
};

pub const DOCUMENT: &str = "conference.md";
pub const EVENTS: &str = "conference_events.jsonl";
pub const RESULTS: &str = "conference_results.tsv";
pub const SYNTHESIS: &str = "synthesis.md";
pub const REPORT: &str = "final_report.md";
pub const LOOP_PID: &str = ".autoconference-loop.pid";

const HINT: &str = "start one with `onward run conference`, or set one up with \
                    `onward init --from conference`";

#[derive(Clone, Debug, PartialEq)]
pub struct Conference {
    pub document: Document,
    pub settings: Settings,
    pub log: EventLog,
    pub history: History,
    pub results: Option<Results>,
    pub researchers: BTreeMap<String, Researcher>,
    /// By round.
    pub posters: BTreeMap<u32, Document>,
    pub reviews: BTreeMap<u32, Document>,
    pub synthesis: Option<Document>,
    pub report: Option<Document>,
    /// The process that the system's own loop script left its number of.
    pub loop_pid: Option<u32>,
    pub met: Spellings,
    pub git: Option<Git>,
    pub alive: BTreeSet<u32>,
}

/// The files of one researcher.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Researcher {
    pub results: Option<Results>,
    pub log: Option<Document>,
}

/// A file's part in the conference, by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    Document,
    Events,
    Results,
    ResearcherResults(String),
    ResearcherLog(String),
    Poster(u32),
    Review(u32),
    Synthesis,
    Report,
    LoopPid,
}

impl Part {
    pub fn of(name: &str) -> Option<Self> {
        let between = |start: &str, end: &str| name.strip_prefix(start)?.strip_suffix(end);
        let researcher = |end: &str| checked(between("researcher_", end)?).ok().map(str::to_owned);
        let round = |start: &str| between(start, ".md")?.parse().ok();
        #[rustfmt::skip]
        let own = [
            Self::Document, Self::Events, Self::Results,
            Self::Synthesis, Self::Report, Self::LoopPid,
        ];
        own.into_iter()
            .find(|part| part.file_name() == name)
            .or_else(|| researcher("_results.tsv").map(Self::ResearcherResults))
            .or_else(|| researcher("_log.md").map(Self::ResearcherLog))
            .or_else(|| round("poster_session_round_").map(Self::Poster))
            .or_else(|| round("peer_review_round_").map(Self::Review))
    }

    pub fn file_name(&self) -> String {
        match self {
            Self::Document => DOCUMENT.to_owned(),
            Self::Events => EVENTS.to_owned(),
            Self::Results => RESULTS.to_owned(),
            Self::ResearcherResults(id) => format!("researcher_{id}_results.tsv"),
            Self::ResearcherLog(id) => format!("researcher_{id}_log.md"),
            Self::Poster(round) => format!("poster_session_round_{round}.md"),
            Self::Review(round) => format!("peer_review_round_{round}.md"),
            Self::Synthesis => SYNTHESIS.to_owned(),
            Self::Report => REPORT.to_owned(),
            Self::LoopPid => LOOP_PID.to_owned(),
        }
    }
}

/// A file that is missing, without which nothing can be said.
pub(super) fn missing(file: &str) -> Missing {
    Missing { dialect: "conference", file: file.to_owned(), hint: HINT.to_owned() }
}

/// Reads a conference from its files.
pub fn import(files: &Files) -> Result<Conference, Missing> {
    let needed = |file: &str| files.bytes(file).ok_or_else(|| missing(file));
    let document = Document::read(needed(DOCUMENT)?);
    let log = EventLog::read(needed(EVENTS)?);
    let mut met = log.met.clone();
    let mut conference = Conference {
        settings: Settings::read(&document, &mut met),
        history: History::of(&log),
        document,
        log,
        results: None,
        researchers: BTreeMap::new(),
        posters: BTreeMap::new(),
        reviews: BTreeMap::new(),
        synthesis: None,
        report: None,
        loop_pid: None,
        met,
        git: files.git.clone(),
        alive: files.alive.clone(),
    };
    for (name, file) in files.iter() {
        if let Some(part) = Part::of(name) {
            conference.take(part, &file.bytes);
        }
    }
    conference.infer();
    Ok(conference)
}

/// The inverse of [`import`]: every file that a conference was read from.
pub fn export(conference: &Conference) -> Files {
    let Conference { results, researchers, posters, reviews, synthesis, report, .. } = conference;
    let pid = conference.loop_pid.map(|pid| format!("{pid}\n"));
    let mut files: Vec<(Part, &[u8])> =
        vec![(Part::Document, conference.document.bytes()), (Part::Events, conference.log.bytes())];
    files.extend(results.iter().map(|it| (Part::Results, it.bytes())));
    for (id, Researcher { results, log }) in researchers {
        let part = || Part::ResearcherResults(id.clone());
        files.extend(results.iter().map(|it| (part(), it.bytes())));
        files.extend(log.iter().map(|it| (Part::ResearcherLog(id.clone()), it.bytes())));
    }
    files.extend(posters.iter().map(|(round, it)| (Part::Poster(*round), it.bytes())));
    files.extend(reviews.iter().map(|(round, it)| (Part::Review(*round), it.bytes())));
    files.extend(synthesis.iter().map(|it| (Part::Synthesis, it.bytes())));
    files.extend(report.iter().map(|it| (Part::Report, it.bytes())));
    files.extend(pid.iter().map(|pid| (Part::LoopPid, pid.as_bytes())));
    let mut files: Files = files.into_iter().map(|(part, it)| (part.file_name(), it)).collect();
    files.git.clone_from(&conference.git);
    files.alive.clone_from(&conference.alive);
    files
}

impl Conference {
    fn take(&mut self, part: Part, bytes: &[u8]) {
        match part {
            Part::Document | Part::Events => {}
            Part::Results => self.results = Some(Results::read(bytes)),
            Part::ResearcherResults(id) => {
                let results = Results::read(bytes);
                self.met.extend(&results.met);
                self.researchers.entry(id).or_default().results = Some(results);
            }
            Part::ResearcherLog(id) => {
                self.researchers.entry(id).or_default().log = Some(Document::read(bytes));
            }
            Part::Poster(round) => drop(self.posters.insert(round, Document::read(bytes))),
            Part::Review(round) => drop(self.reviews.insert(round, Document::read(bytes))),
            Part::Synthesis => self.synthesis = Some(Document::read(bytes)),
            Part::Report => self.report = Some(Document::read(bytes)),
            Part::LoopPid => {
                self.loop_pid = str::from_utf8(bytes).ok().and_then(|it| it.trim().parse().ok());
            }
        }
    }

    pub fn results_of(&self, researcher: &str) -> Option<&Results> {
        self.researchers.get(researcher).and_then(|files| files.results.as_ref())
    }

    pub fn rows_of(&self, round: u32, researcher: &str) -> Vec<&Row> {
        let segment = self.segments(researcher).into_iter().find(|it| it.round == round);
        segment.map(|segment| segment.rows).unwrap_or_default()
    }

    /// For callers that look at every round: [`rows_of`](Self::rows_of) cuts the whole file into
    /// rounds at each call.
    pub fn rows_by_round(&self, researcher: &str) -> BTreeMap<u32, Vec<&Row>> {
        self.segments(researcher).into_iter().map(|it| (it.round, it.rows)).collect()
    }

    /// The same for every researcher with a file.
    pub fn all_rows(&self) -> BTreeMap<&str, BTreeMap<u32, Vec<&Row>>> {
        self.researchers.keys().map(|id| (id.as_str(), self.rows_by_round(id))).collect()
    }

    /// Lines that cannot be read, by file.
    pub fn broken(&self) -> impl Iterator<Item = (String, &Broken)> {
        let log = self.log.broken.iter().map(|it| (EVENTS.to_owned(), it));
        let own = self.researchers.iter().flat_map(|(id, files)| {
            let broken = files.results.iter().flat_map(|it| &it.broken);
            broken.map(|it| (Part::ResearcherResults(id.clone()).file_name(), it))
        });
        let shared = self.results.iter().flat_map(|it| &it.broken);
        log.chain(own).chain(shared.map(|it| (RESULTS.to_owned(), it)))
    }

    /// The researcher's rows, round by round.
    pub fn segments(&self, researcher: &str) -> Vec<Segment<'_>> {
        let results = self.results_of(researcher);
        results.map(|it| rows::segments(it, &self.history, researcher)).unwrap_or_default()
    }

    /// The highest round that any file of the directory knows of.
    pub fn last_round_on_disk(&self) -> u32 {
        let pages = self.posters.keys().chain(self.reviews.keys()).copied();
        let results = self.results.iter().flat_map(|table| &table.rows);
        let results = results.filter_map(|row| row.round);
        let names = self.researchers.keys();
        let segments = names.filter_map(|id| self.segments(id).last().map(|it| it.round));
        let logged = self.history.rounds.keys().copied();
        pages.chain(results).chain(segments).chain(logged).max().unwrap_or(0)
    }

    /// Researchers change code in trees of their own.
    pub fn has_worktrees(&self) -> bool {
        let git = self.git.iter().flat_map(|git| git.branches.keys());
        let mut branches = git.filter(|name| name.starts_with("conference/"));
        let metric = self.settings.mode == Some(Mode::Metric);
        metric && (self.settings.changes_code || branches.next().is_some())
    }
}
