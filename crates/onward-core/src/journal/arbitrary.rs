//! Any event at all, for property tests: every variant, every optional field, awkward strings.
//!
//! What comes out is what can be written, not what is legal in some run.

use std::collections::BTreeMap;

use proptest::{collection::vec, option, prelude::*, sample::select};
use serde_json::Value;

use crate::{
    address::Address,
    digest::Digest,
    event::{
        AttemptAdopted, AttemptFinished, AttemptStarted, AttemptVerified, Certainty, Edit,
        EditClass, EndStatus, Event, Exported, FileKind, GitHead, Item, LoopEnd, Mode, PauseCause,
        Rebuilt, Record, Revert, RunOpened, RunResumed, SettledBy, SourceFile,
    },
    evidence::{Cause, Ending, Evidence, FileProof, Outcome, Stat, Usd},
    journal::FORMAT,
    kept::Kept,
    key::{Difference, Key, KeyParts},
    mark::Nonce,
    recovery::Rung,
    said::Spent,
    time::Timestamp,
};

pub(crate) fn any_record() -> impl Strategy<Value = Record> {
    let small_or_any = || prop_oneof![0..100_u64, any::<u64>()];
    (small_or_any(), timestamp(), any::<u32>(), small_or_any(), any_event())
        .prop_map(|(seq, at, epoch, batch, event)| Record { seq, at, epoch, batch, event })
}

pub(crate) fn any_event() -> impl Strategy<Value = Event> {
    prop_oneof![about_runs(), about_steps(), about_attempts(), about_the_rest()]
}

/// Numbers the kinds of event, so that a test can tell that it met them all.
pub(crate) fn kind_number(event: &Event) -> usize {
    match event {
        Event::RunOpened(_) => 0,
        Event::RunAdopted { .. } => 1,
        Event::RunResumed(_) => 2,
        Event::RunPaused { .. } => 3,
        Event::RunEnded { .. } => 4,
        Event::RunArchived { .. } => 5,
        Event::GroupExpanded { .. } => 6,
        Event::LoopTurned { .. } => 7,
        Event::LoopEnded { .. } => 8,
        Event::StepSkipped { .. } => 9,
        Event::StepInvalidated { .. } => 10,
        Event::AttemptStarted(_) => 11,
        Event::AttemptSession { .. } => 12,
        Event::AttemptSpent { .. } => 13,
        Event::AttemptFinished(_) => 14,
        Event::AttemptLost { .. } => 15,
        Event::AttemptAdopted(_) => 16,
        Event::AttemptVerified(_) => 17,
        Event::GateOpened { .. } => 18,
        Event::GateDecided { .. } => 19,
        Event::EffectIntended { .. } => 20,
        Event::EffectSettled { .. } => 21,
        Event::NativeExported { .. } => 22,
        Event::LimitHit { .. } => 23,
        Event::BudgetHit { .. } => 24,
        Event::WorkflowChanged { .. } => 25,
        Event::JournalRepaired { .. } => 26,
        Event::Note { .. } => 27,
    }
}

pub(crate) const KINDS: usize = 28;

fn text() -> BoxedStrategy<String> {
    let awkward = select(vec!["\u{2028}", "\"", "\\", "\n", "\0", "\u{7f}", "é", "😀", "/", "\t"]);
    prop_oneof![
        4 => "[a-z0-9 ._/-]{0,12}",
        1 => vec(awkward, 0..5).prop_map(|parts| parts.concat()),
        1 => vec(any::<char>(), 0..6).prop_map(String::from_iter),
    ]
    .boxed()
}

fn texts() -> BoxedStrategy<Vec<String>> {
    vec(text(), 0..4).boxed()
}

fn maybe_text() -> BoxedStrategy<Option<String>> {
    option::of(text()).boxed()
}

fn address() -> BoxedStrategy<Address> {
    prop_oneof!["[a-z]{1,6}(\\[[0-9A]\\])?(/[a-z]{1,6})?", text()]
        .prop_map(|text| Address::from_text(&text))
        .boxed()
}

fn digest() -> BoxedStrategy<Digest> {
    any::<[u8; 4]>().prop_map(|seed| Digest::of(&seed)).boxed()
}

fn timestamp() -> BoxedStrategy<Timestamp> {
    prop_oneof![
        1_700_000_000_000_000..1_900_000_000_000_000_i64,
        any::<i64>(),
        Just(0),
        Just(i64::MIN),
        Just(i64::MAX)
    ]
    .prop_map(Timestamp::from_micros)
    .boxed()
}

/// As much money as can be written and read back.
fn usd() -> BoxedStrategy<Usd> {
    prop_oneof![0..10_000_000_u64, 0..=1_000_000_000_000_000_u64].prop_map(Usd).boxed()
}

fn spent() -> BoxedStrategy<Spent> {
    let tokens = (any::<u64>(), any::<u64>(), any::<u64>(), any::<u64>());
    (tokens, option::of(usd()))
        .prop_map(|((input_tokens, output_tokens, cache_read_tokens, cache_write_tokens), usd)| {
            Spent { input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, usd }
        })
        .boxed()
}

fn value() -> BoxedStrategy<Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((text(), inner), 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
    .boxed()
}

fn map_of<V: std::fmt::Debug + 'static>(
    value: impl Strategy<Value = V> + 'static,
) -> BoxedStrategy<BTreeMap<String, V>> {
    proptest::collection::btree_map(text(), value, 0..4).boxed()
}

fn key() -> BoxedStrategy<Key> {
    (map_of(text()), map_of(text()), map_of(digest()), map_of(digest()))
        .prop_map(|(definition, agent, reads, needs)| {
            Key::from(&KeyParts { definition, agent, reads, needs })
        })
        .boxed()
}

fn file_proof() -> BoxedStrategy<FileProof> {
    let stat = (any::<u64>(), any::<i64>(), any::<u64>())
        .prop_map(|(size, mtime_ns, inode)| Stat { size, mtime_ns, inode });
    (text(), digest(), stat).prop_map(|(path, hash, stat)| FileProof { path, hash, stat }).boxed()
}

fn evidence() -> BoxedStrategy<Evidence> {
    (vec(file_proof(), 0..3), option::of(digest()), option::of(digest()), maybe_text())
        .prop_map(|(files, result, stdout, branch_head)| Evidence {
            files,
            result,
            stdout,
            branch_head,
        })
        .boxed()
}

fn cause() -> BoxedStrategy<Cause> {
    select(&Cause::ALL[..]).boxed()
}

fn rung() -> BoxedStrategy<Rung> {
    select(&Rung::ALL[..]).boxed()
}

fn mode() -> BoxedStrategy<Mode> {
    select(vec![Mode::Autopilot, Mode::Interactive, Mode::Preflight]).boxed()
}

fn kind() -> BoxedStrategy<FileKind> {
    select(vec![FileKind::Plain, FileKind::Executable, FileKind::Link]).boxed()
}

fn reverts() -> BoxedStrategy<Vec<Revert>> {
    let sides = (option::of(digest()), option::of(digest()), kind(), kind());
    let revert = (text(), sides, text(), option::of(address()));
    let revert = revert.prop_map(|(path, (left, base, left_kind, base_kind), rescue, step)| {
        Revert { path, left, base, rescue, left_kind, base_kind, step }
    });
    vec(revert, 0..3).boxed()
}

fn about_runs() -> BoxedStrategy<Event> {
    let git = || {
        let head = (maybe_text(), maybe_text()).prop_map(|(branch, head)| GitHead { branch, head });
        option::of(head)
    };
    let run = "[a-z]{1,8}-2026[0-9]{4}-[a-z2-7]{4}".prop_map(|run| run.parse().expect("a run id"));
    let opened =
        (run, text(), digest(), maybe_text(), map_of(value()), git(), (text(), text(), mode()))
            .prop_map(|(run, workflow, workflow_hash, file, inputs, git, rest)| {
                let (format, (engine, boot_id, mode)) = (FORMAT, rest);
                RunOpened {
                    format,
                    run,
                    workflow,
                    workflow_hash,
                    file,
                    inputs,
                    git,
                    engine,
                    boot_id,
                    mode,
                }
            });
    let said = (texts(), maybe_text());
    let resumed = (text(), text(), mode(), any::<u32>(), text(), said, git(), reverts()).prop_map(
        |(code, summary, mode, count, boot_id, (accepted, entered), git, reverts)| RunResumed {
            code,
            summary,
            mode,
            count,
            boot_id,
            git,
            accepted,
            entered,
            last_sign: None,
            reverts,
        },
    );
    let file = (text(), digest()).prop_map(|(path, hash)| SourceFile { path, hash });
    let pause = select(vec![
        PauseCause::Gate,
        PauseCause::Limit,
        PauseCause::Budget,
        PauseCause::Interrupted,
        PauseCause::Asked,
        PauseCause::Person,
    ]);
    let status = select(vec![EndStatus::Completed, EndStatus::Failed, EndStatus::Cancelled]);
    prop_oneof![
        opened.prop_map(|it| Event::RunOpened(Box::new(it))),
        resumed.prop_map(|it| Event::RunResumed(Box::new(it))),
        (text(), text(), vec(file, 0..3)).prop_map(|(dialect, source, files)| Event::RunAdopted {
            dialect,
            source,
            files
        }),
        (pause, option::of(timestamp()))
            .prop_map(|(cause, until)| Event::RunPaused { cause, until }),
        (status, maybe_text()).prop_map(|(status, why)| Event::RunEnded { status, why }),
        text().prop_map(|to| Event::RunArchived { to }),
    ]
    .boxed()
}

fn about_steps() -> BoxedStrategy<Event> {
    let item =
        (text(), value(), texts()).prop_map(|(key, value, after)| Item { key, value, after });
    let reason = select(vec![LoopEnd::Until, LoopEnd::Max, LoopEnd::Exhausted]);
    let difference = (text(), maybe_text(), maybe_text()).prop_map(|(part, was, is)| Difference {
        part,
        was,
        is,
    });
    prop_oneof![
        (address(), vec(item, 0..4), map_of(digest()))
            .prop_map(|(step, items, needs)| Event::GroupExpanded { step, items, needs }),
        (address(), any::<u32>()).prop_map(|(step, turn)| Event::LoopTurned { step, turn }),
        (address(), any::<u32>(), reason).prop_map(|(step, turns, reason)| Event::LoopEnded {
            step,
            turns,
            reason
        }),
        (address(), text(), map_of(digest()), map_of(digest())).prop_map(
            |(step, reason, needs, reads)| Event::StepSkipped { step, reason, needs, reads }
        ),
        (address(), vec(difference, 0..3))
            .prop_map(|(step, causes)| Event::StepInvalidated { step, causes }),
    ]
    .boxed()
}

fn started() -> BoxedStrategy<Event> {
    let asked = (address(), any::<u32>(), key(), texts(), text(), texts());
    let names = (maybe_text(), maybe_text(), any::<bool>(), maybe_text());
    let nonce = any::<u64>().prop_map(|it| Nonce::of("r", 1, it, Timestamp::default()));
    let found = (names, map_of(option::of(digest())), map_of(kind()), reverts(), option::of(nonce));
    (asked, found)
        .prop_map(
            |(
                (step, attempt, key, argv, cwd, writes),
                ((agent, session, continues, base), saved, kinds, reverts, nonce),
            )| {
                Event::AttemptStarted(Box::new(AttemptStarted {
                    step,
                    attempt,
                    key,
                    argv: Kept::from(&argv),
                    cwd,
                    agent,
                    session,
                    continues,
                    base,
                    writes,
                    saved,
                    kinds,
                    reverts,
                    nonce,
                }))
            },
        )
        .boxed()
}

fn finished() -> BoxedStrategy<Event> {
    let outcome = prop_oneof![
        Just(Outcome::Done),
        (cause(), text()).prop_map(|(cause, detail)| Outcome::Failed { cause, detail }),
    ];
    let ending = prop_oneof![
        any::<i32>().prop_map(|code| Ending::Exited { code }),
        any::<i32>().prop_map(|signal| Ending::Signalled { signal }),
        any::<bool>().prop_map(|idle| Ending::TimedOut { idle }),
        Just(Ending::Stopped),
        text().prop_map(|why| Ending::NotStarted { why }),
    ];
    let judged = (address(), any::<u32>(), outcome, option::of(ending), evidence());
    let tolerated = any::<bool>();
    let left = (option::of(value()), maybe_text(), maybe_text(), texts(), tolerated, maybe_text());
    (judged, left, option::of(timestamp()), any::<u32>())
        .prop_map(|((step, attempt, outcome, ending, evidence), left, ended, waited)| {
            let (result, stdout, after, footprint, tolerated, head) = left;
            Event::AttemptFinished(Box::new(AttemptFinished {
                step,
                attempt,
                outcome,
                ending,
                evidence,
                result,
                stdout,
                after,
                footprint,
                tolerated,
                head,
                ended,
                waited: waited.into(),
            }))
        })
        .boxed()
}

fn about_attempts() -> BoxedStrategy<Event> {
    let certainty = select(vec![Certainty::Recorded, Certainty::Inferred]);
    let adopted = (address(), text(), certainty, evidence(), option::of(value()), maybe_text())
        .prop_map(|(step, source, certainty, evidence, result, by)| {
            let it = AttemptAdopted { step, source, certainty, evidence, result, by };
            Event::AttemptAdopted(Box::new(it))
        });
    prop_oneof![
        3 => started(),
        3 => finished(),
        1 => (address(), any::<u32>(), text())
            .prop_map(|(step, attempt, session)| Event::AttemptSession { step, attempt, session }),
        2 => (address(), any::<u32>(), spent())
            .prop_map(|(step, attempt, spent)| Event::AttemptSpent { step, attempt, spent }),
        1 => (address(), any::<u32>(), cause(), rung(), texts(), maybe_text()).prop_map(
            |(step, attempt, cause, rung, reverted, rescue)| Event::AttemptLost {
                step, attempt, cause, rung, reverted, rescue
            }
        ),
        1 => adopted,
        1 => (address(), option::of(evidence()), option::of(key()), text()).prop_map(
            |(step, evidence, key, why)| {
 Event::AttemptVerified(Box::new(AttemptVerified { step, evidence, key, why })) }
        ),
    ]
    .boxed()
}

fn about_the_rest() -> BoxedStrategy<Event> {
    let by = select(vec![SettledBy::Receipt, SettledBy::Probe, SettledBy::Person]);
    let class = select(vec![EditClass::Cosmetic, EditClass::Pending, EditClass::TouchesDone]);
    let edit = (text(), class).prop_map(|(step, class)| Edit { step, class });
    let exported = (text(), digest(), option::of(any::<u64>()))
        .prop_map(|(path, hash, offset)| Exported { path, hash, offset });
    let certainty = select(vec![Certainty::Recorded, Certainty::Inferred]);
    let rebuilt = (any::<u64>(), text(), certainty)
        .prop_map(|(count, source, certainty)| Rebuilt { count, source, certainty });
    prop_oneof![
        (address(), text(), texts(), texts(), digest()).prop_map(
            |(step, prompt, options, shows, hash)| Event::GateOpened {
                step,
                prompt,
                options,
                shows,
                hash
            }
        ),
        (address(), text(), text(), maybe_text(), digest(), any::<bool>()).prop_map(
            |(step, by, option, comment, hash, stops)| Event::GateDecided {
                step,
                by,
                option,
                comment,
                hash,
                stops
            }
        ),
        (address(), any::<u32>(), text())
            .prop_map(|(step, attempt, effect)| Event::EffectIntended { step, attempt, effect }),
        (address(), any::<u32>(), any::<bool>(), by).prop_map(|(step, attempt, happened, by)| {
            Event::EffectSettled { step, attempt, happened, by }
        }),
        vec(exported, 0..3).prop_map(|files| Event::NativeExported { files }),
        (text(), maybe_text(), maybe_text(), option::of(timestamp())).prop_map(
            |(provider, agent, account, resets_at)| Event::LimitHit {
                provider,
                agent,
                account,
                resets_at
            }
        ),
        (usd(), usd()).prop_map(|(spent, limit)| Event::BudgetHit { spent, limit }),
        (digest(), vec(edit, 0..3))
            .prop_map(|(hash, edits)| Event::WorkflowChanged { hash, edits }),
        (text(), any::<u64>(), vec(rebuilt, 0..3)).prop_map(|(kept, events, rebuilt)| {
            Event::JournalRepaired { kept, events, rebuilt }
        }),
        (text(), option::of(address())).prop_map(|(text, step)| Event::Note { text, step }),
    ]
    .boxed()
}
