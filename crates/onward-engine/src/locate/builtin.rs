//! A built-in workflow, with the prompts that a project has in the place of ours.

use std::{fs, path::Path};

use onward_core::workflow::{Loaded, Problem, load};
use onward_dialects::builtin;

use super::Project;

/// A prompt of the project's own may be this large.
const PROMPT_BYTES_MAX: u64 = 1 << 20;

/// The names of all built-in workflows.
pub fn builtin_names() -> impl Iterator<Item = &'static str> {
    builtin::names()
}

/// `None` when there is no built-in workflow of this name.
pub fn load_builtin(project: Option<&Project>, name: &str) -> Option<Result<Loaded, Vec<Problem>>> {
    let text = builtin::workflow(name)?;
    let onward_dir = project.map(Project::onward_dir);
    let mut read = |relative: &str| {
        let own = builtin::replaceable(relative).zip(onward_dir.as_ref());
        match own.map(|(relative, dir)| dir.join(relative)).filter(|path| path.is_file()) {
            Some(path) => own_prompt(&path),
            None => builtin::file(relative)
                .map(|text| text.as_bytes().to_vec())
                .ok_or_else(|| "there is no such built-in file".to_owned()),
        }
    };
    Some(load(&format!("{name}.yaml"), text.as_bytes(), &mut read))
}

fn own_prompt(path: &Path) -> Result<Vec<u8>, String> {
    let bytes = fs::metadata(path).map_err(|error| error.to_string())?.len();
    if bytes > PROMPT_BYTES_MAX {
        return Err(format!("it has {bytes} bytes"));
    }
    fs::read(path).map_err(|error| error.to_string())
}
