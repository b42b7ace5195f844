//! Finding out what the decider does not know: texts of files, and the files that match a pattern.

use std::collections::BTreeSet;

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
                let bytes = world.read(At::Project(&path))?;
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
