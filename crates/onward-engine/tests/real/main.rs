//! Whole runs on this machine: real files, real processes, real kills.

#[cfg(test)]
mod ahead;
#[cfg(test)]
mod bench;
#[cfg(test)]
mod crashes;
#[cfg(test)]
mod full_disk;
#[cfg(test)]
mod runs;
#[cfg(test)]
#[expect(dead_code, reason = "other tests use the rest")]
#[path = "../support/mod.rs"]
mod support;

/// Not a test of its own: what the copies of this binary run. Without a role it is empty.
#[test]
fn role_of_a_copy() {
    bench::play_role();
}
