//! Which directory of this machine one is: what a copy of it is not.
//!
//! Invariant: a directory keeps its spot when it is renamed, and two that exist at the same time
//! never share one. It means nothing beyond the next boot.

use std::{fmt, fs, io, os::unix::fs::MetadataExt as _, path::Path};

use serde::{Deserialize, Serialize};

/// Device and inode of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spot {
    pub device: u64,
    pub inode: u64,
}

impl Spot {
    pub fn of(dir: &Path) -> io::Result<Self> {
        let found = fs::metadata(dir)?;
        Ok(Self { device: found.dev(), inode: found.ino() })
    }

    /// Whether what was written down is said of this very directory. What says nothing proves
    /// nothing.
    pub fn is_of(spot: Option<Self>, dir: &Path) -> bool {
        spot.is_some_and(|spot| Self::of(dir).is_ok_and(|here| here == spot))
    }
}

impl fmt::Display for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.device, self.inode)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_renamed_directory_is_the_same_and_a_copy_is_another() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir(at("a")).unwrap();
        let spot = Spot::of(&at("a")).unwrap();
        fs::create_dir(at("copy")).unwrap();
        fs::rename(at("a"), at("b")).unwrap();
        assert!(Spot::is_of(Some(spot), &at("b")));
        assert!(!Spot::is_of(Some(spot), &at("copy")) && !Spot::is_of(Some(spot), &at("a")));
        assert!(!Spot::is_of(None, &at("b")), "what says nothing proves nothing");
    }
}
