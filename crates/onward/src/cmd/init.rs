//! `onward init`: a file to start from. A workflow, or the conference.md of a conference.
//!
//! Invariant: no file is ever put in the place of another. On a terminal what is missing is asked
//! for; elsewhere it is named.

use onward_engine::world::open;
use std::{
    io::{BufRead as _, IsTerminal as _, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
};

use onward_engine::play::conference::{
    DOCUMENT, Direction, Draft, Measure, try_evaluator, uncommitted,
};

use crate::{
    cmd::{
        Context,
        templates::{self, Begin, HEAD, Origin, REVIEW_SCHEMA},
    },
    command::onward,
    diagnostic::printable,
    error::Error,
    session::word,
    shapes::Written,
    style::WARN,
};

/// Write a workflow to start from, or plan a conference
///
/// Also writes, where they are missing, a commented configuration, the schema that editors check
/// the workflow with, and a `.gitignore` that leaves runs out. `--from conference` writes a
/// conference.md. On a terminal it asks for what the flags leave open;
/// elsewhere it says which flags are missing. The evaluator is tried once before anything is
/// written.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "Examples:\n  onward init release\n  onward init --from conference\n  \
    onward init --from conference --goal 'Cut p95 latency' --metric p95_ms \\\n      \
    --direction minimize --evaluator 'sh measure.sh' \\\n      \
    --allowed 'the source code' --researchers 3 --iterations 4 --rounds 3 \\\n      \
    --devils-advocate no")]
pub(crate) struct InitArgs {
    /// What to call it; the file is NAME.yaml
    #[arg(default_value = "workflow")]
    name: String,
    /// Which template; on a terminal it is asked for
    #[arg(long, value_enum)]
    from: Option<Origin>,
    #[command(flatten)]
    answers: Answers,
}

/// What a conference must know, see `--from conference`.
#[derive(clap::Args, Clone, Debug)]
#[command(next_help_heading = "For --from conference")]
struct Answers {
    /// What is to be found out or reached
    #[arg(long, requires = "from")]
    goal: Option<String>,
    /// What is measured; leave it out for success criteria in words
    #[arg(long, requires = "from")]
    metric: Option<String>,
    /// maximize or minimize
    #[arg(long, requires = "from")]
    direction: Option<String>,
    /// When the metric is good enough, such as `< 50`
    #[arg(long, requires = "from")]
    target: Option<String>,
    /// The command that prints the metric
    #[arg(long, requires = "from")]
    evaluator: Option<String>,
    /// How success is recognised without a metric
    #[arg(long, requires = "from", conflicts_with = "metric")]
    criteria: Option<String>,
    /// What researchers may change
    #[arg(long, requires = "from")]
    allowed: Option<String>,
    /// What they may not
    #[arg(long, requires = "from")]
    forbidden: Option<String>,
    /// How many researchers, 1 to 26
    #[arg(long, requires = "from", value_parser = clap::value_parser!(u32).range(1..=26))]
    researchers: Option<u32>,
    /// Iterations of each in a round, the baseline among them
    #[arg(long, requires = "from", value_parser = clap::value_parser!(u32).range(1..))]
    iterations: Option<u32>,
    /// Rounds at most
    #[arg(long, requires = "from", value_parser = clap::value_parser!(u32).range(1..))]
    rounds: Option<u32>,
    /// yes or no: one researcher doubts what the others believe
    #[arg(long, requires = "from", value_name = "YES/NO")]
    devils_advocate: Option<String>,
    /// Divide the search space among the researchers
    #[arg(long, requires = "from")]
    assigned: bool,
    /// Iterations in all, at most
    #[arg(long, requires = "from")]
    max_iterations: Option<u32>,
    /// Time in all, such as 2h
    #[arg(long, requires = "from")]
    time_budget: Option<String>,
}

pub(crate) fn run(cx: &mut Context, args: &InitArgs) -> Result<ExitCode, Error> {
    let origin = match args.from {
        Some(origin) => origin,
        None => templates::chosen(cx)?,
    };
    let body = match origin.begin() {
        Begin::Workflow(body) => body,
        Begin::Conference => return plan(cx, &args.answers),
        Begin::BuiltIn(command) => {
            let beside = around(cx)?;
            let what = "it is built in, and needs no file";
            let command = onward!("{command}");
            return told(cx, ".onward/config.toml", Some(what), &beside, &command);
        }
    };
    let file = PathBuf::from(format!("{}.yaml", args.name));
    let text = format!("{HEAD}{body}").replace("NAME", &args.name);
    refuse_present(&cx.path(&file))?;
    let mut beside = around(cx)?;
    if matches!(origin, Origin::Review) {
        let name = format!("{}.review.json", args.name);
        let path = cx.path(name.as_ref());
        if !path.exists() {
            open::put(&path, REVIEW_SCHEMA.as_bytes(), open::SHARED)
                .map_err(|source| Error::CannotMake { path, source })?;
            beside.insert(0, name);
        }
    }
    write(cx, &file, &text, &beside, &onward!("check {}", word(&file.display().to_string())))
}

fn refuse_present(path: &Path) -> Result<(), Error> {
    if path.exists() {
        let source = std::io::ErrorKind::AlreadyExists.into();
        return Err(Error::CannotMake { path: path.to_owned(), source });
    }
    Ok(())
}

/// What stands beside a workflow: settings, the schema for editors, and what git is to leave out.
/// What is there already stays; the names of what is new.
fn around(cx: &Context) -> Result<Vec<String>, Error> {
    let dir = cx.path(".onward".as_ref());
    let cannot_make = |path: &Path| {
        let path = path.to_owned();
        move |source| Error::CannotMake { path, source }
    };
    std::fs::create_dir_all(&dir).map_err(cannot_make(&dir))?;
    let schema = format!("{:#}\n", onward_core::workflow::schema::workflow_schema());
    let mut made = Vec::new();
    for (name, text) in [
        ("config.toml", super::config::TEMPLATE),
        ("workflow.schema.json", &schema),
        // Settings, prompts and workflows are the team's; runs are this machine's.
        (
            ".gitignore",
            "*\n!.gitignore\n!config.toml\n!workflow.schema.json\n!prompts/\n!prompts/**\n\
             !workflows/\n!workflows/**\n",
        ),
    ] {
        let path = dir.join(name);
        if !path.exists() {
            open::put(&path, text.as_bytes(), open::SHARED).map_err(cannot_make(&path))?;
            made.push(format!(".onward/{name}"));
        }
    }
    Ok(made)
}

/// `beside` = what was written before it.
fn write(
    cx: &mut Context,
    file: &Path,
    text: &str,
    beside: &[String],
    next: &str,
) -> Result<ExitCode, Error> {
    let path = cx.path(file);
    let made = open::new(&path, open::SHARED);
    let mut made = made.map_err(|source| Error::CannotMake { path, source })?;
    made.write_all(text.as_bytes())?;
    let shown = file.display().to_string();
    let made: Vec<String> = std::iter::once(&shown).chain(beside).cloned().collect();
    told(cx, &shown, None, &made, next)
}

/// `what` = what there is to know besides; `made` = every file that was written.
fn told(
    cx: &mut Context,
    file: &str,
    what: Option<&str>,
    made: &[String],
    next: &str,
) -> Result<ExitCode, Error> {
    if cx.global.json {
        let (schema, file) = ("onward.init/1".to_owned(), file.to_owned());
        return cx.print_json(&Written { schema, file, wrote: made.to_vec() });
    }
    if let Some(what) = what {
        writeln!(cx.err, "{what}")?;
    }
    for file in made {
        writeln!(cx.err, "wrote {}", printable(file))?;
    }
    writeln!(cx.err, "{next}")?;
    Ok(ExitCode::SUCCESS)
}

/// The wizard.
fn plan(cx: &mut Context, answers: &Answers) -> Result<ExitCode, Error> {
    let path = cx.path(DOCUMENT.as_ref());
    if path.exists() {
        let source = std::io::ErrorKind::AlreadyExists.into();
        return Err(Error::CannotMake { path, source });
    }
    let is_terminal = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    let mut ask = Ask { cx, is_terminal, missing: Vec::new(), tried: false };
    let draft = ask.draft(answers)?;
    let (missing, tried) = (std::mem::take(&mut ask.missing), ask.tried);
    if !missing.is_empty() {
        return Err(Error::Usage {
            message: format!("a conference needs {}", missing.join(", ")),
            hint: "see `onward init --help`, or answer at a terminal".into(),
        });
    }
    if let Measure::Metric { evaluator, .. } = &draft.measure
        && !tried
    {
        let tried = try_evaluator(evaluator, &cx.path(".".as_ref()))?;
        if !cx.global.quiet && !cx.global.json {
            writeln!(cx.err, "the evaluator says {tried}")?;
        }
    }
    if let Measure::Metric { evaluator, .. } = &draft.measure
        && !cx.global.json
    {
        let env = std::env::vars_os().collect();
        for path in uncommitted(evaluator, &cx.path(".".as_ref()), &env) {
            let path = printable(&path);
            let line = format!(
                "{WARN}warning{WARN:#}: {path} is not in git: researchers work in worktrees of \
                 your last commit, where the evaluator will not find it. Add and commit it first"
            );
            writeln!(cx.err, "{line}")?;
        }
    }
    write(cx, DOCUMENT.as_ref(), &draft.text(), &[], &onward!("run conference"))
}

struct Ask<'a> {
    cx: &'a mut Context,
    is_terminal: bool,
    /// The flags of what is still unanswered.
    missing: Vec<&'static str>,
    /// The evaluator works.
    tried: bool,
}

impl Ask<'_> {
    fn draft(&mut self, given: &Answers) -> Result<Draft, Error> {
        let goal = self.text("--goal", "What is the goal?", given.goal.as_deref())?;
        let measure = self.measure(given)?;
        let allowed =
            self.text("--allowed", "What may researchers change?", given.allowed.as_deref())?;
        let researchers =
            self.number("--researchers", "How many researchers?", given.researchers)?;
        let iterations =
            self.number("--iterations", "Iterations of each in a round?", given.iterations)?;
        let rounds = self.number("--rounds", "How many rounds at most?", given.rounds)?;
        let devils_advocate = self.one_of(
            ("--devils-advocate", "A devil's advocate (yes or no)?"),
            given.devils_advocate.as_deref(),
            "yes or no",
            |text| match text {
                "yes" | "y" | "true" => Some(true),
                "no" | "n" | "false" | "" => Some(false),
                _ => None,
            },
        )?;
        Ok(Draft {
            title: goal.lines().next().unwrap_or_default().to_owned(),
            goal,
            measure,
            researchers,
            iterations,
            rounds,
            devils_advocate,
            allowed,
            forbidden: given.forbidden.clone(),
            assigned: given.assigned,
            max_iterations: given.max_iterations,
            time_budget: given.time_budget.clone(),
        })
    }

    fn measure(&mut self, given: &Answers) -> Result<Measure, Error> {
        if let Some(criteria) = &given.criteria {
            return Ok(Measure::Criteria(criteria.clone()));
        }
        let question = "What is measured? (Return: nothing, success is judged by words)";
        let metric = match &given.metric {
            Some(metric) => metric.clone(),
            None if self.is_terminal => self.line(question)?,
            None => {
                self.missing.push("--metric or --criteria");
                return Ok(Measure::Criteria(String::new()));
            }
        };
        if metric.is_empty() {
            let criteria =
                self.text("--criteria", "What must be true for it to be a success?", None)?;
            return Ok(Measure::Criteria(criteria));
        }
        let question = "maximize or minimize?";
        let direction = self.one_of(
            ("--direction", question),
            given.direction.as_deref(),
            "maximize or minimize",
            |text| match text {
                it if it.starts_with("max") => Some(Direction::Maximize),
                it if it.starts_with("min") || it.is_empty() => Some(Direction::Minimize),
                _ => None,
            },
        )?;
        let question = "Which command prints the metric?";
        let mut evaluator = self.text("--evaluator", question, given.evaluator.as_deref())?;
        // One that does not work is asked for again, and the other answers stay.
        while self.is_terminal && !self.tried {
            match try_evaluator(&evaluator, &self.cx.path(".".as_ref())) {
                Ok(says) => {
                    writeln!(self.cx.err, "the evaluator says {}", printable(&says))?;
                    self.tried = true;
                }
                Err(why) => {
                    writeln!(self.cx.err, "{}", printable(&crate::error::chain(&why)))?;
                    evaluator = self.text("--evaluator", question, None)?;
                }
            }
        }
        Ok(Measure::Metric { name: metric, direction, target: given.target.clone(), evaluator })
    }

    /// Empty when there is no terminal to ask at; then the flag is among the missing.
    fn text(
        &mut self,
        flag: &'static str,
        question: &str,
        given: Option<&str>,
    ) -> Result<String, Error> {
        if let Some(given) = given.filter(|it| !it.trim().is_empty()) {
            return Ok(given.to_owned());
        }
        if !self.is_terminal {
            self.missing.push(flag);
            return Ok(String::new());
        }
        loop {
            let answer = self.line(question)?;
            if !answer.is_empty() {
                return Ok(answer);
            }
        }
    }

    /// One of a few words. At a terminal a wrong one is asked for again, and nothing is lost.
    fn one_of<T>(
        &mut self,
        (flag, question): (&'static str, &str),
        given: Option<&str>,
        words: &str,
        means: impl Fn(&str) -> Option<T>,
    ) -> Result<T, Error> {
        let mut given = given;
        loop {
            let text = self.text(flag, question, given)?;
            if let Some(meant) = means(&text.to_lowercase()) {
                return Ok(meant);
            }
            if !self.is_terminal {
                return Err(Error::Usage {
                    message: format!("{flag} is {words}, not `{text}`"),
                    hint: "see `onward init --help`".into(),
                });
            }
            writeln!(self.cx.err, "`{}` is not an answer here: type {words}", printable(&text))?;
            given = None;
        }
    }

    fn number(
        &mut self,
        flag: &'static str,
        question: &str,
        given: Option<u32>,
    ) -> Result<u32, Error> {
        loop {
            let given = given.map(|it| it.to_string());
            let answer = self.text(flag, question, given.as_deref())?;
            match answer.parse() {
                Ok(number) if number > 0 => return Ok(number),
                Ok(_) | Err(_) if !self.is_terminal => return Ok(0),
                Ok(_) | Err(_) => {
                    let answer = printable(&answer);
                    writeln!(self.cx.err, "`{answer}` is not an answer here: type a number")?;
                }
            }
        }
    }

    fn line(&mut self, question: &str) -> Result<String, Error> {
        write!(self.cx.err, "{question} ")?;
        self.cx.err.flush()?;
        let mut answer = String::new();
        if std::io::stdin().lock().read_line(&mut answer)? == 0 {
            return Err(Error::Usage {
                message: "the answers ended before the questions".into(),
                hint: "see `onward init --help` for the flags".into(),
            });
        }
        Ok(answer.trim().to_owned())
    }
}
