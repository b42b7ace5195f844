//! The rules of the built-in workflow `conference`: who has finished, what is kept and shared, when
//! it is over, and the pages and results that its calls make.
//!
//! Invariant: functions of a [`Conference`](crate::conference::Conference) alone, so that a call
//! that ran and a step that the files prove done come to the same.

pub mod brief;
pub mod chart;
pub mod converge;
pub mod draft;
pub mod finish;
pub mod gate;
pub mod infer;
pub mod keep;
pub mod knowledge;
pub mod measure;
pub mod results;
pub mod review;
pub mod setup;
pub mod transfer;
pub mod verdicts;
