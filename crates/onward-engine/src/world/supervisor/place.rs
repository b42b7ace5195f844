//! Where the supervisor of a run lives: its directory, its socket, and the file that says so.
//!
//! Invariant: the socket's path is short enough for the kernel and lies in a directory that only
//! this user can enter.

use crate::world::{open, real::disk::replace, spot::Spot};
use std::{
    fs::DirBuilder,
    io,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _},
    path::{Path, PathBuf},
};

use onward_core::{digest::Digest, id::RunId};
use serde::{Deserialize, Serialize};

use super::linux::Identity;

/// The kernel's limit, without the closing NUL.
const SOCKET_PATH_BYTES_MAX: usize = 107;

/// The directories of one run, absolute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub run: RunId,
    /// `<project>/.onward/runs/<run-id>`.
    pub run_dir: PathBuf,
    pub project_dir: PathBuf,
    /// Such as [`socket_dir_of_this_user`] gives.
    pub socket_dir: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    #[error("cannot use `{}`", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("`{}` is not a directory of this user alone", .0.display())]
    NotPrivate(PathBuf),
    #[error("the socket path `{}` is longer than 107 bytes", .0.display())]
    TooLong(PathBuf),
}

impl PlaceError {
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Io { .. } => None,
            Self::NotPrivate(_) => Some("remove it, or set its mode to 0700"),
            Self::TooLong(_) => Some("set XDG_RUNTIME_DIR to a shorter directory"),
        }
    }
}

impl Place {
    pub fn seals(&self) -> PathBuf {
        self.run_dir.join("exits.jsonl")
    }

    pub fn out_dir(&self) -> PathBuf {
        self.run_dir.join("out")
    }

    pub fn heartbeat(&self) -> PathBuf {
        self.run_dir.join("heartbeat")
    }

    /// The file that says where the supervisor is.
    pub fn whereabouts(&self) -> PathBuf {
        self.run_dir.join("supervisor")
    }

    /// What the supervisor said when it could not go on; removed when it said nothing.
    pub fn complaints(&self) -> PathBuf {
        self.run_dir.join("supervisor.log")
    }

    /// Creates the private directory where needed.
    pub(crate) fn socket(&self) -> Result<PathBuf, PlaceError> {
        make_private(&self.socket_dir)?;
        let digest = Digest::of(self.run_dir.as_os_str().as_encoded_bytes()).to_string();
        let path = self.socket_dir.join(format!("{}.sock", &digest[..16]));
        if path.as_os_str().len() > SOCKET_PATH_BYTES_MAX {
            return Err(PlaceError::TooLong(path));
        }
        Ok(path)
    }
}

fn make_private(dir: &Path) -> Result<(), PlaceError> {
    let failed = |source| PlaceError::Io { path: dir.to_owned(), source };
    if let Err(error) = DirBuilder::new().recursive(true).mode(0o700).create(dir) {
        return Err(failed(error));
    }
    // Not followed: a link that another user left in a shared directory is not ours.
    let found = std::fs::symlink_metadata(dir).map_err(failed)?;
    let is_ours = found.uid() == rustix::process::geteuid().as_raw();
    if found.is_dir() && is_ours && found.mode() & 0o777 == 0o700 {
        Ok(())
    } else {
        Err(PlaceError::NotPrivate(dir.to_owned()))
    }
}

/// The border to the environment: `$XDG_RUNTIME_DIR/onward`, or a directory of this user among the
/// temporary ones. Called once, for each [`Place`] that is built.
pub fn socket_dir_of_this_user() -> PathBuf {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    match runtime.filter(|dir| dir.is_absolute() && dir.is_dir()) {
        Some(dir) => dir.join("onward"),
        None => free_among(&std::env::temp_dir()),
    }
}

/// The first name that is free or ours: another user may have taken the plain one.
fn free_among(temporary: &Path) -> PathBuf {
    const TRIES: u32 = 100;
    let name = format!("onward-{}", rustix::process::geteuid());
    let numbered = (1..TRIES).map(|number| temporary.join(format!("{name}-{number}")));
    let mut all = std::iter::once(temporary.join(&name)).chain(numbered);
    let usable = |dir: &PathBuf| match std::fs::symlink_metadata(dir) {
        Ok(_) => make_private(dir).is_ok(),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    };
    all.find(usable).unwrap_or_else(|| temporary.join(name))
}

/// The content of `<run dir>/supervisor`. A copy of the run has a copy of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Whereabouts {
    pub socket: PathBuf,
    pub pid: i32,
    pub start_time: u64,
    pub boot_id: String,
    pub version: String,
    /// The run directory that it serves.
    #[serde(default)]
    pub spot: Option<Spot>,
}

impl Whereabouts {
    pub fn identity(&self) -> Identity {
        Identity { pid: self.pid, start_time: self.start_time }
    }

    /// `None` when there is no such file, or none that can be read and understood, or it tells of
    /// the run that this one is a copy of: it only says where a supervisor is, and one that lives
    /// is known by the lock that it holds.
    pub fn read(place: &Place) -> Option<Self> {
        let bytes = open::read_at(&place.whereabouts(), open::SMALL_BYTES_MAX).ok()?;
        let here: Self = serde_json::from_slice(&bytes).ok()?;
        Some(here).filter(|it| Spot::is_of(it.spot, &place.run_dir))
    }

    /// Appears whole or not at all.
    pub(super) fn write(&self, place: &Place) -> io::Result<()> {
        replace(&place.whereabouts(), &serde_json::to_vec(self)?, open::PRIVATE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(dir: &Path) -> Place {
        Place {
            run: "r-1".parse().unwrap(),
            run_dir: dir.join("run"),
            project_dir: dir.to_owned(),
            socket_dir: dir.join("sockets"),
        }
    }

    #[test]
    fn a_socket_has_a_short_name_of_its_own_in_a_private_directory() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let one = place(dir.path());
        let other = Place { run_dir: dir.path().join("other"), ..one.clone() };
        assert_ne!(one.socket().unwrap(), other.socket().unwrap());
        assert_eq!(std::fs::metadata(&one.socket_dir).unwrap().mode() & 0o777, 0o700);
        let open = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&one.socket_dir, open).unwrap();
        assert!(matches!(one.socket(), Err(PlaceError::NotPrivate(_))));
        let long = Place { socket_dir: dir.path().join("x".repeat(100)), ..one };
        assert!(matches!(long.socket(), Err(PlaceError::TooLong(_))));
    }

    #[test]
    fn a_link_is_not_a_private_directory() {
        let dir = tempfile::tempdir().unwrap();
        let place = place(dir.path());
        make_private(&dir.path().join("real")).unwrap();
        std::os::unix::fs::symlink(dir.path().join("real"), &place.socket_dir).unwrap();
        assert!(matches!(place.socket(), Err(PlaceError::NotPrivate(_))));
    }

    #[test]
    fn whereabouts_read_back_and_may_be_missing() {
        let dir = tempfile::tempdir().unwrap();
        let place = place(dir.path());
        std::fs::create_dir(&place.run_dir).unwrap();
        assert_eq!(Whereabouts::read(&place), None);
        let here = Whereabouts {
            socket: "/s".into(),
            pid: 7,
            start_time: 70,
            boot_id: "b".into(),
            version: "1".into(),
            spot: Some(Spot::of(&place.run_dir).unwrap()),
        };
        here.write(&place).unwrap();
        assert_eq!(Whereabouts::read(&place), Some(here.clone()));
        let copy = Place { run_dir: dir.path().join("copy"), ..place };
        std::fs::create_dir(&copy.run_dir).unwrap();
        for spot in [here.spot, None] {
            Whereabouts { spot, ..here.clone() }.write(&copy).unwrap();
            assert_eq!(Whereabouts::read(&copy), None, "it serves another directory");
        }
    }
}
