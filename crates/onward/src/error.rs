//! Why a command failed: what happened, a code for scripts, and what to try next.

use std::{io, path::PathBuf};

use serde_json::{Value, json};

/// All is well.
pub(crate) const OK: u8 = 0;
/// Something outside did not work.
pub(crate) const FAILED: u8 = 1;
/// What was given is not valid: a file, or the command line.
pub(crate) const INVALID: u8 = 2;

/// Messages are lower-case fragments without a full stop, fit for `error: {error}`.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("cannot read `{}`: {}", path.display(), reason(source))]
    CannotRead { path: PathBuf, source: io::Error },
    #[error("cannot write to standard output: {0}")]
    CannotWrite(#[from] io::Error),
}

impl Error {
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::CannotRead { .. } => "cannot_read",
            Self::CannotWrite(_) => "cannot_write",
        }
    }

    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            Self::CannotRead { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                Some("check the path; relative ones start at `--cwd`, or here".into())
            }
            Self::CannotRead { .. } | Self::CannotWrite(_) => None,
        }
    }

    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            // Whoever read our output has seen enough.
            Self::CannotWrite(error) if error.kind() == io::ErrorKind::BrokenPipe => OK,
            Self::CannotRead { .. } | Self::CannotWrite(_) => FAILED,
        }
    }
}

/// Without the number that the operating system gives its errors.
pub(crate) fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    let end = text.find(" (os error").unwrap_or(text.len());
    text[..end].to_lowercase()
}

/// The shape of an error for scripts.
pub(crate) fn json(code: &str, message: &str, hint: Option<&str>) -> Value {
    json!({"schema": "onward.error/1", "code": code, "message": message, "hint": hint})
}
