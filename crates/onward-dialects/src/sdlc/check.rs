//! What is wrong with the files, or stands against going on: missing files, statuses that disagree,
//! conflicts, locks, ages.

use onward_core::{
    finding::{Code as Known, DialectCode, Finding, Severity},
    time::Timestamp,
};

use super::{
    Code, check_epic,
    epic::Member,
    lock, others,
    qa::Loop,
    spec::{Artifact, Critique, Spec, TOGETHER_MS},
    state::{CHECKPOINT, Flow, State},
    status::{Reading, Says, Status, reading},
    step,
    story::{SCOPE, Story},
    story_run::StoryRun,
    told::{Kind, SdlcTold},
    touched,
};
use crate::kit::{
    age,
    code::Odd,
    path::{from_project, inside, shown},
};

onward_core::listed! {
    /// Words of this system's own, or words of core that mean more here.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Own {
        /// A file is gone without which the run cannot go on.
        MissingCritical,
        /// A story was done by other work.
        CompletedOutside,
        /// What a story asks for was changed since.
        ScopeChanged,
        /// Another workflow was started on the same story since.
        OtherWorkflow,
        /// Other work changed files that the run works on.
        ExternalModification,
        /// They were written while the run's own agent may have been at work on them.
        MaybeExternal,
        /// The plan has something that the state does not know.
        NewDependency,
        /// More is done than the pointer says.
        PointerBehind,
        /// A story's status is no status.
        UnknownStatus,
        /// A story says that it cannot go on.
        StoryBlocked,
        /// The critique says that the spec must not go on.
        CritiqueBlocked,
        /// A lock that holds nothing any more.
        StaleLock,
    }
}

impl Own {
    #[rustfmt::skip]
    pub const fn row(self) -> DialectCode {
        use Severity::{Blocking, Info, Warning};
        let (word, severity) = match self {
            Self::MissingCritical  => ("missing-artifact",        Blocking),
            Self::CompletedOutside => ("status-disagrees",        Blocking),
            Self::ScopeChanged     => ("scope-changed",           Blocking),
            Self::OtherWorkflow    => ("other-workflow",          Blocking),
            Self::ExternalModification => ("external-modification", Warning),
            Self::MaybeExternal    => ("external-modification",   Info),
            Self::NewDependency    => ("new-dependency",          Warning),
            Self::PointerBehind    => ("pointer-behind-evidence", Warning),
            Self::UnknownStatus    => ("unknown-status",          Warning),
            Self::StoryBlocked     => ("story-blocked",           Warning),
            Self::CritiqueBlocked  => ("critique-blocked",        Blocking),
            Self::StaleLock        => ("stale-lock",              Info),
        };
        DialectCode { word, severity }
    }

    pub(super) fn finding(self, message: impl Into<String>) -> Finding {
        let finding = Finding::of_dialect(self.row(), message);
        // No step can do without it, whatever a person says.
        if self == Self::MissingCritical { finding.as_a_fact() } else { finding }
    }
}

pub(super) fn findings(told: &SdlcTold, now: Timestamp) -> Vec<Finding> {
    let mut all = Vec::new();
    if let (Some(why), Some(path)) = (&told.rebuilt, &told.state_path) {
        let message = format!(
            "it cannot be read ({}); the stories, artifacts and logs say how far the run is",
            shown(why)
        );
        all.push(Odd::StateRebuilt.finding(message).at_path(path));
        if let Kind::Loop(_) = told.kind {
            // No other file tells how often it was reviewed.
            let message =
                "the iterations of the loop are lost with it, and it would begin again at 1";
            let hint = "fix the file, or accept this: it is kept beside the new one";
            let asked = Odd::StateUnreadable.finding(message);
            all.push(asked.at_path(path).with_hint(hint));
        }
    }
    match &told.kind {
        Kind::Story(run) => story(told, run, now, &mut all),
        Kind::Spec(spec) => of_spec(told, spec, &mut all),
        Kind::Loop(it) => of_loop(told, it, now, &mut all),
        Kind::Epic(epic) => check_epic::findings(told, epic, now, &mut all),
    }
    if told.code != Code::Complete {
        lock::findings(told, now, &mut all);
        others::findings(told, &mut all);
    }
    all.extend(told.project.odd.findings());
    if let Some((what, at)) = told.last_at() {
        // Times of files are the copy's; only a moment that is written counts as one.
        let is_written = told.state_path.is_some();
        all.extend(age::future(now, &what, at).filter(|_| is_written));
        all.extend(age::stale(now, at).filter(|_| told.code != Code::Complete));
    }
    from_project(&mut all, &told.dir);
    all
}

fn story(told: &SdlcTold, run: &StoryRun, now: Timestamp, all: &mut Vec<Finding>) {
    let key = shown(&told.key);
    if run.is_gone {
        let phase = told.code.row().1;
        let message = format!("the story {key} is gone, and {phase} needs it");
        let finding = Own::MissingCritical.finding(message).at_path(step::story_path(&told.key));
        all.push(finding.with_hint("bring it back, or start again with `onward run sdc`"));
    }
    if let Some(story) = told.story() {
        known(story, all);
        if let Some(state) = &run.state {
            // Both say that it is over, whatever phase the state names.
            let is_over = state.is_over() && told.status_of(&told.key) == Some(Status::Done);
            // What agents of ours may have written is told where it is compared.
            let is_ours = run.is_closing || run.is_held;
            if let Some(says) = state.says().filter(|_| !is_ours && !is_over) {
                disagree(says, story, None, all);
            }
            pointer(told, state, all);
            changed(told, story, state.updated_at, now, all);
            touched::files(told, story, state.updated_at, all);
        }
    } else if let Some(state) = &run.state {
        pointer(told, state, all);
    }
    if let Some(state) = &run.state {
        if state.is_aborted() {
            aborted(told, all);
        }
        artifacts(told, state, all);
    }
    let gate = told.project.gate(&told.key);
    if let (Some(gate), Some(status)) = (gate, told.status_of(&told.key)) {
        let message = if run.facts.passed && status != Status::Done {
            format!("the gate passed, and the story says {}", status.as_str())
        } else if run.facts.failed && status == Status::Done {
            "the gate failed, and the story says Done".to_owned()
        } else {
            return;
        };
        all.push(Finding::new(Known::StatusDisagrees, message).at_path(&gate.path));
    }
}

pub(super) fn known(story: &Story, all: &mut Vec<Finding>) {
    match &story.status {
        Ok(Status::Blocked) => {
            let message = format!("the story {} says that it is blocked", shown(&story.id));
            all.push(Own::StoryBlocked.finding(message).at_path(&story.path));
        }
        Ok(_) => {}
        Err(Some(text)) => {
            let message = format!("`{}` is not a status of a story", shown(text));
            all.push(Own::UnknownStatus.finding(message).at_path(&story.path));
        }
        Err(None) => {
            let message = "the story names no status".to_owned();
            all.push(Own::UnknownStatus.finding(message).at_path(&story.path));
        }
    }
}

/// The table of discrepancies, told.
pub(super) fn disagree(
    says: Says,
    story: &Story,
    at: Option<(u32, &Member)>,
    all: &mut Vec<Finding>,
) {
    let Some(status) = story.status() else { return };
    let (id, state, own) = (shown(&story.id), says.as_str(), status.as_str());
    let pair = format!("the state says {state}, story {id} says {own}");
    let finding = match reading(says, status) {
        Reading::Consistent | Reading::ValidatedMeanwhile => return,
        Reading::CompletedOutside => {
            let message = format!("{pair}: it was completed outside this workflow");
            let hint = "look at it; accept this finding to count it as done";
            Own::CompletedOutside.finding(message).with_hint(hint)
        }
        Reading::Reset => {
            let message = format!("{pair}: it was reset, and the state is stale");
            Finding::new(Known::StatusDisagrees, message)
        }
        Reading::StoryAhead => {
            let message = format!("{pair}: it continued while the state did not");
            Own::PointerBehind.finding(message)
        }
        Reading::StoryBehind => {
            let message = format!("{pair}: one of them was not written");
            Finding::new(Known::StatusDisagrees, message)
        }
    };
    let finding = finding.at_path(&story.path);
    all.push(match at {
        Some((wave, member)) => finding.at_step(&step::address(wave, member)),
        None => finding,
    });
}

/// The pointer against the results and against the story.
fn pointer(told: &SdlcTold, state: &State, all: &mut Vec<Finding>) {
    let Some(path) = &told.state_path else { return };
    let Some(pointer) = state.pointer else {
        if let Some(word) = &state.pointer_word {
            let message = format!("`{}` is not a phase of this workflow", shown(word));
            all.push(Odd::MissingCurrentPhase.finding(message).at_path(path));
        }
        return;
    };
    let reached = state.reached();
    let by_story = match told.status_of(&told.key) {
        Some(Status::Draft) => Some(2),
        Some(Status::Ready | Status::InProgress) => Some(3),
        Some(Status::InReview) => Some(4),
        Some(Status::Done | Status::Blocked) | None => None,
    };
    let evidence = if reached >= pointer { Some((reached + 1).min(CHECKPOINT)) } else { by_story };
    let Some(evidence) = evidence else { return };
    match () {
        // A story is written before its status is.
        () if pointer == 1 && evidence == 2 => {}
        // Where the story says it, it was said.
        () if pointer < evidence
            && all.iter().any(|it| it.code == Own::PointerBehind.row().word) => {}
        () if pointer < evidence => {
            let message =
                format!("the state is in phase {pointer}, and phase {} is done", evidence - 1);
            all.push(Own::PointerBehind.finding(message).at_path(path));
        }
        () if pointer > evidence => {
            let message = format!(
                "the state is in phase {pointer}, and only phase {} is shown to be done",
                evidence - 1
            );
            all.push(Finding::new(Known::PhaseAheadOfEvidence, message).at_path(path));
        }
        () => {}
    }
}

/// The story was edited after the interruption.
pub(super) fn changed(
    told: &SdlcTold,
    story: &Story,
    since: Option<Timestamp>,
    now: Timestamp,
    all: &mut Vec<Finding>,
) {
    let Some(since) = since.filter(|_| told.code != Code::Complete) else { return };
    let id = shown(&story.id);
    let logged: Vec<String> =
        story.log.iter().filter(|(at, _)| *at > since).map(|it| shown(&it.1)).collect();
    let state = told.state_path.as_ref().and_then(|path| told.files.file(path)?.modified);
    let together = |one: Timestamp, other: Timestamp| {
        one.ms_since(other).max(other.ms_since(one)) < TOGETHER_MS
    };
    let is_copied = story.modified.zip(state).is_some_and(|(one, other)| together(one, other));
    let is_older = story.modified.is_some_and(|at| at <= since.plus_ms(TOGETHER_MS));
    let then = told.files.git.as_ref().and_then(|git| git.then.get(&story.path));
    // What was changed before the interruption, and not committed, was known to the run.
    if let Some(then) = then.filter(|_| !is_older || !logged.is_empty()) {
        let file = crate::File { bytes: then.clone(), modified: None };
        let Some(before) = Story::read(&story.path, &file) else { return };
        // An epic's own state says what its stories wait for, of those that are there.
        let is_there = |id: &&String| told.project.story(id).is_some();
        let is_new =
            |id: &&String| !before.after.contains(id) && (told.flow != Flow::Epic || !is_there(id));
        all.extend(story.after.iter().filter(is_new).filter_map(|id| waits(told, story, id)));
        let sections = story.document.sections();
        let differs = |title: &&str| story.section(title) != before.section(title);
        let titles: Vec<String> =
            sections.iter().filter(|it| it.level == 2).map(|it| it.title.to_lowercase()).collect();
        let titles: Vec<&str> = titles.iter().map(String::as_str).filter(differs).collect();
        let is_scope = |title: &&&str| SCOPE.contains(*title);
        let scope: Vec<&str> = titles.iter().filter(is_scope).copied().collect();
        if !scope.is_empty() {
            let message = format!(
                "what story {id} asks for was changed since the interruption: {}",
                shown(&scope.join(", "))
            );
            let hint = "read it; work that is done may not fit it any more";
            all.push(Own::ScopeChanged.finding(message).at_path(&story.path).with_hint(hint));
        } else if !titles.is_empty() && !is_copied {
            let message = format!(
                "story {id} was modified since the interruption: {}",
                shown(&titles.join(", "))
            );
            all.push(Finding::new(Known::ArtifactChanged, message).at_path(&story.path));
        }
        return;
    }
    let modified = story.modified.filter(|at| !is_older && !is_copied && *at <= now);
    if logged.is_empty() && modified.is_none() {
        return;
    }
    let what = if logged.is_empty() { String::new() } else { format!(" ({})", logged.join("; ")) };
    let message = format!("story {id} was modified since the interruption{what}");
    let hint = "this may affect the phase that follows";
    all.push(Finding::new(Known::ArtifactChanged, message).at_path(&story.path).with_hint(hint));
}

/// Files that the state names.
fn artifacts(told: &SdlcTold, state: &State, all: &mut Vec<Finding>) {
    if told.code == Code::Complete {
        return;
    }
    let lists = [
        (&state.artifacts, "a completed phase made it"),
        (&state.needs, "the phases that are left use it"),
    ];
    for (list, why) in lists {
        for named in list {
            match inside(named) {
                None => {
                    let message = format!(
                        "`{}` lies outside of the project; nothing looks there",
                        shown(named)
                    );
                    all.push(Odd::PathRefused.finding(message));
                }
                Some(path) if !told.files.contains(&path) && !is_same_path(told, &path) => {
                    let message =
                        format!("{path} is missing: {why}; the run can continue without it");
                    all.push(Finding::new(Known::MissingArtifact, message).at_path(path));
                }
                Some(_) => {}
            }
        }
    }
}

/// The story itself is spoken of elsewhere.
fn is_same_path(told: &SdlcTold, path: &str) -> bool {
    told.story().is_some_and(|it| it.path == path)
        || path.starts_with("docs/stories/") && told.story().is_none()
}

pub(super) fn aborted(told: &SdlcTold, all: &mut Vec<Finding>) {
    let finding = Odd::RunOver.finding("the run was aborted on purpose");
    let finding = finding.with_hint("`onward resume --force` takes it up again where it was");
    all.push(match &told.state_path {
        Some(path) => finding.at_path(path),
        None => finding,
    });
}

fn of_spec(told: &SdlcTold, spec: &Spec, all: &mut Vec<Finding>) {
    for (path, why) in &spec.broken {
        let message = format!("it cannot be read ({}) and counts as missing", shown(why));
        all.push(Finding::new(Known::ArtifactUnproved, message).at_path(path));
    }
    let last = spec.there.iter().map(|it| it.0).max();
    for kind in Artifact::ALL.into_iter().filter(|it| Some(*it) < last && !spec.has(*it)) {
        if kind == Artifact::Research && (spec.is_simple || spec.class.is_none()) {
            continue;
        }
        let path = format!("{}/{}", spec.folder, kind.as_str());
        let message = format!(
            "{} is missing, and later artifacts are there; the run can continue without it",
            kind.as_str()
        );
        all.push(Finding::new(Known::MissingArtifact, message).at_path(path));
    }
    // What is done although an artifact of it is there, because that does not say what it should.
    let unsaid = if told.code == Code::Research && spec.class.is_none() {
        Some((Artifact::Complexity, "class"))
    } else if told.code == Code::Critique && spec.critique.is_none() {
        Some((Artifact::Critique, "verdict"))
    } else {
        None
    };
    if let Some((path, what)) = unsaid.and_then(|(it, what)| Some((spec.path(it)?, what))) {
        let message = format!("it says no {what} and no score that is known");
        all.push(Odd::OddValue.finding(message).at_path(path));
    }
    if spec.critique == Some(Critique::Blocked) && told.code == Code::Write {
        let message =
            "the critique blocks this spec: a person has to decide whether it is written again";
        let path = spec.path(Artifact::Critique).unwrap_or(&spec.folder);
        all.push(Own::CritiqueBlocked.finding(message).at_path(path));
    }
}

fn of_loop(told: &SdlcTold, it: &Loop, now: Timestamp, all: &mut Vec<Finding>) {
    let path = told.state_path.clone().unwrap_or_default();
    match told.story() {
        Some(story) => {
            known(story, all);
            if told.code != Code::Complete && !it.closing {
                disagree(Says::InReview, story, None, all);
                changed(told, story, it.updated_at, now, all);
                touched::files(told, story, it.updated_at, all);
            }
        }
        None if told.code != Code::Complete => {
            let message =
                format!("the story {} is gone, and its review needs it", shown(&told.key));
            all.push(Own::MissingCritical.finding(message).at_path(step::story_path(&told.key)));
        }
        None => {}
    }
    let last = it.turns.iter().filter(|it| it.1.verdict.is_some()).map(|it| *it.0).max();
    let last = last.unwrap_or(0);
    if it.pointer > 0 && it.current > it.pointer {
        let message = format!(
            "the loop is at iteration {}, and iteration {} has a verdict",
            it.pointer, it.current
        );
        all.push(Own::PointerBehind.finding(message).at_path(&path));
    } else if it.current > last + 1 {
        let message = format!(
            "the loop is at iteration {}, and the last verdict is of iteration {last}",
            it.current
        );
        all.push(Finding::new(Known::PhaseAheadOfEvidence, message).at_path(&path));
    }
    let word = it.word.as_deref().map(|it| super::status::words(it).concat()).unwrap_or_default();
    let is_over = matches!(word.as_str(), "completed" | "complete" | "done") && !it.waived;
    if is_over && told.code != Code::Complete {
        let message = "it says completed, and its last verdict is not an approval";
        all.push(Finding::new(Known::StatusDisagrees, message).at_path(&path));
    }
}

pub(super) fn waits(told: &SdlcTold, story: &Story, id: &str) -> Option<Finding> {
    let why = match told.project.story(id).map(Story::status) {
        Some(Some(Status::Done)) => return None,
        Some(Some(_)) => "which is not done",
        Some(None) => "and that says no status that is known",
        None => "and no file of that story is there",
    };
    let (one, other) = (shown(&story.id), shown(id));
    let message = format!("story {one} now depends on {other}, {why}");
    Some(Own::NewDependency.finding(message).at_path(&story.path))
}
