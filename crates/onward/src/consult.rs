//! The conversation before a resume: the plan is shown, and a person says which way to go.
//!
//! Invariant: nothing is done here but what a person records about a step. Each way ends in the
//! very choices that flags would have made, and whatever a person changes is planned and shown
//! again before it is carried out.

use std::path::Path;

use onward_core::{
    address::Address,
    event::Mode,
    finding::{Code, Finding, Severity, Told, told},
    plan::{
        EntryPoint, Outlook, Plan, PlannedRevert, PlannedStep, RevertKind, Status, Verdict,
        entries, entry, has_entry,
    },
    plural::count,
    policy::{self, Accept, Asking, Choices, Depth, EnterAt},
    run::Run,
};
use onward_engine::{
    engine::{self, EngineError, Looking, compare_run, examine_run},
    resume::ResumeError,
    world::seen::Seen,
};

use crate::{
    cmd::{Context, plan, resume::ResumeArgs},
    diagnostic::printable,
    error::{self, Error},
    outlook,
    plan_page::reason,
    prompt::{First, Person},
    session::{Session, id_of, open_run},
    style::{columns_of_errors, wrap},
};

/// Which run is talked about, and how it is looked at.
pub(crate) struct Subject<'a> {
    pub(crate) session: &'a Session,
    pub(crate) dir: &'a Path,
    pub(crate) mode: Mode,
    /// An edited workflow file is left aside.
    pub(crate) pinned: bool,
    /// Another system's files, read once for the menu and for the resume.
    pub(crate) seen: &'a Seen,
}

/// What came of it.
pub(crate) enum Way {
    GoOn(Choices),
    /// A new run in place of this one.
    Restart,
    /// This run is over, as cancelled.
    End,
    Nothing,
}

/// So many places to enter at are listed; any other can be typed.
const ENTRIES_MAX: usize = 30;

/// Shows the plan and asks, until there is nothing more to change about it.
pub(crate) fn consult(
    cx: &mut Context,
    person: &mut Person,
    of: &Subject<'_>,
    mut choices: Choices,
) -> Result<Way, Error> {
    let (depth, asking) = policy::preset(of.mode);
    let mut asked = false;
    loop {
        let machine = &of.session.machine;
        let looking = Looking { choices: &choices, depth, pinned: of.pinned, seen: of.seen };
        let mut plan = examine_run(of.dir, machine, &looking)?;
        let standing = policy::standing(&plan.findings, plan.run.age_band, &choices);
        let settled = asking == Asking::Conflicts && standing.is_empty() && !asked;
        let is_over = matches!(plan.run.status, Status::Fresh | Status::Completed);
        if settled || is_over || plan.outlook() == Outlook::Not {
            // What stands in the way is said when it is met.
            return Ok(Way::GoOn(choices));
        }
        asked = true;
        if depth == Depth::Full {
            plan.preflight = compare_run(of.dir, choices.from.as_ref(), machine)?;
        }
        plan::show(cx, of.session, &plan, &choices)?;
        outlook::show(&mut *cx.err, &plan)?;
        match depth {
            Depth::Glance | Depth::Quick => {}
            Depth::Full => outlook::compared(&mut *cx.err, &open_run(of.dir)?, &plan)?,
        }
        for it in told(&standing) {
            say_accepted(person, &it);
        }
        let (plan, standing, asked_for) = (&plan, &standing, choices.clone());
        let talk = &mut Talk { person, of, plan, standing, asked_for };
        match talk.menu(depth)? {
            Choice::Resume => {
                choices.accept_all(standing);
                return Ok(Way::GoOn(choices));
            }
            Choice::Point => talk.point(&mut choices)?,
            Choice::Steps => talk.steps(&mut choices)?,
            Choice::Restart => return Ok(Way::Restart),
            Choice::Cancel => return talk.cancel(),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Choice {
    Resume,
    Point,
    Steps,
    Restart,
    Cancel,
}

/// What another point of entry is offered as.
pub(crate) const OTHER_POINT: &str = "continue at another phase or step";

/// What the user accepts by continuing.
pub(crate) fn say_accepted(person: &Person, told: &Told<'_>) {
    let line = format!("Continuing accepts {}: {}", told.finding.code, printable(&told.message()));
    person.screen().line(&wrap(&line, columns_of_errors(), 0, 2));
}

/// The word that goes on.
pub(crate) fn go_on(depth: Depth) -> &'static str {
    match depth {
        Depth::Glance | Depth::Quick => "resume",
        Depth::Full => "proceed",
    }
}

/// What continuing means: how many steps there are of each verdict, and what may happen twice.
pub(crate) fn counts(plan: &Plan) -> String {
    let each = plan.counts.iter().map(|(verdict, count)| format!("{verdict} {count}"));
    let counts = format!("continue as planned: {}", each.collect::<Vec<_>>().join(", "));
    let is_unknown = |it: &&Finding| it.code == Code::EffectUnknown.as_str();
    let unknown = plan.findings.iter().filter(is_unknown).filter_map(|it| it.step.as_deref());
    let twice: Vec<String> = unknown.map(printable).collect();
    if twice.is_empty() {
        return counts;
    }
    format!("run {} again: it may happen a second time", twice.join(", "))
}

/// Who looked at everything, or goes on over what blocks, says so in full.
pub(crate) fn first(depth: Depth, standing: &[Finding]) -> First {
    let blocks = standing.iter().any(|it| it.severity() == Severity::Blocking);
    match depth {
        Depth::Glance | Depth::Quick if !blocks => First::ByDefault,
        Depth::Glance | Depth::Quick | Depth::Full => First::InFull,
    }
}

/// No answer came: how it is given without a terminal. Where no word of a person helps, that is
/// what stands in the way.
pub(crate) fn unanswered(
    run: String,
    choices: &Choices,
    standing: &[Finding],
    pinned: bool,
) -> Error {
    if !standing.iter().all(Finding::can_be_accepted) {
        return EngineError::Resume(ResumeError::Conflicts(standing.to_vec())).into();
    }
    let blocks = standing.iter().filter(|it| it.severity() == Severity::Blocking);
    let mut accepted: Vec<Accept> = Vec::new();
    for code in blocks.map(|it| it.code.clone()) {
        let accept = Accept { code, step: None };
        if !accepted.contains(&accept) {
            accepted.push(accept);
        }
    }
    let accepted = choices.accepted.iter().cloned().chain(accepted).collect();
    let choices = Choices { accepted, yes: false, ..choices.clone() };
    Error::NotConfirmed { run, flags: ResumeArgs::flags(&choices, pinned, false) }
}

/// Where the meaning of a choice begins.
const MENU: usize = 11;

/// Shows the choices, each a word and its meaning, and gives the one that the user picks.
pub(crate) fn menu<C: Copy>(
    person: &mut Person,
    first: First,
    ways: &[(C, &str, String)],
) -> Option<C> {
    person.screen().line("");
    for (index, (_, word, text)) in ways.iter().enumerate() {
        let mark = if index == 0 && first == First::ByDefault { " (default)" } else { "" };
        let text = wrap(&format!("{text}{mark}"), columns_of_errors(), MENU, MENU);
        person.screen().line(&format!("  {word:<8} {text}"));
    }
    if first == First::InFull {
        let word = ways.first()?.1;
        person.screen().line(&format!("Type \"{word}\" to continue."));
    }
    let words: Vec<String> = ways.iter().map(|way| way.1.to_owned()).collect();
    let at = |word: &str| ways.iter().position(|way| way.1 == word);
    // Where there is nothing to go on with, yes is no answer.
    let yes = Some(0).filter(|_| ways.first().is_some_and(|way| way.1 != "cancel"));
    let also =
        [("yes", yes), ("y", yes), ("no", at("cancel")), ("restart from scratch", at("restart"))];
    let also: Vec<(&str, usize)> = also.into_iter().filter_map(|it| Some((it.0, it.1?))).collect();
    let picked = person.pick_also("What now?", &words, first, &also)?;
    ways.get(picked).map(|way| way.0)
}

struct Talk<'a> {
    person: &'a mut Person,
    of: &'a Subject<'a>,
    plan: &'a Plan,
    standing: &'a [Finding],
    /// What was chosen before the question.
    asked_for: Choices,
}

impl Talk<'_> {
    fn menu(&mut self, depth: Depth) -> Result<Choice, Error> {
        let go = (Choice::Resume, go_on(depth), counts(self.plan));
        let mut ways = vec![go, (Choice::Point, "point", OTHER_POINT.to_owned())];
        let open = self.questions().len();
        if open > 0 {
            let text = format!("decide about single steps: {}", count(open, "question"));
            ways.push((Choice::Steps, "steps", text));
        }
        let cost = self.plan.cost.restart_usd;
        let cost = if cost > 0.0 { format!(", about ${cost:.2}") } else { String::new() };
        let again = format!("start over as a new run{cost}; this one is cancelled, files stay");
        // Files of another system stay as they are: a new run would find them begun.
        if self.plan.run.dialect == "onward" {
            ways.push((Choice::Restart, "restart", again));
        }
        ways.push((
            Choice::Cancel,
            "cancel",
            "leave everything as it is, or cancel the run".into(),
        ));
        let picked = menu(self.person, first(depth, self.standing), &ways);
        self.answered(picked)
    }

    /// Where else to enter.
    fn point(&mut self, choices: &mut Choices) -> Result<(), Error> {
        let run = open_run(self.of.dir)?;
        let list = entries(&run, ENTRIES_MAX);
        let width = list.iter().map(|it| it.step.as_str().len()).max().unwrap_or(0).min(40);
        for (index, entry) in list.iter().enumerate() {
            let (number, step, what) = (index + 1, entry.step.as_str(), means(entry));
            self.person.screen().line(&format!("  {number:>2}. {step:<width$}  {what}"));
        }
        let question = "Continue where? (a number or a step's address; Return goes back) ";
        let chosen = self.person.until(question, |text| {
            let none = || format!("there is no step `{}` to enter at", printable(text));
            target(&run, &list, text).ok_or_else(none)
        });
        let Target::At(step) = self.answered(chosen)? else { return Ok(()) };
        let passed_over = entry(&run, step.as_str()).map_or(0, |it| it.passed_over);
        let force = passed_over > 0;
        if force {
            let skips = count(passed_over, "unfinished step");
            let question = format!("That skips {skips} before {step}. Continue there?");
            if self.pick(&question, &["no", "yes"], First::ByDefault)? == 0 {
                return Ok(());
            }
        }
        choices.from = Some(EnterAt { step: step.to_string(), force });
        Ok(())
    }

    /// What a person may decide about single steps, in the order of the plan.
    fn questions(&self) -> Vec<Question> {
        let mut all = Vec::new();
        for planned in &self.plan.steps {
            let step = Address::from_text(&planned.step);
            let reasons = || planned.why.iter().map(|it| reason(it, self.of.session.now));
            let why = || reasons().collect::<Vec<_>>().join("; ");
            let ask = |about, text| Question { step: step.clone(), about, text };
            if planned.may_be_kept() {
                all.push(ask(About::Stale, format!("{step} runs again: {}", why())));
            } else if was_improved(planned) {
                all.push(ask(About::Improved, format!("{step} is kept: {}", why())));
            }
            // What another system left half done is undone or kept as a whole.
            let own = |it: &PlannedRevert| match it.kind {
                RevertKind::RestoreFile | RevertKind::RemoveFile => {
                    it.step.as_ref() == Some(&planned.step)
                }
                // What a person changed is asked about by its finding.
                RevertKind::ReplaceFile | RevertKind::TruncateRows | RevertKind::ResetWorktree => {
                    false
                }
            };
            let undone: Vec<&str> =
                self.plan.reverts.iter().filter(|it| own(it)).map(|it| it.path.as_str()).collect();
            if !undone.is_empty() {
                let text = format!("{step} left half-done work in {}", undone.join(", "));
                all.push(ask(About::HalfDone, text));
            }
        }
        for finding in self.standing.iter().filter(|it| asks(it)) {
            let step = finding.step.as_deref().map(Address::from_text);
            let (code, text) = (finding.code.clone(), finding.message.clone());
            all.extend(step.map(|step| Question { step, about: About::Finding(code), text }));
        }
        all
    }

    fn steps(&mut self, choices: &mut Choices) -> Result<(), Error> {
        for Question { step, about, text } in self.questions() {
            let text = wrap(&printable(&text), columns_of_errors(), 0, 2);
            self.person.screen().line(&text);
            match about {
                About::Stale => {
                    if self.pick(
                        "Run it again, or keep it as it is?",
                        &["run", "keep"],
                        First::ByDefault,
                    )? == 1
                    {
                        choices.keep.push(step);
                    }
                }
                About::Improved => {
                    let question = "Keep it with the change, or run it again?";
                    if self.pick(question, &["keep", "run"], First::ByDefault)? == 1 {
                        choices.redo.push(step);
                    }
                }
                About::HalfDone => {
                    let question = "Undo that (a copy is saved), or leave it there?";
                    if self.pick(question, &["undo", "leave"], First::ByDefault)? == 1 {
                        choices.leave.push(step);
                    }
                }
                About::Finding(code) => {
                    let accept = Accept { code, step: Some(step.clone()) };
                    if is_effect(&accept) {
                        self.person.screen().line("  yes   it happened: count it as done");
                        self.person.screen().line("  no    run it again; if it did happen, twice");
                        self.person.screen().line("  stop  decide nothing now");
                        let words = ["stop", "yes", "no"];
                        match self.pick("Did it happen?", &words, First::ByDefault)? {
                            1 => self.count_as_done(&step),
                            2 => choices.accepted.push(accept),
                            _ => {}
                        }
                    } else {
                        self.person.screen().line("  stop      decide nothing now");
                        let goes =
                            format!("  continue  nothing is undone; {step} runs again on top");
                        self.person.screen().line(&goes);
                        let words = ["stop", "continue"];
                        if self.pick("Which one?", &words, First::ByDefault)? == 1 {
                            choices.accepted.push(accept);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// The person says that it happened: recorded at once, as `onward done` does it.
    fn count_as_done(&mut self, step: &Address) {
        let session = self.of.session;
        let done = engine::done(self.of.dir, step, session.user(), &session.machine);
        match done {
            Ok(()) => self.person.screen().line(&format!("{step} now counts as done")),
            Err(error) => self.person.screen().line(&error::chain(&error)),
        }
    }

    fn cancel(&mut self) -> Result<Way, Error> {
        let question = "Leave everything as it is, or cancel the run for good?";
        let picked = self.pick(question, &["leave", "cancel"], First::ByDefault)?;
        Ok(if picked == 0 { Way::Nothing } else { Way::End })
    }

    fn pick(&mut self, question: &str, words: &[&str], first: First) -> Result<usize, Error> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let picked = self.person.pick(question, &words, first);
        self.answered(picked)
    }

    fn answered<T>(&self, answer: Option<T>) -> Result<T, Error> {
        let run = id_of(self.of.dir);
        answer.ok_or_else(|| {
            if self.person.was_interrupted() {
                Error::Interrupted { command: format!("resume {run}") }
            } else {
                unanswered(run, &self.asked_for, self.standing, self.of.pinned)
            }
        })
    }
}

struct Question {
    step: Address,
    about: About,
    text: String,
}

enum About {
    /// It was done, and something that it stands on changed.
    Stale,
    /// A person changed its output, which stays as it is.
    Improved,
    HalfDone,
    /// A finding by its code.
    Finding(String),
}

/// What stands in the way of one step alone.
fn asks(finding: &Finding) -> bool {
    let codes = [Code::AttemptContested, Code::EffectUnknown];
    finding.step.is_some() && codes.iter().any(|code| code.as_str() == finding.code)
}

fn was_improved(planned: &PlannedStep) -> bool {
    let changed = Code::ArtifactChanged.as_str();
    planned.verdict == Verdict::Keep && planned.why.iter().any(|it| it.cause == changed)
}

fn is_effect(accept: &Accept) -> bool {
    accept.code == Code::EffectUnknown.as_str()
}

/// What entering there would mean.
fn means(entry: &EntryPoint) -> String {
    let mut parts = Vec::new();
    if entry.redone > 0 {
        parts.push(format!("repeats {}", count(entry.redone, "done step")));
    }
    if entry.passed_over > 0 {
        parts.push(format!("skips {}", count(entry.passed_over, "unfinished step")));
    }
    if parts.is_empty() { "nothing repeated, nothing skipped".to_owned() } else { parts.join(", ") }
}

enum Target {
    At(Address),
    /// Nothing was typed.
    Back,
}

fn target(run: &Run, list: &[EntryPoint], text: &str) -> Option<Target> {
    if text.is_empty() {
        return Some(Target::Back);
    }
    let by_number = || list.get(text.parse::<usize>().ok()?.checked_sub(1)?);
    if let Some(entry) = by_number() {
        return Some(Target::At(entry.step.clone()));
    }
    has_entry(run, text).then(|| Target::At(Address::from_text(text)))
}
