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
    cmd::{Context, archive::Collected},
    error::Error,
};

/// Print the JSON Schema of a format, for editors and scripts
#[derive(clap::Args, Clone, Debug)]
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
    /// What `verify --json` prints
    Verify,
    /// What `repair --json` prints
    Repair,
    /// What `doctor --json` prints
    Doctor,
    /// What `rescue list --json` prints
    Rescues,
    /// What `undo --json` prints
    Undo,
    /// What `archive --json` prints
    Archive,
    /// What `gc --json` prints
    Gc,
    /// What `rehearse --json` prints
    Rehearse,
}

pub(crate) fn run(cx: &mut Context, args: &SchemaArgs) -> Result<ExitCode, Error> {
    let schema = match args.format {
        Format::Workflow => workflow_schema(),
        Format::Plan => schemars::schema_for!(Plan).into(),
        Format::Status => schemars::schema_for!(View).into(),
        Format::Verify => schemars::schema_for!(Verified).into(),
        Format::Repair => schemars::schema_for!(Report).into(),
        Format::Doctor => schemars::schema_for!(Checkup).into(),
        Format::Rescues => schemars::schema_for!(Rescues).into(),
        Format::Undo => schemars::schema_for!(BroughtBack).into(),
        Format::Archive => schemars::schema_for!(Archived).into(),
        Format::Gc => schemars::schema_for!(Collected).into(),
        Format::Rehearse => schemars::schema_for!(Rehearsal).into(),
    };
    writeln!(cx.out, "{schema:#}")?;
    Ok(ExitCode::SUCCESS)
}
