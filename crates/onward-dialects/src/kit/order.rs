//! What comes after what, in foreign files that may name themselves or each other in a circle.

use std::collections::{BTreeMap, BTreeSet};

/// Whether some entries wait for each other for ever. `entries` are names with the names they come
/// after; a name that is no entry is not waited for.
pub fn is_circular<'a>(entries: impl IntoIterator<Item = (&'a str, &'a [String])>) -> bool {
    let entries: BTreeMap<&str, &[String]> = entries.into_iter().collect();
    let mut waits: BTreeMap<&str, usize> = entries.keys().map(|name| (*name, 0)).collect();
    let mut followers: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, after) in &entries {
        for before in after.iter().filter(|before| entries.contains_key(before.as_str())) {
            *waits.entry(*name).or_default() += 1;
            followers.entry(before).or_default().push(name);
        }
    }
    let mut free: Vec<&str> =
        waits.iter().filter(|(_, count)| **count == 0).map(|(name, _)| *name).collect();
    while let Some(name) = free.pop() {
        waits.remove(name);
        for follower in followers.remove(name).unwrap_or_default() {
            if let Some(count) = waits.get_mut(follower) {
                *count -= 1;
                if *count == 0 {
                    free.push(follower);
                }
            }
        }
    }
    !waits.is_empty()
}

/// The entries that come after one of the `first`, however far away, without those themselves.
pub fn resting_on<'a>(
    first: impl IntoIterator<Item = &'a str>,
    entries: impl IntoIterator<Item = (&'a str, &'a [String])>,
) -> BTreeSet<&'a str> {
    let mut followers: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, after) in entries {
        for before in after {
            followers.entry(before).or_default().push(name);
        }
    }
    let first: BTreeSet<&str> = first.into_iter().collect();
    let mut next: Vec<&str> = first.iter().copied().collect();
    let mut reached = BTreeSet::new();
    while let Some(before) = next.pop() {
        let after = followers.remove(before).unwrap_or_default();
        next.extend(
            after.into_iter().filter(|name| !first.contains(name) && reached.insert(*name)),
        );
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circular(entries: &[(&str, &[&str])]) -> bool {
        let owned: Vec<(&str, Vec<String>)> = entries
            .iter()
            .map(|(name, after)| (*name, after.iter().map(|it| (*it).to_owned()).collect()))
            .collect();
        is_circular(owned.iter().map(|(name, after)| (*name, after.as_slice())))
    }

    #[test]
    fn what_rests_on_a_thing_is_found_however_far_away() {
        let after = |names: &[&str]| names.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        let all = [
            ("d", after(&["c"])),
            ("c", after(&["b", "x"])),
            ("b", after(&["a"])),
            ("a", after(&["d"])),
            ("e", after(&[])),
        ];
        let entries = || all.iter().map(|(name, after)| (*name, after.as_slice()));
        assert_eq!(resting_on(["b"], entries()), ["a", "c", "d"].into());
        assert_eq!(resting_on(["b", "d"], entries()), ["a", "c"].into());
        assert_eq!(resting_on(["e"], entries()), BTreeSet::new());
    }

    #[test]
    fn a_circle_is_found_and_an_unknown_name_is_none() {
        assert!(!circular(&[("a", &[]), ("b", &["a", "a"]), ("c", &["gone", "b"])]));
        assert!(circular(&[("a", &["a"])]));
        assert!(circular(&[("a", &["b"]), ("b", &["c"]), ("c", &["a"]), ("d", &[])]));
    }
}
