//! The real systems: where their runs lie, how far they had come, and what counts as the same end.

use std::{collections::BTreeMap, path::Path};

use globset::Glob;
use onward_core::{time::Timestamp, workflow};
use onward_dialects::{
    agent_memory::AGENT_MEMORY,
    builtin,
    dotagent::DOTAGENT,
    pipeline::PIPELINE,
    sdlc::SDLC,
    seam::{Candidate, Dialect, Glimpse, Listing, Site},
};
use onward_engine::foreign::Foreign;
use serde_json::{Value, json};

use super::stage::{Held, Stage, walk};

onward_core::listed! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum System {
        AgentMemory,
        Dotagent,
        Pipeline,
        Sdlc,
    }
}

impl System {
    pub(crate) fn dialect(self) -> &'static dyn Dialect {
        match self {
            Self::AgentMemory => &AGENT_MEMORY,
            Self::Dotagent => &DOTAGENT,
            Self::Pipeline => &PIPELINE,
            Self::Sdlc => &SDLC,
        }
    }

    /// The directory whose marks are looked at.
    pub(crate) fn home(self, stage: &Stage) -> String {
        match self {
            Self::AgentMemory | Self::Dotagent | Self::Sdlc => ".".to_owned(),
            Self::Pipeline => stage.outside("list"),
        }
    }

    /// Its calls look from the directory that they are started in.
    pub(crate) fn is_in_project(self) -> bool {
        match self {
            Self::AgentMemory | Self::Pipeline => false,
            Self::Dotagent | Self::Sdlc => true,
        }
    }

    /// What lies outside of the project, by its absolute path. The lock is not content.
    pub(crate) fn elsewhere(self, stage: &Stage) -> Held {
        let mut found = Held::new();
        if self == Self::Pipeline {
            walk(Path::new(&stage.outside("list")), &mut |path, bytes| {
                if path.file_name().is_some_and(|it| it != ".lock") {
                    found.insert(path.to_str().unwrap().to_owned(), bytes);
                }
            });
        }
        found
    }
}

/// What a call needs of a repository; there is none on the stage.
pub(crate) enum ByGit {
    /// All that it does is git's: this is what it gives.
    Gives(Value),
    /// It brings work over, and then goes on without one.
    Brings,
    Nothing,
}

pub(crate) fn by_git(call: &str) -> ByGit {
    match call {
        "dotagent.merge" => ByGit::Gives(json!({ "merged": true, "conflicts": [] })),
        "pipeline.commit" => {
            ByGit::Gives(json!({ "commit": null, "nothing": true, "left_out": [] }))
        }
        "pipeline.settle" => ByGit::Brings,
        _ => ByGit::Nothing,
    }
}

/// The run that the files are, as the dialect itself finds it.
pub(crate) fn foreign(stage: &Stage, files: &Held) -> Foreign {
    let dialect = stage.system.dialect();
    let home = stage.system.home(stage);
    let mut marks = BTreeMap::new();
    for mark in dialect.card().marks {
        let glob = Glob::new(mark.glob).unwrap().compile_matcher();
        for (path, bytes) in files {
            let below = path.strip_prefix(&format!("{home}/")).unwrap_or(path);
            if glob.is_match(below) {
                let bytes = mark.peek.then(|| bytes.clone());
                let glimpse = Glimpse { modified: Some(Timestamp::default()), bytes };
                marks.insert(below.to_owned(), glimpse);
            }
        }
    }
    let candidates = vec![Candidate { dir: home, marks }];
    let sites = dialect.sites(&Listing { candidates, ..Listing::default() });
    let [site]: [Site; 1] = sites.try_into().unwrap_or_else(|it| panic!("{it:#?}"));
    Foreign { dialect, site, begins: false }
}

/// The built-in workflow that goes on with it.
pub(crate) fn workflow_of(name: &str) -> workflow::model::Workflow {
    let text = builtin::workflow(name).unwrap();
    let mut read = |path: &str| -> Result<Vec<u8>, String> {
        builtin::file(path).map(|text| text.as_bytes().to_vec()).ok_or("no such file".to_owned())
    };
    workflow::load(name, text.as_bytes(), &mut read).unwrap().workflow
}
