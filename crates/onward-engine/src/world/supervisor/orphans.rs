//! After the supervisor's own death: what it left running, and how that is ended.
//!
//! Invariant: only processes of this run in this very directory are found: those whose environment
//! carries its tag, those that the log recorded in this boot, those in the control group of its
//! supervisor, and what came from any of them. Never ourselves, nor our parent, nor what belongs to
//! the run that this one is a copy of.

use std::{collections::BTreeSet, io};

use onward_core::{address::Address, launch::StopSignal};
use rustix::{
    event::{PollFd, PollFlags, Timespec},
    process::Signal,
};

use super::{
    cgroup,
    descendants::Family,
    linux::{self, Held, Identity},
    place::{Place, Whereabouts},
    seals::Seals,
    wire::Stop,
};
use crate::world::spot::Spot;

/// A process of a run whose supervisor is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Orphan {
    pub identity: Identity,
    /// As its tag says, or that of the process it came from; `None` for one that dropped both.
    pub step: Option<Address>,
    pub attempt: Option<u32>,
}

/// How long a process that was killed may take to go, such as one that waits for a disk.
const KILLED_WITHIN_MS: u64 = 10_000;
/// Between a look and its end, an orphan may start another one.
const ROUNDS_MAX: usize = 20;

/// Looks for orphans. To be called only while no supervisor of this run lives.
pub fn sweep(place: &Place, seals: &Seals) -> io::Result<Vec<Orphan>> {
    let boot_id = linux::boot_id()?;
    let (recorded, groups) = seals.kin_since_boot(&boot_id, &place.run_dir);
    let (run, spot) = (place.run.as_str(), Spot::of(&place.run_dir)?.to_string());
    let our_tag = |pid| linux::tag_of(pid).filter(|tag| tag.run == run && tag.spot == spot);
    let grouped: BTreeSet<i32> = groups.into_iter().flat_map(cgroup::members).collect();
    let family = Family::look()?;
    let is_known = |id: Identity| recorded.contains(&id) || grouped.contains(&id.pid);
    let is_root = |id: Identity| is_known(id) || our_tag(id.pid).is_some();
    let ancestors = family.ancestors();
    let found = family.below(family.pids_where(is_root));
    let others = found.into_iter().filter(|it| !it.is_dead && !ancestors.contains(&it.id.pid));
    let orphans = others.filter_map(|process| {
        // One that is just becoming another program has no environment for a moment.
        let pid = process.id.pid;
        let tag = our_tag(pid).or_else(|| family.above(pid).into_iter().find_map(our_tag));
        // One that died before it could be asked whose it is might as well have died before.
        if tag.is_none() && linux::is_dying(pid) {
            return None;
        }
        let step = tag.as_ref().map(|tag| Address::from_text(&tag.step));
        Some(Orphan { identity: process.id, step, attempt: tag.and_then(|tag| tag.attempt) })
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
        // Without processes the wait would last its whole time.
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
    place: &Place,
    seals: &Seals,
    stop: Stop,
) -> io::Result<(Vec<Orphan>, Vec<Orphan>)> {
    let mut all: Vec<Orphan> = Vec::new();
    for _ in 0..ROUNDS_MAX {
        let found = sweep(place, seals)?;
        if found.is_empty() {
            let boot_id = linux::boot_id()?;
            let groups = seals.kin_since_boot(&boot_id, &place.run_dir).1;
            groups.into_iter().for_each(cgroup::forget);
            return Ok((all, Vec::new()));
        }
        end_orphans(&found, stop)?;
        let is_new = |it: &Orphan| !all.iter().any(|known| known.identity == it.identity);
        let new: Vec<Orphan> = found.into_iter().filter(is_new).collect();
        all.extend(new);
    }
    Ok((all, sweep(place, seals)?))
}

/// Kills the supervisor of a run, if it lives; its children become orphans.
pub fn kill_supervisor(place: &Place) -> io::Result<()> {
    let here = Whereabouts::read(place);
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
