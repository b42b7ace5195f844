//! `onward schema`: JSON Schemas of what onward reads and prints.

use std::process::ExitCode;

use onward_core::workflow::schema::workflow_schema;

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
}

pub(crate) fn run(cx: &mut Context, args: &SchemaArgs) -> Result<ExitCode, Error> {
    let schema = match args.format {
        Format::Workflow => workflow_schema(),
    };
    writeln!(cx.out, "{schema:#}")?;
    Ok(ExitCode::SUCCESS)
}
