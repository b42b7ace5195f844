//! A conference as its files tell it.
//!
//! Invariant: import is total and keeps every file it understands byte for byte, so that
//! `import(export(conference)) == conference`.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    config::Settings,
    document::{Document, Fence, heading},
    event_log::{EventLog, Status, StuckLevel},
    history::{History, Round},
    rows::{self, Segment},
    tsv::Table,
    words::{self, Spellings},
};
use crate::{Files, Git, MissingMark};

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
    pub results: Option<Table>,
    pub researchers: BTreeMap<String, Researcher>,
    /// By round.
    pub posters: BTreeMap<u32, Page>,
    pub reviews: BTreeMap<u32, Page>,
    pub synthesis: Option<Page>,
    pub report: Option<Page>,
    /// The process that the system's own loop script left its number of.
    pub loop_pid: Option<u32>,
    pub met: Spellings,
    pub git: Option<Git>,
    pub alive: BTreeSet<u32>,
}

/// The files of one researcher.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Researcher {
    pub table: Option<Table>,
    pub log: Option<Page>,
}

/// A page of prose.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    pub bytes: Vec<u8>,
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
        let researcher = |end: &str| between("researcher_", end).filter(|id| !id.is_empty());
        let round = |start: &str| between(start, ".md")?.parse().ok();
        Some(match name {
            DOCUMENT => Self::Document,
            EVENTS => Self::Events,
            RESULTS => Self::Results,
            SYNTHESIS => Self::Synthesis,
            REPORT => Self::Report,
            LOOP_PID => Self::LoopPid,
            _ => {
                let results =
                    researcher("_results.tsv").map(|it| Self::ResearcherResults(it.into()));
                let log = researcher("_log.md").map(|it| Self::ResearcherLog(it.into()));
                let poster = round("poster_session_round_").map(Self::Poster);
                let review = round("peer_review_round_").map(Self::Review);
                results.or(log).or(poster).or(review)?
            }
        })
    }

    /// Whose file it is, where it is one researcher's own.
    pub fn researcher(&self) -> Option<&str> {
        match self {
            Self::ResearcherResults(id) | Self::ResearcherLog(id) => Some(id),
            Self::Document
            | Self::Events
            | Self::Results
            | Self::Poster(_)
            | Self::Review(_)
            | Self::Synthesis
            | Self::Report
            | Self::LoopPid => None,
        }
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

/// Reads a conference from its files.
pub fn import(files: &Files) -> Result<Conference, MissingMark> {
    let needed = |file: &'static str| {
        let missing = MissingMark { dialect: "conference", file, hint: HINT };
        files.bytes(file).ok_or(missing)
    };
    let document = Document::read(needed(DOCUMENT)?);
    let log = EventLog::read(needed(EVENTS)?);
    let mut met = log.met.clone();
    let settings = Settings::read(&document, &mut met);
    let page = |name: &str| files.bytes(name).map(|bytes| Page { bytes: bytes.to_owned() });
    let mut conference = Conference {
        history: History::of(&log),
        results: files.bytes(RESULTS).map(Table::read),
        researchers: BTreeMap::new(),
        posters: BTreeMap::new(),
        reviews: BTreeMap::new(),
        synthesis: page(SYNTHESIS),
        report: page(REPORT),
        loop_pid: files.bytes(LOOP_PID).and_then(pid),
        git: files.git.clone(),
        alive: files.alive.clone(),
        document,
        settings,
        log,
        met,
    };
    for (name, file) in files.iter() {
        let page = || Page { bytes: file.bytes.clone() };
        match Part::of(name) {
            Some(Part::ResearcherResults(id)) => {
                let table = Table::read(&file.bytes);
                conference.met.extend(&table.met);
                conference.researchers.entry(id).or_default().table = Some(table);
            }
            Some(Part::ResearcherLog(id)) => {
                conference.researchers.entry(id).or_default().log = Some(page());
            }
            Some(Part::Poster(round)) => {
                conference.posters.insert(round, page());
            }
            Some(Part::Review(round)) => {
                conference.reviews.insert(round, page());
            }
            Some(
                Part::Document
                | Part::Events
                | Part::Results
                | Part::Synthesis
                | Part::Report
                | Part::LoopPid,
            )
            | None => {}
        }
    }
    Ok(conference)
}

/// The inverse of [`import`]: every file that a conference was read from.
pub fn export(conference: &Conference) -> Files {
    let mut files: Vec<(Part, &[u8])> =
        vec![(Part::Document, conference.document.bytes()), (Part::Events, conference.log.bytes())];
    files.extend(conference.results.iter().map(|it| (Part::Results, it.bytes())));
    for (id, researcher) in &conference.researchers {
        let table = researcher.table.iter();
        files.extend(table.map(|it| (Part::ResearcherResults(id.clone()), it.bytes())));
        let log = researcher.log.iter();
        files.extend(log.map(|it| (Part::ResearcherLog(id.clone()), it.bytes.as_slice())));
    }
    let pages = |pages: &'_ BTreeMap<u32, Page>| -> Vec<(u32, Vec<u8>)> {
        pages.iter().map(|(round, page)| (*round, page.bytes.clone())).collect()
    };
    let (posters, reviews) = (pages(&conference.posters), pages(&conference.reviews));
    files.extend(posters.iter().map(|(round, it)| (Part::Poster(*round), it.as_slice())));
    files.extend(reviews.iter().map(|(round, it)| (Part::Review(*round), it.as_slice())));
    files.extend(conference.synthesis.iter().map(|it| (Part::Synthesis, it.bytes.as_slice())));
    files.extend(conference.report.iter().map(|it| (Part::Report, it.bytes.as_slice())));
    let pid = conference.loop_pid.map(|pid| format!("{pid}\n"));
    files.extend(pid.iter().map(|pid| (Part::LoopPid, pid.as_bytes())));
    let mut files: Files = files.into_iter().map(|(part, it)| (part.file_name(), it)).collect();
    files.git.clone_from(&conference.git);
    files.alive.clone_from(&conference.alive);
    files
}

pub(super) fn pid(bytes: &[u8]) -> Option<u32> {
    str::from_utf8(bytes).ok()?.trim().parse().ok()
}

impl Page {
    /// It has a title and something under it, and no block or heading was left open at its end.
    pub fn is_whole(&self) -> bool {
        let Ok(text) = str::from_utf8(&self.bytes) else { return false };
        let mut fence = Fence::default();
        let (mut titled, mut last_is_text) = (false, false);
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let fenced = fence.holds(line);
            let is_heading = !fenced && heading(line).is_some();
            titled |= is_heading;
            last_is_text = !is_heading;
        }
        titled && last_is_text && !fence.is_open()
    }
}

/// Why a researcher has nothing left to do in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    Count,
    Final,
    Stuck,
    Target,
    /// No iteration is left in the whole conference.
    Budget,
    /// Everybody is stuck.
    Stalled,
}

impl Conference {
    /// The researchers of a round: those it was started with, else those that conference.md asks
    /// for, and whoever logged something in it.
    pub fn researchers_of(&self, round: u32) -> Vec<String> {
        let told = self.history.round(round);
        let announced = told.map(|round| round.announced.clone()).unwrap_or_default();
        let mut all: BTreeSet<String> = if announced.is_empty() {
            self.asked_for().into_iter().collect()
        } else {
            announced.into_iter().collect()
        };
        all.extend(told.into_iter().flat_map(|round| round.trials.keys().cloned()));
        if all.is_empty() {
            all.extend(self.researchers.keys().cloned());
            let rounds = self.history.rounds.values();
            all.extend(rounds.flat_map(|round| round.trials.keys().cloned()));
        }
        all.into_iter().collect()
    }

    fn asked_for(&self) -> Vec<String> {
        let count = self.settings.count.or(self.history.announced);
        Settings { count, ..Settings::default() }.researchers()
    }

    /// How many iterations a researcher has in a round: as many as conference.md says, and no more
    /// than its share of what is left of all iterations, so that nobody's depends on who is faster.
    pub fn iterations_in(&self, round: u32) -> Option<u32> {
        let asked = self.iterations_asked(round)?;
        Some(self.share_of(round).map_or(asked, |share| asked.min(share)))
    }

    fn share_of(&self, round: u32) -> Option<u32> {
        let max = self.settings.max_iterations.filter(|max| *max > 0)?;
        let before = self.history.rounds.range(..round).map(|(_, it)| it.iterations());
        let used = u32::try_from(before.sum::<usize>()).unwrap_or(u32::MAX);
        let people = u32::try_from(self.researchers_of(round).len()).unwrap_or(u32::MAX);
        Some(max.saturating_sub(used).div_ceil(people.max(1)).max(1))
    }

    /// Whether as many iterations were logged as there may be at all.
    pub fn is_out_of_iterations(&self) -> bool {
        let max = self.settings.max_iterations.filter(|max| *max > 0);
        max.is_some_and(|max| self.history.iterations() >= max as usize)
    }

    fn iterations_asked(&self, round: u32) -> Option<u32> {
        if let Some(schedule) = &self.settings.iterations {
            return Some(schedule.in_round(round));
        }
        let settings = &self.settings;
        let divided = || {
            let whole = settings.max_iterations?;
            let shares = settings.count?.checked_mul(settings.max_rounds?)?;
            (shares > 0 && whole.is_multiple_of(shares)).then(|| whole / shares)
        };
        divided().or_else(|| self.iterations_seen())
    }

    /// What everybody had in every round whose research is over.
    pub fn iterations_seen(&self) -> Option<u32> {
        let rounds = self.history.rounds.iter();
        let over = rounds.filter(|(_, it)| it.completed.is_some() || it.poster || it.review);
        let mut counts = over.flat_map(|(number, round)| {
            round.trials.keys().map(|who| self.finished_iterations(*number, who))
        });
        let first = counts.next().filter(|count| *count > 0)?;
        counts.all(|count| count == first).then_some(first)
    }

    /// How many iterations of a round the researcher is known to have finished. A baseline row
    /// counts, logged or not; an iteration that is logged as number 3 was not the first.
    pub fn finished_iterations(&self, round: u32, researcher: &str) -> u32 {
        let Some(told) = self.history.round(round) else { return 0 };
        let logged: BTreeSet<u32> = told.trials_of(researcher).map(|(number, _)| number).collect();
        let count = u32::try_from(logged.len()).unwrap_or(u32::MAX);
        let segment = self.segments(researcher).into_iter().find(|it| it.round == round);
        let rows = segment.map(|segment| segment.rows).unwrap_or_default();
        let measured = rows.iter().any(|row| {
            let is_first = row.trial.iteration.unwrap_or(0) == 0 && !logged.contains(&0);
            is_first && row.trial.status == Status::Baseline && row.trial.metric.is_some()
        });
        let unlogged_baseline = u32::from(measured && !logged.is_empty());
        let highest = logged.last().copied().unwrap_or(0);
        count.saturating_add(unlogged_baseline).max(highest)
    }

    /// `None` while the researcher has something left to do in the round.
    pub fn finish(&self, round: u32, researcher: &str) -> Option<Finish> {
        let told = self.history.round(round)?;
        let trials = || told.trials_of(researcher);
        let last = trials().last().map(|(_, trial)| trial.status);
        let stuck = told.stuck.get(researcher);
        let at_least = |level| matches!(stuck, Some(StuckLevel::Level(it)) if *it >= level);
        let done = self.finished_iterations(round, researcher);
        let target = self.settings.target.filter(|_| !self.target_met_before(round));
        let meets = |(number, trial): (u32, &super::event_log::Trial)| {
            let reached = target.zip(trial.metric).is_some_and(|(it, metric)| it.is_met_by(metric));
            number > 0 && trial.status.stands() && reached || trial.status == Status::TargetReached
        };
        if self.iterations_in(round).is_some_and(|needed| needed > 0 && done >= needed) {
            Some(Finish::Count)
        } else if last == Some(Status::Final) {
            Some(Finish::Final)
        } else if at_least(3) {
            Some(Finish::Stuck)
        } else if trials().any(meets) {
            Some(Finish::Target)
        } else if self.is_out_of_iterations() {
            Some(Finish::Budget)
        } else if self.is_stalled_in(round) {
            Some(Finish::Stalled)
        } else {
            None
        }
    }

    /// Everybody at level 2 or more in the round.
    pub fn is_stalled_in(&self, round: u32) -> bool {
        let Some(told) = self.history.round(round) else { return false };
        let researchers = self.researchers_of(round);
        let is_stuck = |who: &String| match told.stuck.get(who) {
            Some(StuckLevel::Level(level)) => *level >= 2,
            Some(StuckLevel::TimedOut) | None => false,
        };
        !researchers.is_empty() && researchers.iter().all(is_stuck)
    }

    /// A conference that went on after its target was met is after something else.
    fn target_met_before(&self, round: u32) -> bool {
        let before = self.history.rounds.range(..round);
        before.into_iter().any(|(_, round)| self.meets_target(round))
    }

    /// Whether some state of the round that stands meets the target.
    pub fn meets_target(&self, round: &Round) -> bool {
        let best = round.completed.as_ref().and_then(|completed| completed.best);
        let trials = round.trials.values().flat_map(BTreeMap::values);
        let standing = trials.clone().filter(|it| it.status.stands()).filter_map(|it| it.metric);
        let target = self.settings.target;
        standing.chain(best).any(|metric| target.is_some_and(|target| target.is_met_by(metric)))
            || trials.clone().any(|trial| trial.status == Status::TargetReached)
    }

    /// The researcher's rows, round by round.
    pub fn segments(&self, researcher: &str) -> Vec<Segment<'_>> {
        let files = self.researchers.get(researcher);
        let table = files.and_then(|files| files.table.as_ref());
        table.map(|it| rows::segments(it, &self.history, researcher)).unwrap_or_default()
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
        let metric = self.settings.mode == Some(super::config::Mode::Metric);
        metric && (self.settings.changes_code || branches.next().is_some())
    }

    /// The best value of a round: as it was logged, or as its rows have it.
    pub fn best_of(&self, number: u32) -> Option<f64> {
        let round = self.history.round(number)?;
        if let Some(best) = round.completed.as_ref().and_then(|completed| completed.best) {
            return Some(best);
        }
        let trials = round.trials.values().flat_map(BTreeMap::values);
        let trials = trials.filter(|trial| trial.status.stands()).filter_map(|it| it.metric);
        let rows = self.results.iter().flat_map(|table| &table.rows);
        let rows = rows.filter(|row| row.round == Some(number) && row.trial.status.stands());
        let direction = self.settings.direction_or_default();
        let better =
            |one: f64, other: f64| if direction.gain(other, one) > 0.0 { other } else { one };
        trials.chain(rows.filter_map(|row| row.trial.metric)).reduce(better)
    }
}

/// The scores that a reviewer gave, from the table of qualitative scores.
pub fn scores(review: &Page) -> Vec<f64> {
    let document = Document::read(&review.bytes);
    let sections = document.sections();
    let about = |title: &str| title.to_lowercase().contains("score");
    let Some(section) = sections.iter().find(|section| about(section.title)) else {
        return Vec::new();
    };
    let cells = |line: &str| -> Vec<String> {
        let inner = line.trim().trim_matches('|');
        inner.split('|').map(|cell| cell.trim().to_lowercase()).collect()
    };
    let mut rows = section.whole.lines().filter(|line| line.trim().starts_with('|')).map(cells);
    let Some(header) = rows.next() else { return Vec::new() };
    let column = |wanted: &str| header.iter().position(|cell| cell.contains(wanted));
    let Some(column) = column("reviewer score").or_else(|| column("score")) else {
        return Vec::new();
    };
    rows.filter_map(|row| words::number(row.get(column)?)).collect()
}
