//! A disk of memory that forgets as a real one may: content that was not synced, names whose
//! directory was not, in any subset, and pages of a growing file in any order.

use std::{collections::BTreeMap, rc::Rc};

use crate::chance::Chance;

/// `run/…`, `project/…` or `git/…`, which is the repository.
pub(crate) type Name = String;

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Disk {
    inodes: Vec<Inode>,
    names: BTreeMap<Name, usize>,
    /// Names as a power cut would leave them at least.
    durable: BTreeMap<Name, usize>,
    /// Changes of names since, oldest first.
    pending: Vec<NameChange>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Inode {
    /// Shared, so that a copy of a disk costs little.
    current: Rc<Vec<u8>>,
    synced: Rc<Vec<u8>>,
    mtime_us: i64,
}

#[derive(Clone, Debug, PartialEq)]
enum NameChange {
    Made(Name, usize),
    Renamed(Name, Name, usize),
    Removed(Name),
}

/// Small, so that a short journal has many pages.
const PAGE_BYTES: usize = 32;

impl Disk {
    pub(crate) fn read(&self, name: &str) -> Option<&[u8]> {
        self.names.get(name).map(|inode| self.inodes[*inode].current.as_slice())
    }

    pub(crate) fn mtime_us(&self, name: &str) -> Option<i64> {
        self.names.get(name).map(|inode| self.inodes[*inode].mtime_us)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &Name> {
        self.names.keys()
    }

    /// What would be read after a power cut that forgets everything it may.
    pub(crate) fn synced(&self, name: &str) -> Option<&[u8]> {
        self.durable.get(name).map(|inode| self.inodes[*inode].synced.as_slice())
    }

    pub(crate) fn write(&mut self, name: &str, bytes: &[u8], now_us: i64) {
        let inode = self.inode(name);
        self.inodes[inode].current = Rc::new(bytes.to_vec());
        self.inodes[inode].mtime_us = now_us;
    }

    pub(crate) fn append(&mut self, name: &str, bytes: &[u8], now_us: i64) {
        let inode = self.inode(name);
        Rc::make_mut(&mut self.inodes[inode].current).extend(bytes);
        self.inodes[inode].mtime_us = now_us;
    }

    pub(crate) fn truncate(&mut self, name: &str, length: usize) {
        let inode = self.inode(name);
        Rc::make_mut(&mut self.inodes[inode].current).truncate(length);
    }

    pub(crate) fn sync(&mut self, name: &str) {
        let inode = self.inode(name);
        self.inodes[inode].synced = Rc::clone(&self.inodes[inode].current);
    }

    pub(crate) fn rename(&mut self, from: &str, to: &str) {
        let inode = self.names.remove(from).expect("renamed files exist");
        self.names.insert(to.to_owned(), inode);
        self.pending.push(NameChange::Renamed(from.to_owned(), to.to_owned(), inode));
    }

    pub(crate) fn remove(&mut self, name: &str) {
        if self.names.remove(name).is_some() {
            self.pending.push(NameChange::Removed(name.to_owned()));
        }
    }

    pub(crate) fn sync_dir(&mut self, name: &str) {
        let dir = dir_of(name);
        let (here, elsewhere): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.pending).into_iter().partition(|change| match change {
                NameChange::Made(name, _)
                | NameChange::Renamed(_, name, _)
                | NameChange::Removed(name) => dir_of(name) == dir,
            });
        self.pending = elsewhere;
        for change in here {
            self.make_durable(change);
        }
    }

    pub(crate) fn write_durably(&mut self, name: &str, bytes: &[u8], now_us: i64) {
        self.write(name, bytes, now_us);
        self.sync(name);
        self.sync_dir(name);
    }

    /// A line of its own, as the toy system's programs write it: durable, and behind half a line
    /// too.
    pub(crate) fn tell(&mut self, name: &str, line: &str, now_us: i64) {
        let is_torn = self.read(name).and_then(<[u8]>::last).is_some_and(|byte| *byte != b'\n');
        let start = if is_torn { "\n" } else { "" };
        self.append(name, format!("{start}{line}\n").as_bytes(), now_us);
        self.sync(name);
        self.sync_dir(name);
    }

    /// All of the project and its repository. What else is on a disk is not counted on.
    pub(crate) fn sync_all(&mut self) {
        let names: Vec<Name> =
            self.names.keys().filter(|name| !name.starts_with("run/")).cloned().collect();
        for name in names {
            self.sync(&name);
        }
        let (rest, here): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.pending).into_iter().partition(|change| match change {
                NameChange::Made(name, _)
                | NameChange::Renamed(_, name, _)
                | NameChange::Removed(name) => name.starts_with("run/"),
            });
        self.pending = rest;
        for change in here {
            self.make_durable(change);
        }
    }

    fn make_durable(&mut self, change: NameChange) {
        match change {
            NameChange::Made(name, inode) => {
                self.durable.insert(name, inode);
            }
            NameChange::Renamed(from, to, inode) => {
                self.durable.remove(&from);
                self.durable.insert(to, inode);
            }
            NameChange::Removed(name) => {
                self.durable.remove(&name);
            }
        }
    }

    /// The lights go out: what was not synced is there, or not, or in part.
    pub(crate) fn power_cut(&mut self, chance: &mut Chance) {
        for change in std::mem::take(&mut self.pending) {
            if chance.one_in(2) {
                self.make_durable(change);
            }
        }
        self.names = self.durable.clone();
        for inode in &mut self.inodes {
            if inode.current != inode.synced {
                inode.current = Rc::new(torn(inode, chance));
            }
            inode.synced = Rc::clone(&inode.current);
        }
    }

    fn inode(&mut self, name: &str) -> usize {
        if let Some(inode) = self.names.get(name) {
            return *inode;
        }
        self.inodes.push(Inode::default());
        let inode = self.inodes.len() - 1;
        self.names.insert(name.to_owned(), inode);
        self.pending.push(NameChange::Made(name.to_owned(), inode));
        inode
    }
}

fn torn(inode: &Inode, chance: &mut Chance) -> Vec<u8> {
    let (current, synced) = (&*inode.current, &*inode.synced);
    match chance.below(4) {
        0 => synced.clone(),
        1 => current.clone(),
        // The file was cut short: its length is the old one or the new one.
        2 if synced.starts_with(current) => synced.clone(),
        _ if synced.starts_with(current) => current.clone(),
        _ if current.starts_with(synced) => {
            // The file grew: any of its new pages may be missing, and read as zeros.
            let mut bytes = synced.clone();
            for page in current[synced.len()..].chunks(PAGE_BYTES) {
                if chance.one_in(2) {
                    bytes.extend(page);
                } else {
                    bytes.extend(vec![0; page.len()]);
                }
            }
            let length = synced.len() + chance.below(bytes.len() - synced.len() + 1);
            bytes.truncate(length);
            bytes
        }
        _ => current[..chance.below(current.len() + 1)].to_vec(),
    }
}

fn dir_of(name: &str) -> &str {
    name.rsplit_once('/').map_or("", |(dir, _)| dir)
}

/// Whether a pattern of `writes` or `reads` names this file, as far as the workflows here need it.
pub(crate) fn fits(pattern: &str, name: &str) -> bool {
    match (pattern.split_once('{'), pattern.split_once('*')) {
        // One of several ends, such as `notes.{json,md}`.
        (Some((prefix, ends)), _) => {
            let mut ends = ends.trim_end_matches('}').split(',');
            ends.any(|end| name.strip_prefix(prefix) == Some(end))
        }
        (None, Some((prefix, suffix))) => name.starts_with(prefix) && name.ends_with(suffix),
        (None, None) => name == pattern,
    }
}
