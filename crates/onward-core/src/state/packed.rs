//! A folded state as bytes that are read again without folding: what a large run keeps beside its
//! journal.
//!
//! Invariant: what is unpacked is the state that was packed, field for field; [`State::pack`] has
//! seen it, and gives nothing where it is not so. The bytes are our own and nothing else reads
//! them: what is cut short, or is of another [`LAYOUT`], gives `None` and never a panic.

use std::sync::Arc;

use super::{Glance, Phase, Plain, State, StepState, kinds::KINDS, steps::Kept};
use crate::{
    address::Address,
    evidence::Evidence,
    graph::{Defs, PackedGraph},
    key::Key,
    workflow::packed::{Pack, take, text},
};

/// Another number whenever anything in here, or in the state, is written differently.
const LAYOUT: u32 = 4;

/// A step that is done and of which nothing else is to be told: nearly all steps of a large run.
const PLAIN: u8 = 0;
/// Any other step, as JSON.
const WHOLE: u8 = 1;

impl State {
    /// `None` where the state would not come back as it is. With the steps that were declared, the
    /// graph is kept too.
    pub fn pack(&self, defs: Option<&Defs>) -> Option<Vec<u8>> {
        let mut to = Vec::new();
        self.pack_to(defs, &mut to).map(|()| to)
    }

    /// The same behind what is there.
    pub fn pack_to(&self, defs: Option<&Defs>, to: &mut Vec<u8>) -> Option<()> {
        let at = to.len();
        to.reserve(256 * self.steps.len() + 4096);
        LAYOUT.pack(to);
        serde_json::to_string(self).ok()?.pack(to);
        put_text(self.last_kind, to);
        self.steps.len().pack(to);
        let mut record = Vec::new();
        for (step, glance) in self.steps.glances() {
            put_text(step.as_str(), to);
            let record = match glance {
                Glance::Plain(plain) => plain.record(),
                Glance::Whole(entry) => {
                    let Some(key) = key_of_plain(entry) else {
                        to.push(WHOLE);
                        serde_json::to_string(entry).ok()?.pack(to);
                        continue;
                    };
                    record.clear();
                    Plain::put(entry, key, &mut record)?;
                    &record
                }
            };
            to.push(PLAIN);
            record.len().pack(to);
            to.extend_from_slice(record);
        }
        let graph = defs.and_then(|defs| PackedGraph::of(defs, self));
        to.push(u8::from(graph.is_some()));
        if let Some(graph) = graph {
            graph.put(to);
        }
        self.comes_back_from(&to[at..]).then_some(())
    }

    /// Takes the bytes that [`pack`](Self::pack) gave. That they are as they were written is for
    /// the caller to know.
    pub fn unpack(from: &[u8]) -> Option<Self> {
        Self::unpack_at(from.to_vec(), 0)
    }

    /// The same of bytes that stand behind others. They are held, and most steps are not made of
    /// them before they are looked into.
    pub fn unpack_at(bytes: Vec<u8>, at: usize) -> Option<Self> {
        let bytes = Arc::new(bytes);
        let mut from = bytes.get(at..)?;
        let from = &mut from;
        let (mut state, count) = head(from)?;
        // A count that is a lie ends with the bytes, and little is reserved for it.
        let mut steps = Kept::of(Arc::clone(&bytes), count.min(from.len() / 8));
        for _ in 0..count {
            let address = text(from)?;
            match packed(from)? {
                Packed::Plain(record) => {
                    let at = bytes.len() - from.len() - record.len();
                    steps.add_plain(address, at, record.len())?;
                }
                Packed::Whole(json) => {
                    steps.add_whole(address, serde_json::from_str(json).ok()?)?;
                }
            }
        }
        state.steps = steps.steps();
        if let Some(graph) = graph(from, &bytes)? {
            state.steps.keep_graph(graph);
        }
        from.is_empty().then_some(state)
    }

    /// Step by step, so that a large run is not held twice for it.
    fn comes_back_from(&self, mut from: &[u8]) -> bool {
        let from = &mut from;
        let Some((head, count)) = head(from) else { return false };
        let is_head = Self { steps: self.steps.clone(), ..head } == *self;
        let mut steps = self.steps.glances();
        let comes_back = |(address, glance): (&Address, Glance<'_>)| {
            comes_back_as(from, address, glance).is_some_and(|it| it)
        };
        let comes_back = is_head && count == self.steps.len() && steps.all(comes_back);
        comes_back && graph(from, &Arc::default()).is_some() && from.is_empty()
    }
}

/// All but the steps, and how many of them follow.
fn head(from: &mut &[u8]) -> Option<(State, usize)> {
    if u32::unpack(from)? != LAYOUT {
        return None;
    }
    let mut state: State = serde_json::from_str(text(from)?).ok()?;
    let kind = text(from)?;
    state.last_kind = KINDS.into_iter().chain([""]).find(|it| *it == kind)?;
    Some((state, usize::unpack(from)?))
}

/// The graph, where one is kept; the outer `None` says that the bytes are not ours.
#[expect(clippy::option_option, reason = "cut short is not the same as left out")]
fn graph(from: &mut &[u8], bytes: &Arc<Vec<u8>>) -> Option<Option<PackedGraph>> {
    match take(from, 1)? {
        [0] => Some(None),
        [1] => PackedGraph::take(from, bytes).map(Some),
        _ => None,
    }
}

/// A step as it stands there.
enum Packed<'a> {
    Plain(&'a [u8]),
    Whole(&'a str),
}

fn packed<'a>(from: &mut &'a [u8]) -> Option<Packed<'a>> {
    match take(from, 1)? {
        [PLAIN] => {
            let length = usize::unpack(from)?;
            take(from, length).map(Packed::Plain)
        }
        [WHOLE] => text(from).map(Packed::Whole),
        _ => None,
    }
}

/// Whether the step that follows is this one.
fn comes_back_as(from: &mut &[u8], address: &Address, glance: Glance<'_>) -> Option<bool> {
    let is_it = text(from)? == address.as_str();
    let comes_back = match (packed(from)?, glance) {
        (Packed::Plain(record), Glance::Plain(plain)) => record == plain.record(),
        (Packed::Plain(record), Glance::Whole(entry)) => Plain::checked(record)?.made() == *entry,
        (Packed::Whole(json), Glance::Whole(entry)) => {
            serde_json::from_str::<StepState>(json).ok()? == *entry
        }
        (Packed::Whole(_), Glance::Plain(_)) => false,
    };
    Some(is_it && comes_back)
}

/// The key of a step of which only what [`Plain::put`] writes is to be told. A new field of a step
/// is named here, or the compiler says so.
pub(super) fn key_of_plain(entry: &StepState) -> Option<&Key> {
    let StepState {
        phase: Phase::Done,
        attempts: _,
        unspawned: 0,
        failures: 0,
        free_tries,
        free_wait_ms: None,
        failure: None,
        lost_by: None,
        started_at: _,
        ended_at: _,
        started: None,
        after: None,
        key: Some(key),
        evidence: Evidence { files: _, result: None, stdout: None, branch_head: None },
        by_hand,
        head: None,
        result: None,
        stdout: None,
        session: None,
        outlived_boot: false,
        asked_since: None,
        elsewhere: false,
        spent,
        billed: None,
        gate: None,
        effect,
    } = entry
    else {
        return None;
    };
    let is_bare = *free_tries == <_>::default() && *spent == <_>::default();
    (is_bare && by_hand.is_empty() && *effect == <_>::default()).then_some(key)
}

fn put_text(text: &str, to: &mut Vec<u8>) {
    text.len().pack(to);
    to.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        digest::Digest,
        evidence::{FileProof, Stat},
        state::Steps,
        testing::Bench,
        time::Timestamp,
    };

    const YAML: &str = "steps:
  - { id: a, run: x, writes: [a.txt] }
  - { id: s, run: x, when: '{{ false }}' }
  - { id: m, each: [p, q], steps: [{ id: b, run: y, retry: { max: 2, on: [failed] } }] }
  - { id: g, gate: Go on? }
  - id: l
    repeat: { max: 2, until: '{{ false }}', on_max: continue }
    steps: [{ id: c, run: z }]
";

    /// After each record of a run; one of them with a step of which little is to be told.
    fn states() -> Vec<State> {
        let bench = Bench::new(YAML).tell("a! m[p]/b? m[q]/b!");
        let mut state = State::default();
        let after = |record: &crate::event::Record| {
            state.after(record.clone()).unwrap();
            state.clone()
        };
        let mut states: Vec<State> = bench.records.iter().map(after).collect();
        let stat = Stat { size: 1 << 40, mtime_ns: -3, inode: u64::MAX };
        let file = |path: &str| FileProof { path: path.into(), hash: Digest::of(b"x"), stat };
        let plain = StepState {
            phase: Phase::Done,
            attempts: 300,
            started_at: Timestamp::MIN,
            ended_at: Timestamp::MAX,
            key: Some(Key::from_canonical(r#"{"definition":{"run":"é"}}"#)),
            evidence: Evidence { files: vec![file("a"), file("")], ..Evidence::default() },
            ..StepState::default()
        };
        let last = states.last_mut().unwrap();
        last.steps.insert(Address::from_text("plain"), plain);
        states
    }

    #[test]
    fn a_state_comes_back_as_it_was() {
        let mut states = states();
        states.push(State::default());
        let is_plain = |it: &&State| it.steps.values().any(|it| key_of_plain(it).is_some());
        assert!(states.iter().filter(is_plain).count() > 0);
        for state in &states {
            let packed = state.pack(None).unwrap();
            assert_eq!(State::unpack(&packed).as_ref(), Some(state));
        }
    }

    #[test]
    fn a_state_is_the_same_when_it_is_held_in_records() {
        for state in states() {
            let mut settled = state.clone();
            // Its steps are shared, and stay as they are.
            settled.settle();
            assert!(settled.steps.are_shared_with(&state.steps));
            let plain = |it: &State| {
                it.steps.glances().filter(|(_, it)| matches!(it, Glance::Plain(_))).count()
            };
            let mut own = State { steps: Steps::default(), ..state.clone() };
            for (step, entry) in &state.steps {
                own.steps.insert(step.clone(), entry.clone());
            }
            let expected = state.steps.values().filter(|it| key_of_plain(it).is_some()).count();
            for _ in 0..2 {
                own.settle();
                assert_eq!(plain(&own), expected);
                // The comparison looks into each of them.
                assert_eq!(own, state);
                assert_eq!(plain(&own), 0);
            }
            // One that is changed afterwards is what it was changed to.
            own.settle();
            let mut changed = state.clone();
            for it in [&mut own, &mut changed] {
                it.steps.values_mut().for_each(|entry| entry.attempts += 1);
            }
            assert_eq!(own, changed);
            own.settle();
            assert_eq!(own, changed);
        }
    }

    #[test]
    fn what_is_cut_short_or_of_another_layout_is_none() {
        let packed = states().pop().unwrap().pack(None).unwrap();
        for cut in 0..packed.len() {
            assert_eq!(State::unpack(&packed[..cut]), None, "cut at {cut}");
        }
        let mut other = packed.clone();
        other[0] ^= 1;
        assert_eq!(State::unpack(&other), None);
        assert_eq!(State::unpack(&[&packed[..], b"x"].concat()), None);
        // Whatever stands there, it does not panic.
        for at in 0..packed.len() {
            let mut spoilt = packed.clone();
            spoilt[at] ^= 0xff;
            let _ = State::unpack(&spoilt);
        }
    }
}
