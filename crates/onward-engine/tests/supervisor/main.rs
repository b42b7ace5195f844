//! The supervisor on real processes. It runs as a copy of this very test binary.

#[cfg(test)]
mod bench;
#[cfg(test)]
mod endings;
#[cfg(test)]
mod engines;
#[cfg(test)]
mod families;
#[cfg(test)]
mod queue;
#[cfg(test)]
#[expect(dead_code, reason = "other tests use the rest")]
#[path = "../support/mod.rs"]
mod support;

/// Not a test of its own: what the copies of this binary run. Without a role it is empty.
#[test]
fn role_of_a_copy() {
    bench::play_role();
}
