//! Whose process is this? One look at the process table, seen from the supervisor down.
//!
//! We are the subreaper, so whatever an attempt left behind, in whatever session, hangs from one of
//! our direct children. Those that are not a main child are strays; whose they are says their tag,
//! else their process group, else the time at which they began.
//!
//! Invariant: a stray that may belong to an attempt which still runs is left alone.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
};

use super::{
    attempt::Key,
    linux::{self, Identity, Process, Tag},
};

#[derive(Debug)]
pub(super) struct Family {
    us: i32,
    table: BTreeMap<i32, Process>,
    children: BTreeMap<i32, Vec<i32>>,
}

/// What is known of an attempt that is not sealed yet.
#[derive(Clone, Debug)]
pub(super) struct Claimant {
    pub(super) key: Key,
    /// Of its latest child. The number is not used again while anybody is in that group.
    pub(super) group: i32,
    pub(super) since: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    Attempt(Key),
    /// Several running attempts may have started it.
    Unclear,
    /// Every attempt that could have started it is over.
    Unknown,
}

impl Family {
    pub(super) fn look() -> io::Result<Self> {
        let us = rustix::process::getpid().as_raw_nonzero().get();
        Ok(Self::new(us, linux::table()?))
    }

    fn new(us: i32, table: BTreeMap<i32, Process>) -> Self {
        let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
        for process in table.values() {
            children.entry(process.parent).or_default().push(process.id.pid);
        }
        Self { us, table, children }
    }

    /// Our living direct children that are not the main child of an attempt.
    pub(super) fn strays(&self, is_main: impl Fn(i32) -> bool) -> Vec<Process> {
        let ours = self.children.get(&self.us).into_iter().flatten();
        let strays = ours.filter(|pid| !is_main(**pid)).map(|pid| self.table[pid]);
        strays.filter(|process| !process.is_dead).collect()
    }

    /// Our own parent processes.
    pub(super) fn ancestors(&self) -> BTreeSet<i32> {
        self.above(self.us).into_iter().collect()
    }

    /// The parent processes of one, the nearest first. Each is named once, as the table may have a
    /// ring.
    pub(super) fn above(&self, mut pid: i32) -> Vec<i32> {
        let mut found = Vec::new();
        while let Some(process) = self.table.get(&pid)
            && !found.contains(&process.parent)
        {
            pid = process.parent;
            found.push(pid);
        }
        found
    }

    /// Those that are meant; a part of the kernel never is.
    pub(super) fn pids_where(&self, is_meant: impl Fn(Identity) -> bool) -> Vec<i32> {
        let of_users = self.table.values().filter(|process| !process.is_kernel);
        let meant = of_users.filter(|process| is_meant(process.id));
        meant.map(|process| process.id.pid).collect()
    }

    /// These processes and all that came from them. Pids change hands while the table is read, so
    /// its links may form a ring; each process is visited once.
    pub(super) fn below(&self, roots: impl IntoIterator<Item = i32>) -> Vec<Process> {
        let mut todo: Vec<i32> = roots.into_iter().collect();
        let mut found = BTreeMap::new();
        while let Some(pid) = todo.pop() {
            let Some(process) = self.table.get(&pid).filter(|_| pid != self.us) else { continue };
            if found.insert(pid, *process).is_none() {
                todo.extend(self.children.get(&pid).into_iter().flatten());
            }
        }
        found.into_values().collect()
    }
}

/// The rule, in its order: tag, process group, start time.
pub(super) fn owner(
    stray: &Process,
    tag: Option<&Tag>,
    run: &str,
    claimants: &[Claimant],
) -> Owner {
    if let Some(tag) = tag.filter(|tag| tag.run == run) {
        let is_it =
            |it: &&Claimant| *it.key.0.as_str() == tag.step && Some(it.key.1) == tag.attempt;
        return claimants
            .iter()
            .find(is_it)
            .map_or(Owner::Unknown, |it| Owner::Attempt(it.key.clone()));
    }
    if let Some(it) = claimants.iter().find(|it| it.group == stray.group) {
        return Owner::Attempt(it.key.clone());
    }
    let mut possible = claimants.iter().filter(|it| it.since <= stray.id.start_time);
    match (possible.next(), possible.next()) {
        (None, _) => Owner::Unknown,
        (Some(only), None) => Owner::Attempt(only.key.clone()),
        (Some(_), Some(_)) => Owner::Unclear,
    }
}

#[cfg(test)]
mod tests {
    use onward_core::address::Address;

    use super::*;

    fn process(pid: i32, parent: i32, start_time: u64) -> Process {
        let id = Identity { pid, start_time };
        Process { id, parent, group: pid, is_dead: false, is_kernel: false }
    }

    fn key(step: &str) -> Key {
        (Address::from_text(step), 1)
    }

    fn claimant(step: &str, group: i32, since: u64) -> Claimant {
        Claimant { key: key(step), group, since }
    }

    fn tag(run: &str, step: &str, attempt: u32) -> Tag {
        Tag { run: run.into(), spot: String::new(), step: step.into(), attempt: Some(attempt) }
    }

    #[test]
    fn a_family_is_everything_below_and_never_ourselves() {
        let dead = Process { is_dead: true, ..process(14, 10, 1) };
        let all = [process(10, 1, 1), process(11, 10, 1), process(12, 11, 1), process(13, 10, 1)];
        let table = all.into_iter().chain([dead]).map(|it| (it.id.pid, it)).collect();
        let family = Family::new(10, table);
        let pids = |found: Vec<Process>| found.iter().map(|it| it.id.pid).collect::<Vec<_>>();
        assert_eq!(pids(family.strays(|pid| pid == 11)), [13]);
        assert_eq!(pids(family.below([11])), [11, 12]);
        assert_eq!(pids(family.below([10, 99])), [0_i32; 0]);
        let ring = [process(20, 21, 1), process(21, 20, 1)];
        let family = Family::new(10, ring.into_iter().map(|it| (it.id.pid, it)).collect());
        assert_eq!(pids(family.below([20])), [20, 21]);
        assert_eq!(family.above(20), [21, 20]);
    }

    #[test]
    fn a_stray_belongs_to_its_tag_then_its_group_then_its_time() {
        let claimants = [claimant("a", 5, 100), claimant("b", 6, 200)];
        let whose = |stray: &Process, tag: Option<Tag>| owner(stray, tag.as_ref(), "r", &claimants);
        let (early, late) = (process(9, 1, 150), process(9, 1, 250));
        let grouped = Process { group: 6, ..early };
        assert_eq!(whose(&late, Some(tag("r", "a", 1))), Owner::Attempt(key("a")));
        assert_eq!(whose(&late, Some(tag("r", "a", 2))), Owner::Unknown, "another attempt");
        assert_eq!(whose(&late, Some(tag("other", "a", 1))), Owner::Unclear, "another run");
        assert_eq!(whose(&grouped, None), Owner::Attempt(key("b")));
        assert_eq!(whose(&early, None), Owner::Attempt(key("a")), "before b began");
        assert_eq!(whose(&late, None), Owner::Unclear);
        assert_eq!(whose(&process(9, 1, 50), None), Owner::Unknown);
    }
}
