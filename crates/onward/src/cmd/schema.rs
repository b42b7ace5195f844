//! `onward schema`: JSON Schemas of what onward reads and prints.

use std::process::ExitCode;

use onward_core::{plan::Plan, view::View, workflow::schema::workflow_schema};

use crate::{cmd::Context, error::Error};

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
}

pub(crate) fn run(cx: &mut Context, args: &SchemaArgs) -> Result<ExitCode, Error> {
    let schema = match args.format {
        Format::Workflow => workflow_schema(),
        Format::Plan => schemars::schema_for!(Plan).into(),
        Format::Status => schemars::schema_for!(View).into(),
    };
    writeln!(cx.out, "{schema:#}")?;
    Ok(ExitCode::SUCCESS)
}
