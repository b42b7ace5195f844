//! Which runs are there: one for each directory below `.agent-memory/runs`.

use std::collections::BTreeMap;

use onward_core::{digest::Digest, time::Timestamp};

use super::{RUNS, event};
use crate::{
    kit::{age::stamp, path::below},
    seam::{Candidate, Card, Listing, Site},
};

/// The newest activity first.
pub(super) fn sites(card: &'static Card, seen: &Listing) -> Vec<Site> {
    let mut sites: Vec<Site> = seen.candidates.iter().flat_map(|it| in_project(card, it)).collect();
    sites.sort_by(|one, other| {
        other.last_activity.cmp(&one.last_activity).then_with(|| one.name.cmp(&other.name))
    });
    sites
}

/// What was seen of one run: the newest moment that its events tell, or else when its newest file
/// was written.
#[derive(Default)]
struct Seen {
    told: Option<Timestamp>,
    written: Option<Timestamp>,
}

fn in_project(card: &'static Card, candidate: &Candidate) -> Vec<Site> {
    let mut runs: BTreeMap<&str, Seen> = BTreeMap::new();
    for (path, glimpse) in &candidate.marks {
        let inner = path.strip_prefix(RUNS).and_then(|it| it.strip_prefix('/'));
        let Some((name, rest)) = inner.and_then(|it| it.split_once('/')) else { continue };
        if name.is_empty() || name.starts_with('.') {
            continue;
        }
        let seen = runs.entry(name).or_default();
        // A directory changes whenever something in it does.
        seen.written = seen.written.max(glimpse.modified.filter(|_| !rest.is_empty()));
        seen.told = seen.told.max(glimpse.bytes.as_deref().and_then(event::last_moment));
    }
    let site = |(name, seen): (&str, Seen)| {
        let mut site = Site::at(card, &below(&candidate.dir, &format!("{RUNS}/{name}")));
        site.last_activity = seen.told.or(seen.written);
        site
    };
    runs.into_iter().map(site).collect()
}

/// Where a new run lies: `YYYYMMDD-HHMM-<slug>-<four characters>`, as the system names its runs.
pub(super) fn fresh(request: &str, now: Timestamp) -> String {
    const SLUG_MAX: usize = 20;
    let words = request.split(|c: char| !c.is_ascii_alphanumeric()).filter(|it| !it.is_empty());
    let slug = words.collect::<Vec<_>>().join("-").to_ascii_lowercase();
    let slug: String = slug.chars().take(SLUG_MAX).collect();
    let slug = slug.trim_matches('-');
    let slug = if slug.is_empty() { "run" } else { slug };
    let stamp: String = stamp(now).chars().take("20260302-0952".len()).collect();
    let told_apart = Digest::of(format!("{now} {request}").as_bytes()).to_string();
    let last: String = told_apart.chars().take(4).collect();
    format!("{RUNS}/{stamp}-{slug}-{last}")
}
