//! How many files a call may write.
//!
//! Invariant: a call of a real run has no end of it. A test gives a number, and the call is cut off
//! behind so many files, as a kill between two of them would.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use super::CallError;

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Ink(Option<Arc<AtomicUsize>>);

impl Ink {
    pub fn for_files(count: usize) -> Self {
        Self(Some(Arc::new(AtomicUsize::new(count))))
    }

    /// One file more is about to be written.
    pub(super) fn dip(&self) -> Result<(), CallError> {
        let Some(left) = &self.0 else { return Ok(()) };
        let less = |left: usize| left.checked_sub(1);
        match left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less) {
            Ok(_) => Ok(()),
            Err(_) => Err(CallError::new("the call is cut off between two files")),
        }
    }
}
