//! `onward init`: a file to start from. A workflow, or the conference.md of a conference.
//!
//! Invariant: one file, and never in the place of another. On a terminal what is missing is asked
//! for; elsewhere it is named.

use std::{
    io::{BufRead as _, IsTerminal as _, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
};

use onward_engine::play::conference::{DOCUMENT, Direction, Draft, Measure, try_evaluator};
use serde_json::json;

use crate::{cmd::Context, error::Error};

/// Write a workflow to start from, or plan a conference
///
/// `--from conference` writes a conference.md. On a terminal it asks for what the flags leave open;
/// elsewhere it says which flags are missing. The evaluator is tried once before anything is
/// written.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "Examples:\n  onward init release\n  onward init --from conference\n  \
    onward init --from conference --goal 'Cut p95 latency' --metric p95_ms --direction minimize \
    --evaluator 'sh measure.sh' --allowed 'the source code' --researchers 3 --iterations 4 \
    --rounds 3 --devils-advocate no")]
pub(crate) struct InitArgs {
    /// What to call it; the file is NAME.yaml
    #[arg(default_value = "workflow")]
    name: String,
    /// What to plan
    #[arg(long, value_enum)]
    from: Option<Origin>,
    #[command(flatten)]
    answers: Answers,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum Origin {
    Conference,
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
    /// How success is told without a metric
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

const TEMPLATE: &str = "\
# Check it with `onward check NAME.yaml`, run it with `onward run NAME.yaml`.
onward: 1
name: NAME
steps:
  - id: hello
    run: echo hello > hello.txt
    writes: [hello.txt]
  - id: approve
    gate: Is hello.txt as you want it?
    shows: [hello.txt]
  - id: shout
    run: tr a-z A-Z < hello.txt > shout.txt
    reads: [hello.txt]
    writes: [shout.txt]
    check: test -s shout.txt
";

pub(crate) fn run(cx: &mut Context, args: &InitArgs) -> Result<ExitCode, Error> {
    match args.from {
        None => {
            let file = PathBuf::from(format!("{}.yaml", args.name));
            let next = format!("onward check {}", file.display());
            write(cx, &file, &TEMPLATE.replace("NAME", &args.name), &next)
        }
        Some(Origin::Conference) => plan(cx, &args.answers),
    }
}

fn write(cx: &mut Context, file: &Path, text: &str, next: &str) -> Result<ExitCode, Error> {
    let path = cx.path(file);
    let made = std::fs::OpenOptions::new().write(true).create_new(true).open(&path);
    let mut made = made.map_err(|source| Error::CannotMake { path, source })?;
    made.write_all(text.as_bytes())?;
    let shown = file.display();
    if cx.global.json {
        writeln!(cx.out, "{}", json!({"schema": "onward.init/1", "file": shown.to_string()}))?;
    } else {
        writeln!(cx.err, "wrote {shown}\n{next}")?;
    }
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
    let mut ask = Ask { cx, is_terminal, missing: Vec::new() };
    let draft = ask.draft(answers)?;
    let missing = std::mem::take(&mut ask.missing);
    if !missing.is_empty() {
        return Err(Error::Usage {
            message: format!("a conference needs {}", missing.join(", ")),
            hint: "see `onward init --help`, or answer at a terminal".into(),
        });
    }
    if let Measure::Metric { evaluator, .. } = &draft.measure {
        let tried = try_evaluator(evaluator, &cx.path(".".as_ref()))?;
        if !cx.global.quiet && !cx.global.json {
            writeln!(cx.err, "the evaluator says {tried}")?;
        }
    }
    write(cx, DOCUMENT.as_ref(), &draft.text(), "onward run conference")
}

struct Ask<'a> {
    cx: &'a mut Context,
    is_terminal: bool,
    /// The flags of what is still unanswered.
    missing: Vec<&'static str>,
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
        let devil = given.devils_advocate.as_deref();
        let devil = self.text("--devils-advocate", "A devil's advocate (yes or no)?", devil)?;
        let devils_advocate = match devil.to_lowercase().as_str() {
            "yes" | "y" | "true" => true,
            "no" | "n" | "false" | "" => false,
            other => {
                return Err(Error::Usage {
                    message: format!("--devils-advocate is yes or no, not `{other}`"),
                    hint: "one researcher doubts what the others believe, or none does".into(),
                });
            }
        };
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
        let question = "What is measured? (nothing: success criteria in words)";
        let metric = match &given.metric {
            Some(metric) => metric.clone(),
            None if self.is_terminal => self.line(question)?,
            None => {
                self.missing.push("--metric or --criteria");
                return Ok(Measure::Criteria(String::new()));
            }
        };
        if metric.is_empty() {
            let criteria = self.text("--criteria", "How is success told?", None)?;
            return Ok(Measure::Criteria(criteria));
        }
        let question = "maximize or minimize?";
        let direction = self.text("--direction", question, given.direction.as_deref())?;
        let direction = match direction.to_lowercase() {
            it if it.starts_with("max") => Direction::Maximize,
            it if it.starts_with("min") || it.is_empty() => Direction::Minimize,
            other => {
                return Err(Error::Usage {
                    message: format!("--direction is maximize or minimize, not `{other}`"),
                    hint: "which way is better?".into(),
                });
            }
        };
        let question = "Which command prints the metric?";
        let evaluator = self.text("--evaluator", question, given.evaluator.as_deref())?;
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
                Ok(_) | Err(_) => {}
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
