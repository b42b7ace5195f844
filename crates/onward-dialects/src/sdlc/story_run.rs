//! How far the run of one story is: by its state, its own status, its gate.

use super::{
    Code, StoryFacts,
    project::Project,
    qa::Verdict,
    state::{CHECKPOINT, State},
    status::{Status, status},
    story::Story,
    story_code,
};

/// A story, and what the state says about its run.
#[expect(clippy::struct_excessive_bools, reason = "four facts that are asked one by one")]
pub(super) struct StoryRun {
    pub(super) state: Option<State>,
    pub(super) facts: StoryFacts,
    /// The story is gone although the run is past its creation.
    pub(super) is_gone: bool,
    /// A gate of ours is about to close the story: what the story says of itself does not count.
    pub(super) is_closing: bool,
    /// The verdict before that one sent the story back.
    pub(super) was_sent_back: bool,
    /// The phase that a person enters at, until it has begun.
    pub(super) entered: Option<u32>,
    /// How far the story is, by itself or by a person.
    pub(super) known: Option<Status>,
    /// The files are ahead of our run by what its own agents may have written: that is no evidence.
    pub(super) is_held: bool,
    /// The phase that the results and the story show to be next, whatever waits for an answer.
    pub(super) proved: u32,
}

impl StoryRun {
    pub(super) fn of(project: &Project, key: &str, state: Option<State>) -> Self {
        let story = project.story(key);
        let pointer = state.as_ref().and_then(|it| it.pointer).unwrap_or(0);
        let reached = state.as_ref().map_or(0, State::reached);
        let phase = if reached > 0 { reached + 1 } else { pointer };
        let is_closing = project.gate(key).is_some_and(|it| it.announced);
        let entered = state.as_ref().and_then(|it| it.enter).filter(|_| story.is_some());
        let known = match (entered, is_closing) {
            (Some(2), _) => Some(Status::Draft),
            (Some(3), _) => Some(Status::Ready),
            (Some(_), _) | (None, true) => Some(Status::InReview),
            (None, false) => story.and_then(Story::status),
        };
        let gate = project.gate(key).and_then(|it| it.verdict).filter(|_| entered.is_none());
        let is_late = match known {
            Some(Status::InReview | Status::Done) => true,
            Some(Status::InProgress) => story.is_some_and(Story::all_tasks_done),
            Some(Status::Draft | Status::Ready | Status::Blocked) | None => false,
        };
        let was_sent_back = is_closing && gate.is_some_and(Verdict::sends_back);
        let gate = gate.filter(|_| is_late && !is_closing);
        let is_gone = story.is_none() && phase > 1;
        let guess = match (story, known) {
            (_, Some(status)) => status,
            (Some(story), None) => guessed(story, phase),
            (None, None) => by_phase(phase),
        };
        let facts = StoryFacts {
            awaits: state.as_ref().is_some_and(|it| it.awaits && it.enter.is_none())
                && known != Some(Status::Draft),
            there: story.is_some() || is_gone,
            failed: gate.is_some_and(Verdict::sends_back),
            passed: gate == Some(Verdict::Approve),
            done: guess == Status::Done,
            review: guess == Status::InReview,
            draft: guess == Status::Draft,
        };
        let is_held = false;
        let by_story = number(story_code(StoryFacts { awaits: false, ..facts }));
        let proved = by_story.max((reached + 1).min(CHECKPOINT));
        Self { state, facts, is_gone, is_closing, was_sent_back, entered, known, is_held, proved }
    }
}

/// The phase of a story that a code stands for.
const fn number(code: Code) -> u32 {
    match code {
        Code::Create => 1,
        Code::Validate => 2,
        Code::Implement => 3,
        Code::QaGate => 4,
        Code::StoryCheckpoint
        | Code::Gather
        | Code::Assess
        | Code::Research
        | Code::Write
        | Code::Critique
        | Code::Review
        | Code::Fix
        | Code::Escalate
        | Code::Stories
        | Code::Gate
        | Code::Checkpoint
        | Code::FinalGate
        | Code::Complete => CHECKPOINT,
    }
}

/// Of a story whose status is not known: by the state, then its tasks, then its log.
fn guessed(story: &Story, pointed: u32) -> Status {
    let logged = || story.log.last().and_then(|(_, text)| status(text));
    match () {
        () if pointed > 0 => by_phase(pointed),
        () if story.all_tasks_done() => Status::InReview,
        () if story.tasks.iter().any(|it| it.0) => Status::InProgress,
        () => logged().unwrap_or(Status::Draft),
    }
}

const fn by_phase(phase: u32) -> Status {
    match phase {
        0..=2 => Status::Draft,
        3 => Status::InProgress,
        4 => Status::InReview,
        _ => Status::Done,
    }
}
