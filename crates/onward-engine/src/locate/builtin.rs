//! A built-in workflow, with the prompts that a project has in the place of ours.

use crate::world::open;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use onward_core::workflow::{Loaded, Problem, load};
use onward_dialects::builtin::{self, Part};

use super::Project;

/// A prompt of the project's own may be this large.
const PROMPT_BYTES_MAX: u64 = 1 << 20;

/// The names of all built-in workflows.
pub fn builtin_names() -> impl Iterator<Item = &'static str> {
    builtin::names()
}

/// The roles that a configuration can give to agents.
pub fn builtin_roles() -> BTreeSet<String> {
    builtin::roles()
}

/// How the roles of built-in workflows are played, where that is otherwise than they say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cast {
    /// One agent for all roles.
    pub all: Option<String>,
    pub roles: BTreeMap<String, Part>,
}

impl Cast {
    fn of(&self, text: &str) -> String {
        builtin::cast(text, &|role| self.part(role))
    }

    /// The permissions of a role stay when another agent plays it. The names of tools are words of
    /// the agent that they were written for.
    fn part(&self, role: &str) -> Part {
        let part = self.roles.get(role).cloned().unwrap_or_default();
        match &self.all {
            Some(all) if part.agent.as_ref() != Some(all) => {
                Part { agent: Some(all.clone()), allow: Vec::new(), ..part }
            }
            Some(_) | None => part,
        }
    }
}

/// `None` when there is no built-in workflow of this name.
pub fn load_builtin(
    project: Option<&Project>,
    name: &str,
    cast: &Cast,
) -> Option<Result<Loaded, Vec<Problem>>> {
    let text = cast.of(builtin::workflow(name)?);
    let onward_dir = project.map(Project::onward_dir);
    let mut read = |relative: &str| {
        let own = builtin::replaceable(relative).zip(onward_dir.as_ref());
        match own.map(|(relative, dir)| dir.join(relative)).filter(|path| path.is_file()) {
            Some(path) => own_prompt(&path),
            None => builtin::file(relative)
                .map(|text| {
                    let is_workflow =
                        Path::new(relative).extension().is_some_and(|it| it == "yaml");
                    if is_workflow { cast.of(text).into_bytes() } else { text.as_bytes().to_vec() }
                })
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
    open::read_named(path, open::FILE_BYTES_MAX).map_err(|error| error.to_string())
}
