//! The world at each call of an undisturbed life: a life which crashes there goes on from it, and
//! the engine need not come that far again.
//!
//! Invariant: up to its first crash, a life is the same whatever its seed. What is drawn by then
//! decides nothing: a supervisor without agents has nothing to do in the time that it is given. A
//! crash of the hands is no fork, because the engine lives on, in the middle of what it does.

use crate::{crash::Crash, disk::Disk, world::SimWorld};

/// How a write changes a disk.
pub(crate) type Put = fn(&mut Disk, &str, &[u8], i64);

/// The world when the engine has made a call, and nothing of it has happened.
#[derive(Clone, Debug)]
pub(crate) struct Fork {
    world: SimWorld,
    half: Option<Half>,
}

/// A write that a crash may cut short.
#[derive(Clone, Debug)]
struct Half {
    put: Put,
    name: String,
    bytes: Vec<u8>,
}

impl Fork {
    /// The world after the first of these crashes, which comes at this call; the others are ahead.
    /// `None` where the engine outlives it.
    pub(crate) fn crash(
        &self,
        crashes: &[(u64, Crash)],
        seed: u64,
        story: String,
    ) -> Option<SimWorld> {
        let ((_, first), rest) = crashes.split_first()?;
        if *first == Crash::Hands {
            return None;
        }
        let mut world = self.world.clone();
        world.chance = world.chance.with_seed(seed);
        world.story = story;
        if let Some(Half { put, name, bytes }) = &self.half {
            let part = world.chance.below(bytes.len() + 1);
            put(&mut world.disk, name, &bytes[..part], world.now_us);
        }
        world.fuses = [(0, *first)].iter().chain(rest).copied().collect();
        let gone = world.burn_out();
        assert!(gone.is_err(), "the engine outlived {first:?}");
        Some(world)
    }
}

impl SimWorld {
    /// From here on every call is kept. Its seed must be 0.
    pub(crate) fn keep_forks(&mut self) {
        self.forks = Some(Vec::new());
    }

    pub(crate) fn take_forks(&mut self) -> Vec<Fork> {
        self.forks.take().unwrap_or_default()
    }

    pub(crate) fn fork(&mut self, half: Option<(Put, &str, &[u8])>) {
        let Some(mut forks) = self.forks.take() else { return };
        let half = half.map(|(put, name, bytes)| Half {
            put,
            name: name.to_owned(),
            bytes: bytes.to_vec(),
        });
        forks.push(Fork { world: self.clone(), half });
        self.forks = Some(forks);
    }
}
