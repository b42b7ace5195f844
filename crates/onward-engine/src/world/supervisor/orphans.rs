//! After the supervisor's own death: what it left running, and how that is ended.
//!
//! Invariant: only processes of this run are found: those whose environment carries its tag, those
//! that the log recorded in this boot, and what came from either. Never ourselves, nor whoever
//! started us.

use std::{collections::BTreeSet, io};

use onward_core::{address::Address, id::RunId, launch::StopSignal};
use rustix::{
    event::{PollFd, PollFlags, Timespec},
    process::Signal,
};

use super::{
    descendants::Family,
    linux::{self, Held, Identity},
    place::{Place, Whereabouts},
    seals::{Seals, Spawned},
    wire::Stop,
};

/// A process of a run whose supervisor is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Orphan {
    pub identity: Identity,
    /// As its tag says; `None` for one that dropped its environment.
    pub step: Option<Address>,
    pub attempt: Option<u32>,
}

/// How long a process that was killed may take to go, such as one that waits for a disk.
const KILLED_WITHIN_MS: u64 = 10_000;
/// Between a look and its end, an orphan may start another one.
const ROUNDS_MAX: usize = 20;

/// Looks for orphans. To be called only while no supervisor of this run lives.
pub fn sweep(run: &RunId, seals: &Seals) -> io::Result<Vec<Orphan>> {
    let boot_id = linux::boot_id()?;
    let recorded = seals.spawned_since_boot(&boot_id);
    let recorded: BTreeSet<Identity> = recorded.into_iter().map(Spawned::identity).collect();
    let family = Family::look()?;
    let is_tagged = |pid| linux::tag_of(pid).is_some_and(|tag| tag.run == run.as_str());
    let is_root = |id: Identity| recorded.contains(&id) || is_tagged(id.pid);
    let ancestors = family.ancestors();
    let found = family.below(family.pids_where(is_root));
    let others = found.into_iter().filter(|it| !it.is_dead && !ancestors.contains(&it.id.pid));
    let orphans = others.map(|process| {
        let tag = linux::tag_of(process.id.pid).filter(|tag| tag.run == run.as_str());
        let step = tag.as_ref().map(|tag| Address::from_text(&tag.step));
        Orphan { identity: process.id, step, attempt: tag.and_then(|tag| tag.attempt) }
    });
    Ok(orphans.collect())
}

/// Ends exactly these: asks, waits for the grace, kills. Returns those that are still there.
pub fn end_orphans(orphans: &[Orphan], stop: Stop) -> io::Result<Vec<Orphan>> {
    let polite = match stop.signal {
        StopSignal::Term => Signal::TERM,
        StopSignal::Int => Signal::INT,
    };
    let held = orphans.iter().filter_map(|it| Some((it, linux::hold(it.identity)?)));
    let mut held: Vec<(&Orphan, Held)> = held.collect();
    for (signal, within_ms) in [(polite, stop.grace_ms), (Signal::KILL, KILLED_WITHIN_MS)] {
        // A wait for nobody would last its whole time.
        if held.is_empty() {
            break;
        }
        for (_, held) in &held {
            // Gone in this very moment is what we want.
            let _ = held.signal(signal);
        }
        held = until_gone(held, within_ms)?;
    }
    Ok(held.into_iter().map(|(orphan, _)| orphan.clone()).collect())
}

/// Sweeps and ends until nothing is found. Returns all that were found, and what defied it.
pub fn clear_orphans(
    run: &RunId,
    seals: &Seals,
    stop: Stop,
) -> io::Result<(Vec<Orphan>, Vec<Orphan>)> {
    let mut all: Vec<Orphan> = Vec::new();
    for _ in 0..ROUNDS_MAX {
        let found = sweep(run, seals)?;
        if found.is_empty() {
            return Ok((all, Vec::new()));
        }
        end_orphans(&found, stop)?;
        let is_new = |it: &Orphan| !all.iter().any(|known| known.identity == it.identity);
        let new: Vec<Orphan> = found.into_iter().filter(is_new).collect();
        all.extend(new);
    }
    Ok((all, sweep(run, seals)?))
}

/// Kills the supervisor of a run, if it lives; its children become orphans.
pub fn kill_supervisor(place: &Place) -> io::Result<()> {
    let here = Whereabouts::read(place)?;
    let boot_id = linux::boot_id()?;
    let Some(here) = here.filter(|here| here.boot_id == boot_id) else { return Ok(()) };
    let orphan = Orphan { identity: here.identity(), step: None, attempt: None };
    if let Some(held) = linux::hold(orphan.identity) {
        let _ = held.signal(Signal::KILL);
        until_gone(vec![(&orphan, held)], KILLED_WITHIN_MS)?;
    }
    Ok(())
}

/// A pidfd becomes readable when its process is dead, reaped or not.
fn until_gone(mut held: Vec<(&Orphan, Held)>, within_ms: u64) -> io::Result<Vec<(&Orphan, Held)>> {
    let deadline = linux::awake_ms().saturating_add(within_ms);
    loop {
        let left_ms = deadline.saturating_sub(linux::awake_ms());
        let timeout = Timespec {
            tv_sec: i64::try_from(left_ms / 1000).unwrap_or(i64::MAX),
            tv_nsec: i64::try_from(left_ms % 1000 * 1_000_000).expect("less than a second"),
        };
        let mut fds: Vec<PollFd<'_>> =
            held.iter().map(|(_, held)| PollFd::new(&held.fd, PollFlags::IN)).collect();
        match rustix::event::poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let lives: Vec<bool> = fds.iter().map(|fd| fd.revents().is_empty()).collect();
        let mut lives = lives.into_iter();
        held.retain(|_| lives.next().unwrap_or(true));
        if held.is_empty() || left_ms == 0 {
            return Ok(held);
        }
    }
}
