//! The run store: where runs are, how one is made, found and held.
//!
//! - [`Project`] locates `.onward`; [`Project::runs`] and [`Project::find`] look into it.
//! - [`create_run`] makes a run whole or not at all.
//! - [`RunLock`] and [`TreeLock`] say who may write to a run, and to the tree.
//! - [`load_workflow`] and [`load_pinned`] read a workflow, and the copy that a run keeps of one;
//!   [`load_builtin`] one that comes with the program.
//! - [`Search`] finds the runs of other systems.
//!
//! Invariant: a name under `.onward/runs` that does not begin with a dot is a whole run.

mod builtin;
pub mod config;
mod create;
mod find;
mod lock;
mod misnamed;
mod network;
mod origin;
mod packed;
mod pinned;
mod project;
pub mod settings;
mod sites;

pub use builtin::{Cast, builtin_names, builtin_roles, load_builtin};
pub use create::{CreateError, NewRun, OPENED, create_run, example, kind_name};
pub use find::{FindError, RunDir, near};
pub use lock::{Holder, LockError, RunLock, Share, TakeOver, TreeLock, holder};
pub use misnamed::Misnamed;
pub use origin::{Origin, opened};
pub(crate) use packed::keep_new;
pub use pinned::{
    LoadWorkflowError, Pinned, keep_beside, last_kept, load_kept, load_pinned, load_workflow,
    pinned_names,
};
pub use project::Project;
pub use sites::{FoundSite, Search, has_tasks, is_task_list, is_tasks_root};
