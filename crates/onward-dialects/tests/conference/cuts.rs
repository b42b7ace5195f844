//! A finished conference whose log is cut after every line, taken up again and brought to its end.
//!
//! A driver without agents: it does what the recovery point says until nothing is left. Scores
//! depend on researcher, round and iteration alone, so that every way to the end is the same way.

use std::collections::BTreeMap;

use onward_core::{
    time::Timestamp,
    told::{Undo, UndoWhat},
};
use onward_dialects::{
    File, Files,
    conference::{
        Conference, Point, PointCode, export, import,
        read::log::Status,
        write::happening::{Happening, Iterated, Verdict, What},
    },
    rules::conference::review,
};

use crate::{
    builder::{DOCUMENT, changed, plan_of, told, undone},
    dones::agrees,
};

/// More deeds than any conference here needs.
const DEEDS_MAX: usize = 200;

struct Driver {
    state: Conference,
    now: Timestamp,
    /// Every state on the way is walked by core, too.
    is_watched: bool,
    researched: Vec<(String, u32, u32)>,
}

impl Driver {
    fn new(state: Conference, now: Timestamp) -> Self {
        Self { state, now, is_watched: false, researched: Vec::new() }
    }

    fn does(&mut self, what: What) {
        if self.is_watched {
            agrees(&self.state);
        }
        self.now = self.now.plus_ms(60_000);
        self.state = self.state.after(&Happening { at: self.now, what });
    }

    /// What a resume does first: undo, say so, go on.
    fn resume(&mut self) {
        if Point::of(&self.state).code == PointCode::Complete {
            return;
        }
        self.now = self.now.plus_ms(60_000);
        let files = undone(&export(&self.state));
        let at = "2026-05-05T02:30:00Z".parse().unwrap();
        let before = plan_of(&files, at);
        let changes = before.resumed_at(self.now);
        self.state = import(&changed(&files, &changes)).unwrap();
        let after = plan_of(&export(&self.state), at).recovery_point;
        assert_eq!(after.steps, before.recovery_point.steps, "the same, planned and resumed");
        agrees(&self.state);
        self.drive();
    }

    fn drive(&mut self) {
        for _ in 0..DEEDS_MAX {
            let at = Point::of(&self.state);
            if at.code == PointCode::Complete {
                return;
            }
            self.turn(&at);
        }
        panic!("it never ends: {:?}", Point::of(&self.state));
    }

    fn turn(&mut self, at: &Point) {
        let round = at.round.unwrap_or(0);
        let page = |name: &str| format!("# {name}\n\nOf round {round}.\n");
        match at.code {
            PointCode::Complete => {}
            PointCode::RoundStart => {
                self.does(What::RoundStarted { round, researchers: at.researchers.clone() });
            }
            PointCode::ResearchRestart | PointCode::ResearchContinue => {
                let researcher = &at.researchers[0];
                let logged = self.state.history.round(round).unwrap();
                let next = logged.trials_of(researcher).map(|(number, _)| number + 1).max();
                let next = next.unwrap_or(0);
                self.researched.push((researcher.clone(), round, next));
                self.iterates(researcher, round, next);
            }
            PointCode::PosterSession => {
                let summary = format!("round {round}");
                self.does(What::Posted { round, summary, page: page("Posters") });
            }
            PointCode::PeerReview => {
                let page = format!(
                    "# Review\n\n### Researcher A — r{round}\n**Claim:** A{round} is good\n\
                     **Verdict:** validated\n\n### Researcher B — r{round}\n\
                     **Claim:** B{round} is good\n**Verdict:** challenged\n"
                );
                self.does(What::Reviewed { round, page });
            }
            PointCode::KnowledgeTransfer => self.transfers(round),
            PointCode::Synthesis => {
                let (synthesis, report) = (page("Synthesis"), page("Report"));
                self.does(What::Synthesised { synthesis, report });
            }
            PointCode::Close => self.does(What::Completed),
        }
    }

    fn iterates(&mut self, researcher: &str, round: u32, iteration: u32) {
        let worth =
            f64::from(round * 3 + iteration % 2) + if researcher == "A" { 0.5 } else { 0.0 };
        let status = match iteration {
            0 => Status::Baseline,
            2 => Status::Reverted,
            _ => Status::Kept,
        };
        self.does(What::Iterated(Iterated {
            researcher: researcher.to_owned(),
            round,
            iteration,
            metric: format!("{:.1}", 100.0 - worth),
            status,
            description: format!("try {iteration}"),
            evaluator: "script:score.sh".to_owned(),
            hypothesis: "less is more".to_owned(),
            analysis: "it was".to_owned(),
        }));
    }

    fn transfers(&mut self, round: u32) {
        let judgements = review::judgements(&self.state.reviews[&round]);
        let validated = judgements.iter().filter(|it| it.verdict == Verdict::Validated);
        let findings = validated.map(|it| it.finding.clone()).collect();
        self.does(What::Learned { round, findings });
        for researcher in self.state.researchers_of(round) {
            let Some(verdict) = review::overall(&judgements, &researcher) else { continue };
            self.does(What::Judged { round, researcher: researcher.clone(), verdict });
            let (best, finding) = ("90".to_owned(), format!("{researcher}{round}"));
            let status = verdict.as_str().to_owned();
            self.does(What::Noted { round, researcher, best, finding, status });
        }
        let best = self.state.best_of(round).unwrap().to_string();
        let researcher = "A".to_owned();
        self.does(What::RoundCompleted { round, best, researcher, converged: false });
    }
}

fn start() -> Timestamp {
    "2026-05-04T20:00:00Z".parse().unwrap()
}

fn fresh() -> Conference {
    let document = DOCUMENT.replace("**Max rounds:** 4", "**Max rounds:** 3");
    let files = [("conference.md", document.as_str()), ("conference_events.jsonl", "")];
    import(&files.into_iter().collect()).unwrap()
}

fn finished(is_watched: bool) -> Conference {
    let mut driver = Driver::new(fresh(), start());
    driver.is_watched = is_watched;
    let goal = "Bring the slow requests down.".to_owned();
    driver.does(What::Started { researchers: 2, mode: "metric", goal, config: String::new() });
    driver.drive();
    driver.state
}

/// Everything that was achieved, without the times at which it was.
fn achievements(state: &Conference) -> BTreeMap<String, String> {
    let files = export(state);
    let text = |file: &File| String::from_utf8(file.bytes.clone()).unwrap();
    let timeless = |(path, file): (&str, &File)| {
        let kept: Vec<String> = match path {
            "conference_events.jsonl" => {
                let lines: Vec<String> = text(file).lines().map(without_time).collect();
                let resumed = |line: &String| line.contains("conference.resumed");
                lines.into_iter().filter(|line| !resumed(line)).collect()
            }
            _ => text(file).lines().map(without_time).collect(),
        };
        (path.to_owned(), kept.join("\n"))
    };
    files.iter().map(timeless).collect()
}

fn without_time(line: &str) -> String {
    let Some(at) = line.find("2026-05-0") else { return line.to_owned() };
    let end = at + "2026-05-04T20:00:00Z".len();
    format!("{}{}", &line[..at], &line[end..])
}

/// Sorted: researchers go on in another order after an interruption.
fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

#[test]
fn a_finished_log_cut_after_every_line_comes_to_the_same_end() {
    let whole = finished(true);
    let expected = achievements(&whole);
    let log = String::from_utf8(whole.log.bytes().to_vec()).unwrap();
    let lines: Vec<&str> = log.split_inclusive('\n').collect();
    assert!(lines.len() > 30, "{} lines are no conference", lines.len());
    for cut in 1..=lines.len() {
        let mut files: Files = export(&whole);
        let bytes = lines[..cut].concat().into_bytes();
        files.insert("conference_events.jsonl", File { bytes, modified: None });
        let before = import(&files).unwrap();
        let mut driver = Driver::new(before.clone(), start().plus_ms(6 * 3_600_000));
        driver.resume();
        for (researcher, round, iteration) in &driver.researched {
            let trials = before.history.round(*round).and_then(|it| it.trials.get(researcher));
            let known = trials.is_some_and(|trials| trials.contains_key(iteration));
            assert!(!known, "{researcher}{round}.{iteration} was run again after {cut} lines");
        }
        let seen = achievements(&driver.state);
        assert_eq!(seen.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
        for (path, text) in &expected {
            assert_eq!(sorted(&seen[path]), sorted(text), "{path} after {cut} lines");
        }
    }
}

#[test]
fn what_is_undone_is_in_the_rescue_and_nothing_else_is() {
    let whole = finished(false);
    let log = String::from_utf8(whole.log.bytes().to_vec()).unwrap();
    let lines: Vec<&str> = log.split_inclusive('\n').collect();
    for cut in 1..=lines.len() {
        let mut files = export(&whole);
        let bytes = lines[..cut].concat().into_bytes();
        files.insert("conference_events.jsonl", File { bytes, modified: None });
        let mut saved: BTreeMap<String, usize> = BTreeMap::new();
        for Undo { path, what, .. } in told(&files).undo() {
            let length = match what {
                UndoWhat::Rows { rows, .. } => rows.join("\n").len() + 1,
                UndoWhat::Remove => files.bytes(&path).unwrap().len(),
                UndoWhat::Worktree { .. } => 0,
            };
            saved.insert(path, length);
        }
        let after = undone(&files);
        for (path, file) in files.iter() {
            let left = after.bytes(path).map_or(0, <[u8]>::len);
            let saved = saved.get(path).copied().unwrap_or(0);
            assert_eq!(file.bytes.len(), left + saved, "{path} after {cut} lines");
        }
    }
}
