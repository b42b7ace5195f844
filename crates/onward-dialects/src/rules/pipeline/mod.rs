//! What the workflow `pipeline` does with a task list: which tasks are made, and what is written
//! when one is begun, completed, reviewed or delivered.
//!
//! Invariant: pure, and every function is told the list as it is at this moment, under its lock.
//! Called again after it was cut short between any two changes, it gives the rest of them.

mod make;
mod progress;

pub use make::{Request, open, tasks};
pub use progress::{
    Begun, Settled, accept, begin, commit_files, deliver, delivered, fail, files_of, mended,
    mending, missed, settle, tree,
};
