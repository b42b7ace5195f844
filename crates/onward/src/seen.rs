//! What a person saw at a gate when they answered it, so that the next question can show what has
//! changed since.
//!
//! Invariant: copies are for comparing alone. Whether an answer counts is told by its hash in the
//! journal, and a copy that is missing is no error.

use std::path::{Path, PathBuf};

use onward_core::{address::Address, digest::Digest, event::Event};
use onward_engine::{load::follow::Follower, world::open};

use crate::gates::Gate;

/// Larger files are not kept.
const BYTES_MAX: u64 = 1 << 20;

/// Keeps what the gate shows, under the hash that goes with the answer.
pub(crate) fn keep(run: &Path, root: &Path, gate: &Gate) {
    let dir = place(run, gate.hash);
    if gate.shows.is_empty() || std::fs::create_dir_all(&dir).is_err() {
        return;
    }
    for path in &gate.shows {
        let seen = open::looked(root, path).and_then(|file| open::all_of(file, BYTES_MAX));
        if let Ok(bytes) = seen {
            // What cannot be kept cannot be compared, and that is said then.
            let _ = open::put(&dir.join(name(path)), &bytes, open::PRIVATE);
        }
    }
}

/// What a file was at the last answer to this gate, or to the same one in an earlier turn.
pub(crate) fn before(run: &Path, gate: &Gate, path: &str) -> Option<Vec<u8>> {
    let answered = last_answer(run, &gate.step)?;
    let kept = open::named(&place(run, answered).join(name(path)));
    kept.and_then(|file| open::all_of(file, BYTES_MAX)).ok()
}

/// The hash of what was shown when the gate was last answered.
pub(crate) fn last_answer(run: &Path, gate: &Address) -> Option<Digest> {
    let records = Follower::new(run).poll().ok()?;
    let same = without_turns(gate.as_str());
    records.iter().rev().find_map(|record| {
        let Event::GateDecided { step, hash, .. } = &record.event else { return None };
        (without_turns(step.as_str()) == same).then_some(*hash)
    })
}

/// `round[2]/ok` and `round[3]/ok` ask the same.
fn without_turns(address: &str) -> String {
    let mut all = String::new();
    let mut rest = address;
    while let Some(at) = rest.find('[') {
        let (before, key) = rest.split_at(at);
        all.push_str(before);
        let end = key.find(']').map_or(key.len(), |end| end + 1);
        if !key[1..end.max(2) - 1].chars().all(|it| it.is_ascii_digit()) {
            all.push_str(&key[..end]);
        }
        rest = &key[end..];
    }
    all + rest
}

fn place(run: &Path, hash: Digest) -> PathBuf {
    run.join("seen").join(hash.to_string())
}

fn name(path: &str) -> String {
    Digest::of(path.as_bytes()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_is_the_same_in_every_turn_and_another_in_every_item() {
        assert_eq!(without_turns("round[2]/ok"), "round/ok");
        assert_eq!(without_turns("fan[a]/turn[10]/ok"), "fan[a]/turn/ok");
        assert_eq!(without_turns("ok"), "ok");
    }
}
