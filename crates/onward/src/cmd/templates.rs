//! What `onward init` can begin with: workflows to start from, and what is built in.

use clap::ValueEnum as _;

use crate::{cmd::Context, error::Error, prompt::Person, session::Driving};

#[derive(clap::ValueEnum, Clone, Copy, Debug)]
pub(crate) enum Origin {
    /// Plain commands and a gate (the default)
    Commands,
    /// An agent, a review loop and a gate
    Review,
    /// A fan-out of agents, each in a git worktree
    FanOut,
    /// A conference of researchers: writes conference.md
    Conference,
    /// From a request through specification, plan and tasks; built in
    AgentMemory,
    /// Five phases from a wish to verified work; built in
    Dotagent,
    /// The phases P0 to P8 of a pipeline; built in
    Pipeline,
    /// A story from draft to done; built in
    Sdc,
}

/// What is written for a template.
pub(crate) enum Begin {
    /// A workflow with this text below [`HEAD`].
    Workflow(&'static str),
    Conference,
    /// Nothing but what stands beside a workflow: the command that starts it.
    BuiltIn(&'static str),
}

impl Origin {
    pub(crate) fn begin(self) -> Begin {
        match self {
            Self::Commands => Begin::Workflow(COMMANDS),
            Self::Review => Begin::Workflow(REVIEW),
            Self::FanOut => Begin::Workflow(FAN),
            Self::Conference => Begin::Conference,
            Self::AgentMemory => Begin::BuiltIn("run agent-memory --input request='WISH'"),
            Self::Dotagent => Begin::BuiltIn("run dotagent --input request='WISH'"),
            Self::Pipeline => Begin::BuiltIn("run pipeline --input request='WISH'"),
            Self::Sdc => Begin::BuiltIn("run sdc --input story=1.1 --input request='WISH'"),
        }
    }
}

/// What the person at the terminal wants; elsewhere the first.
pub(crate) fn chosen(cx: &Context) -> Result<Origin, Error> {
    let mut person = Person::at_terminal(cx, &Driving::default());
    let all = Origin::value_variants();
    if !person.is_there() {
        return Ok(Origin::Commands);
    }
    person.heed_interrupts();
    let values: Vec<_> = all.iter().filter_map(clap::ValueEnum::to_possible_value).collect();
    for value in &values {
        let what = value.get_help().map(ToString::to_string).unwrap_or_default();
        person.screen().line(&format!("  {:<12}  {what}", value.get_name()));
    }
    let names: Vec<String> = values.iter().map(|it| it.get_name().to_owned()).collect();
    match person.until("Which one? [commands] ", |text| means(text, &names)) {
        Some(at) => Ok(all[at]),
        None => Err(Error::Usage {
            message: "nothing was chosen".to_owned(),
            hint: "name one: `onward init --from commands`".to_owned(),
        }),
    }
}

/// Nothing, a name, or as much of it as no other has.
fn means(text: &str, names: &[String]) -> Result<usize, String> {
    let meant = if text.is_empty() { names.first() } else { crate::prompt::option(text, names) };
    let at = meant.and_then(|meant| names.iter().position(|it| it == meant));
    at.ok_or_else(|| {
        let text = crate::diagnostic::printable(text);
        format!("`{text}` is none of these: type one of the names above, or only Return")
    })
}

/// Before every workflow, so that editors complete and check it.
pub(crate) const HEAD: &str = "\
# yaml-language-server: $schema=./.onward/workflow.schema.json
# Check it with `onward check NAME.yaml`, run it with `onward run NAME.yaml`.
onward: 1
name: NAME
";

const COMMANDS: &str = "\
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

const REVIEW: &str = "\
inputs:
  topic: { type: string, default: tea }
steps:
  - id: draft
    agent: claude
    prompt: Write a short text about {{ inputs.topic }} to draft.md.
    writes: [draft.md]
  - id: round
    repeat: { max: 3, until: \"{{ steps.review.result.ok }}\", on_max: continue }
    steps:
      - id: review
        agent: claude
        prompt: >-
          Read draft.md as a strict editor. Answer with JSON:
          {\"ok\": true or false, \"notes\": \"what to change\"}
        result: { schema: NAME.review.json }
        reads: [draft.md]
      - id: revise
        when: \"{{ not steps.review.result.ok }}\"
        agent: claude
        prompt: Change draft.md as these notes say. {{ steps.review.result.notes }}
        writes: [draft.md]
  - id: approve
    gate: Is draft.md ready?
    shows: [draft.md]
";

/// What a reviewer must answer.
pub(crate) const REVIEW_SCHEMA: &str = "\
{
  \"type\": \"object\",
  \"required\": [\"ok\"],
  \"properties\": { \"ok\": { \"type\": \"boolean\" }, \"notes\": { \"type\": \"string\" } }
}
";

const FAN: &str = "\
steps:
  - id: work
    each: [first, second, third]
    worktree: true
    agent: claude
    prompt: Do the part called {{ item }}.
  - id: approve
    gate: |
      Are the parts ready to be merged? Each is on a branch of its own:
      git branch --list 'onward/{{ run.id }}/*'
";
