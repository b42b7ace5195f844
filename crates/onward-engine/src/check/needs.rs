//! Finding out what the decider does not know: texts of files, and the files that match a pattern.
//!
//! Invariant: a file that a template cannot have is the step's failure, never the run's.

use std::{collections::BTreeSet, io::ErrorKind};

use onward_core::facts::{Need, StepFacts};

use crate::world::{At, Stop, World};

/// Each answer is of this moment.
pub(crate) fn find_out<W: World>(
    world: &mut W,
    facts: &mut StepFacts,
    needs: BTreeSet<Need>,
) -> Result<(), Stop> {
    for need in needs {
        match need {
            Need::Text(path) => {
                let bytes = match world.read(At::Project(&path)) {
                    Err(Stop::Io { source, .. }) if is_none_to_read(source.kind()) => None,
                    other => other?,
                };
                let text = bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
                facts.texts.insert(path, text);
            }
            Need::Glob(pattern) => {
                let files = world.glob(&pattern, &[])?;
                facts.globs.insert(pattern, files);
            }
        }
    }
    Ok(())
}

/// It leads out of the project, is no file, is too large, or has a name that no file can have.
fn is_none_to_read(kind: ErrorKind) -> bool {
    use ErrorKind::{FileTooLarge, InvalidFilename, InvalidInput};
    matches!(kind, InvalidInput | FileTooLarge | InvalidFilename)
}
