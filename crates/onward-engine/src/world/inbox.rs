//! Requests to the driver of a run: files renamed into `inbox/`, journaled, then removed.
//!
//! Invariant: a request is removed only after what came of it is durable. A crash in between makes
//! it come once more, which is harmless: an answer to a gate that is no longer open becomes a note,
//! and a pause or cancel that was left before a resume is forgotten, because the resume is the
//! later wish.

use crate::world::open;
use std::{
    fs::{self},
    io::{self, ErrorKind, Write as _},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
};

use onward_core::{address::Address, digest::Digest, time::Timestamp};

use super::{
    Stop,
    real::disk::{io_stop, make_parents, sync_dir},
};

/// What a person can ask of a run.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum Request {
    Decide {
        step: Address,
        option: String,
        comment: Option<String>,
        by: String,
        /// What the person saw; `None` takes what is shown now.
        hash: Option<Digest>,
    },
    Pause,
    Cancel,
    /// The person who could answer gates is gone: an open gate no longer keeps the driver.
    Unattended,
}

/// A request on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    pub path: PathBuf,
    pub request: Request,
}

impl Left {
    /// When it was left, by its name.
    fn at(&self) -> Timestamp {
        let name = self.path.file_name().and_then(|it| it.to_str()).unwrap_or_default();
        let micros = name.split('-').next().and_then(|it| it.parse().ok());
        Timestamp::from_micros(micros.unwrap_or(0))
    }
}

fn inbox(run_dir: &Path) -> PathBuf {
    run_dir.join("inbox")
}

/// Leaves a request for the driver. Names sort by time.
pub fn write_request(run_dir: &Path, request: &Request, at: Timestamp) -> Result<PathBuf, Stop> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("{:020}-{}-{count}", at.as_micros().max(0), std::process::id());
    let inbox = inbox(run_dir);
    let path = inbox.join(format!("{name}.json"));
    open::no_link(&inbox).map_err(io_stop("use", &inbox))?;
    make_parents(&path)?;
    let temporary = inbox.join(format!(".{name}"));
    let write = || -> io::Result<()> {
        let mut file = open::make_at(&temporary, open::PRIVATE)?;
        serde_json::to_writer(&mut file, request)?;
        file.write_all(b"\n")?;
        file.sync_all()?;
        fs::rename(&temporary, &path)
    };
    write().map_err(io_stop("write", &path))?;
    sync_dir(&inbox)?;
    Ok(path)
}

/// All requests, the oldest first. One that cannot be understood is set aside under another name.
pub fn waiting(run_dir: &Path) -> Result<Vec<Left>, Stop> {
    let inbox = inbox(run_dir);
    open::no_link(&inbox).map_err(io_stop("use", &inbox))?;
    let entries = match fs::read_dir(&inbox) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(io_stop("list", &inbox)(error)),
    };
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.map_err(io_stop("list", &inbox))?.path();
        let is_hidden = path.file_name().is_some_and(|it| it.as_encoded_bytes().starts_with(b"."));
        if !is_hidden && path.extension().is_some_and(|it| it == "json") {
            paths.push(path);
        }
    }
    paths.sort_unstable();
    let mut all = Vec::new();
    for path in paths {
        let bytes = match open::read_at(&path, open::SMALL_BYTES_MAX) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => return Err(io_stop("read", &path)(error)),
        };
        if let Ok(request) = serde_json::from_slice(&bytes) {
            all.push(Left { path, request });
        } else {
            let aside = path.with_extension("not-understood");
            fs::rename(&path, aside).map_err(io_stop("set aside", &path))?;
        }
    }
    Ok(all)
}

/// What came of it is durable.
pub fn remove(left: &Left) -> Result<(), Stop> {
    match fs::remove_file(&left.path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        other => other.map_err(io_stop("remove", &left.path)),
    }
}

/// The same for each of these.
pub(crate) fn remove_all(all: &mut Vec<Left>) -> Result<(), Stop> {
    all.drain(..).try_for_each(|left| remove(&left))
}

/// Removes what was asked of an earlier driver, before this moment; answers are kept.
pub fn forget_stops(run_dir: &Path, before: Timestamp) -> Result<(), Stop> {
    for left in waiting(run_dir)?.into_iter().filter(|it| it.at() < before) {
        match left.request {
            Request::Pause | Request::Cancel | Request::Unattended => remove(&left)?,
            Request::Decide { .. } => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use onward_core::address::Address;

    use super::*;

    fn decide(option: &str) -> Request {
        Request::Decide {
            step: Address::from_text("ask"),
            option: option.to_owned(),
            comment: None,
            by: "ann".to_owned(),
            hash: None,
        }
    }

    #[test]
    fn requests_come_in_the_order_of_their_time() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(waiting(dir.path()).unwrap(), []);
        for (at, option) in [(9, "late"), (1, "early"), (9, "last")] {
            write_request(dir.path(), &decide(option), Timestamp::from_micros(at)).unwrap();
        }
        let all = waiting(dir.path()).unwrap();
        let requests: Vec<Request> = all.iter().map(|left| left.request.clone()).collect();
        assert_eq!(requests, [decide("early"), decide("late"), decide("last")]);
        remove(&all[0]).unwrap();
        remove(&all[0]).unwrap();
        assert_eq!(waiting(dir.path()).unwrap(), all[1..]);
    }

    #[test]
    fn a_half_written_or_foreign_file_is_no_request() {
        let dir = tempfile::tempdir().unwrap();
        let kept = write_request(dir.path(), &Request::Pause, Timestamp::from_micros(1)).unwrap();
        let inbox = dir.path().join("inbox");
        fs::write(inbox.join(".0001-half"), "{\"ask\":").unwrap();
        fs::write(inbox.join("0000.json"), "{\"ask\":\"dance\"}").unwrap();
        let all = waiting(dir.path()).unwrap();
        assert_eq!(all.iter().map(|left| &left.path).collect::<Vec<_>>(), [&kept]);
        assert!(inbox.join("0000.not-understood").exists());
    }

    #[test]
    fn a_resume_forgets_pauses_and_cancels_but_no_answer() {
        let dir = tempfile::tempdir().unwrap();
        for request in [Request::Pause, decide("yes"), Request::Cancel] {
            write_request(dir.path(), &request, Timestamp::from_micros(1)).unwrap();
        }
        // It is meant for the driver that took the run up before it.
        let (begun, later) = (Timestamp::from_micros(5), Timestamp::from_micros(6));
        write_request(dir.path(), &Request::Cancel, later).unwrap();
        forget_stops(dir.path(), begun).unwrap();
        let all = waiting(dir.path()).unwrap();
        let requests: Vec<Request> = all.into_iter().map(|left| left.request).collect();
        assert_eq!(requests, [decide("yes"), Request::Cancel]);
    }
}
