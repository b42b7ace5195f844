//! What comes after what, in foreign files that may name themselves or each other in a circle.

use std::collections::{BTreeMap, BTreeSet};

use onward_core::finding::Finding;

use super::{code::Odd, path::shown};

/// A finding about a circle names no more entries than this.
const NAMES_MAX: usize = 12;

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

/// The circles in which entries wait for each other for ever, each in the order of its names; an
/// entry that waits for itself is one.
pub fn circles<'a>(
    entries: impl IntoIterator<Item = (&'a str, &'a [String])>,
) -> Vec<Vec<&'a str>> {
    let entries: BTreeMap<&str, &[String]> = entries.into_iter().collect();
    if !is_circular(entries.iter().map(|(name, after)| (*name, *after))) {
        return Vec::new();
    }
    let before = |name: &str| -> Vec<&'a str> {
        let named = entries.get(name).copied().unwrap_or_default().iter();
        named.filter_map(|it| entries.get_key_value(it.as_str()).map(|(name, _)| *name)).collect()
    };
    let mut followers: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for name in entries.keys() {
        for it in before(name) {
            followers.entry(it).or_default().push(name);
        }
    }
    // Those that reach each other: the last one to be left is the first whose followers are asked.
    let mut left = Vec::new();
    walk(entries.keys().copied(), before, |group| left.extend(group));
    let mut found = Vec::new();
    let behind = |name: &str| followers.get(name).cloned().unwrap_or_default();
    walk(left.into_iter().rev(), behind, |mut group| {
        group.sort_unstable();
        let is_one = |name: &&str| before(name).contains(name);
        if group.len() > 1 || group.first().is_some_and(is_one) {
            found.push(group);
        }
    });
    found.sort_unstable();
    found
}

/// Everything that can be reached from each of the names and was not before, in the order in which
/// it is left.
fn walk<'a>(
    names: impl Iterator<Item = &'a str>,
    next: impl Fn(&str) -> Vec<&'a str>,
    mut reached: impl FnMut(Vec<&'a str>),
) {
    let mut seen = BTreeSet::new();
    for first in names {
        let mut group = Vec::new();
        let mut path = Vec::new();
        if seen.insert(first) {
            path.push((first, next(first)));
        }
        while let Some((name, rest)) = path.last_mut() {
            match rest.pop() {
                Some(inner) if seen.insert(inner) => path.push((inner, next(inner))),
                Some(_) => {}
                None => {
                    group.push(*name);
                    path.pop();
                }
            }
        }
        if !group.is_empty() {
            reached(group);
        }
    }
}

/// Takes away what leads into a circle, and gives the circles. What else comes after what stays.
pub fn without_circles(entries: &mut [(String, Vec<String>)]) -> Vec<Vec<String>> {
    let borrowed = entries.iter().map(|(name, after)| (name.as_str(), after.as_slice()));
    let found: Vec<Vec<String>> =
        circles(borrowed).iter().map(|it| it.iter().map(|it| (*it).to_owned()).collect()).collect();
    let numbered = found.iter().zip(0_usize..);
    let named =
        numbered.flat_map(|(it, number)| it.iter().map(move |name| (name.as_str(), number)));
    let place: BTreeMap<&str, usize> = named.collect();
    for (name, after) in entries {
        if let Some(own) = place.get(name.as_str()) {
            after.retain(|it| place.get(it.as_str()) != Some(own));
        }
    }
    found
}

/// Tasks wait for each other.
pub fn circle(names: &[String]) -> Finding {
    let more = if names.len() > NAMES_MAX { ", ..." } else { "" };
    let names = shown(&names[..names.len().min(NAMES_MAX)].join(", "));
    let message = format!(
        "tasks wait for each other in a circle: {names}{more}; none of them waits for another of \
         them, and every other dependency counts"
    );
    Odd::OddValue.finding(message)
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

    #[test]
    fn of_a_circle_its_own_edges_go_and_all_others_stay() {
        for (told, circles, kept) in [
            ("a: b:a c:gone,b", "", "a: b:a c:gone,b"),
            ("a:a b:a", "a", "a: b:a"),
            // Two circles, and what lies between, before and behind them.
            ("a:x b:a,c c:b,d d:e e:f f:e g:f,c x:", "b,c e,f", "a:x b:a c:d d:e e: f: g:f,c x:"),
            // One name in two circles makes them one.
            ("a:b b:a,c c:b d:a", "a,b,c", "a: b: c: d:a"),
        ] {
            let entry = |word: &str| {
                let (name, after) = word.split_once(':').unwrap();
                let after = after.split(',').filter(|it| !it.is_empty());
                (name.to_owned(), after.map(str::to_owned).collect::<Vec<_>>())
            };
            let mut entries: Vec<(String, Vec<String>)> =
                told.split_whitespace().map(entry).collect();
            let found: Vec<String> =
                without_circles(&mut entries).iter().map(|it| it.join(",")).collect();
            assert_eq!(found.join(" "), circles, "{told}");
            let left: Vec<String> =
                entries.iter().map(|(name, after)| format!("{name}:{}", after.join(","))).collect();
            assert_eq!(left.join(" "), kept, "{told}");
        }
    }
}
