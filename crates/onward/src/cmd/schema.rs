//! `onward schema`: JSON Schemas of what onward reads and prints.

use std::process::ExitCode;

use onward_core::{plan::Plan, view::View, workflow::schema::workflow_schema};
use onward_engine::care::{
    archive::Archived,
    doctor::Checkup,
    rehearse::Rehearsal,
    repair::Report,
    rescues::{BroughtBack, Rescues},
    verify::Verified,
};

use crate::{
    cmd::{
        Context, agents::Known, archive::Collected, config::Shown, list::Listing, output::Output,
        rescue, why::Answer,
    },
    error::Error,
    shapes::{
        Asked, Checked, Decided, Demo, Done, Failure, Outcome, Place, Program, Text, Written,
        event_schema,
    },
};

/// Print the JSON Schema of a format, for editors and scripts
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "Examples:\n  onward schema workflow > workflow.schema.json\n  \
    onward schema plan")]
pub(crate) struct SchemaArgs {
    /// Which format
    #[arg(value_enum, default_value_t = Format::Workflow)]
    format: Format,
}

/// Every format with a published schema.
#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum Format {
    /// The workflow file
    Workflow,
    /// What `plan --json` prints
    Plan,
    /// What `status --json` prints
    Status,
    /// What `list --json` prints
    List,
    /// What `check --json` prints
    Check,
    /// What `why --json` prints
    Why,
    /// What `run --json`, `resume --json`, `attach --json` and `log --json` print for each event
    Event,
    /// What `run --json`, `resume --json` and `attach --json` print last
    Outcome,
    /// What every command prints with `--json` when it fails
    Error,
    /// What `log --step --json` prints
    Output,
    /// What `config --json` prints
    Config,
    /// What `config path --json`, `config edit --json` and `man --dir --json` print
    Path,
    /// What `verify --json` prints
    Verify,
    /// What `repair --json` prints
    Repair,
    /// What `doctor --json` prints
    Doctor,
    /// What `rescue list --json` prints
    Rescues,
    /// What `rescue show --json` and `rescue diff --json` print
    Rescue,
    /// What `undo --json` prints
    Undo,
    /// What `archive --json` prints
    Archive,
    /// What `gc --json` prints
    Gc,
    /// What `rehearse --json` prints
    Rehearse,
    /// What `agents --json` prints
    Agents,
    /// What `init --json` prints
    Init,
    /// What `decide --json`, `approve --json` and `reject --json` print
    Decided,
    /// What `pause --json` and `cancel --json` print
    Asked,
    /// What `done --json` prints
    Done,
    /// What `demo --json` prints
    Demo,
    /// What `version --json` prints
    Version,
    /// What `help --json`, `man --json` and `completions --json` print
    Text,
}

pub(crate) fn run(cx: &mut Context, args: &SchemaArgs) -> Result<ExitCode, Error> {
    let schema = match args.format {
        Format::Workflow => workflow_schema(),
        Format::Plan => schemars::schema_for!(Plan).into(),
        Format::Status => schemars::schema_for!(View).into(),
        Format::List => schemars::schema_for!(Listing).into(),
        Format::Check => schemars::schema_for!(Checked).into(),
        Format::Why => schemars::schema_for!(Answer).into(),
        Format::Event => event_schema(),
        Format::Outcome => schemars::schema_for!(Outcome).into(),
        Format::Error => schemars::schema_for!(Failure).into(),
        Format::Output => schemars::schema_for!(Output).into(),
        Format::Config => schemars::schema_for!(Shown).into(),
        Format::Path => schemars::schema_for!(Place).into(),
        Format::Verify => schemars::schema_for!(Verified).into(),
        Format::Repair => schemars::schema_for!(Report).into(),
        Format::Doctor => schemars::schema_for!(Checkup).into(),
        Format::Rescues => schemars::schema_for!(Rescues).into(),
        Format::Rescue => schemars::schema_for!(rescue::Shown).into(),
        Format::Undo => schemars::schema_for!(BroughtBack).into(),
        Format::Archive => schemars::schema_for!(Archived).into(),
        Format::Gc => schemars::schema_for!(Collected).into(),
        Format::Rehearse => schemars::schema_for!(Rehearsal).into(),
        Format::Agents => schemars::schema_for!(Known).into(),
        Format::Init => schemars::schema_for!(Written).into(),
        Format::Decided => schemars::schema_for!(Decided).into(),
        Format::Asked => schemars::schema_for!(Asked).into(),
        Format::Done => schemars::schema_for!(Done).into(),
        Format::Demo => schemars::schema_for!(Demo).into(),
        Format::Version => schemars::schema_for!(Program).into(),
        Format::Text => schemars::schema_for!(Text).into(),
    };
    writeln!(cx.out, "{schema:#}")?;
    Ok(ExitCode::SUCCESS)
}
