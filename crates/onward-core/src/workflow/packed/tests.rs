//! What is packed comes back, and the layout does not change by accident.

use super::*;
use crate::{digest::Digest, workflow::load};

/// Every key of the language that a step can have.
const WHOLE: &str = r#"
onward: 1
name: whole
inputs:
  topic: { type: string, default: tea, description: What it is about }
  topics: { type: list }
agents:
  writer: { use: claude, model: opus, permissions: edit, allow: [Bash] }
limits: { parallel: 2, usd: 1.5, resumes: 3 }
steps:
  - { id: plain, each: [a, b], run: "echo {{ item }}" }
  - id: list
    run: cat items
    description: The items
    reads: [items, "in/*.md"]
    writes: [out/list]
    check: test -s out/list
  - id: each
    needs: [list]
    each: "{{ inputs.topics }}"
    as: topic
    key: id
    after: after
    steps:
      - id: write
        agent: writer
        prompt: "About {{ inputs.topic }}: {{ topic.id }}"
        timeout: 5m
        idle: 1m
        retry: { max: 2, backoff: 1s, on: [crash] }
      - id: check
        run: "true"
        when: "{{ steps.write.status == 'done' }}"
        env: { A: "{{ topic.id }}" }
        durability: full
        on_failure: continue
  - id: again
    needs: [each]
    repeat: { max: 3, until: "{{ steps.turn.stdout == 'x' }}", on_max: continue }
    steps: [{ id: turn, run: echo x, keep: true, edits: false }]
  - { id: ask, needs: [again], gate: "Go on?", options: [approve, reject], stop: [reject] }
  - id: send
    needs: [ask]
    run: send
    effect: outside
    probe: { run: look, absent: 3 }
"#;

fn whole() -> Workflow {
    let mut none = |_: &str| Err("no such file".to_owned());
    let loaded = load("whole.yaml", WHOLE.as_bytes(), &mut none);
    loaded.unwrap_or_else(|problems| panic!("{problems:#?}")).workflow
}

fn packed(workflow: &Workflow) -> Vec<u8> {
    let mut bytes = Vec::new();
    workflow.pack(&mut bytes);
    bytes
}

#[test]
fn what_is_packed_comes_back_the_same() {
    let workflow = whole();
    let bytes = packed(&workflow);
    let mut rest = bytes.as_slice();
    let back = Workflow::unpack(&mut rest).unwrap();
    assert_eq!(back, workflow);
    assert_eq!(rest, b"");
    // Where things stand is no part of the comparison above.
    assert_eq!(packed(&back), bytes);
}

#[test]
fn another_layout_has_another_number() {
    let digest = Digest::of(&packed(&whole())).to_string();
    assert_eq!(
        (LAYOUT, digest.as_str()),
        (1, "e7e25c4b58672e624d24333e40db271b"),
        "raise LAYOUT, then pin the digest"
    );
}

#[test]
fn what_is_cut_short_or_spoilt_gives_nothing_and_no_panic() {
    let bytes = packed(&whole());
    for cut in 0..bytes.len() {
        assert_eq!(Workflow::unpack(&mut &bytes[..cut]), None, "cut at {cut}");
        let mut spoilt = bytes.clone();
        spoilt[cut] ^= 0xff;
        let _ = Workflow::unpack(&mut spoilt.as_slice());
    }
    let endless = [0xff; 32];
    assert_eq!(u64::unpack(&mut endless.as_slice()), None);
    assert_eq!(Vec::<u64>::unpack(&mut [0xff, 0xff, 0xff, 0xff, 0x0f].as_slice()), None);
}
