//! How long it takes to read and check large workflow files.

use std::{fmt::Write as _, hint::black_box};

use criterion::{Criterion, criterion_group, criterion_main};
use onward_core::workflow::load;

const STEPS: usize = 10_000;

/// One chain, without a word about it.
fn flat() -> String {
    let mut text = String::from("onward: 1\nsteps:\n");
    for step in 0..STEPS {
        writeln!(text, "  - id: s{step}\n    run: make target-{step}").expect("memory");
    }
    text
}

/// A hundred layers, three parents each, and every step looks at a parent and at the first step.
fn layered() -> String {
    let mut text = String::from("onward: 1\nsteps:\n");
    for step in 0..STEPS {
        let (layer, place) = (step / 100, step % 100);
        let parents: Vec<String> = (0..3)
            .filter(|_| layer > 0)
            .map(|n| format!("s{}", (layer - 1) * 100 + (place + n * 7) % 100))
            .collect();
        let look = parents.first().map(|it| format!(" {{{{ steps.{it}.stdout }}}}"));
        let (needs, look) = (parents.join(", "), look.unwrap_or_default());
        writeln!(text, "  - {{ id: s{step}, needs: [{needs}], run: 'make x{look}' }}")
            .expect("memory");
    }
    text
}

fn check(c: &mut Criterion) {
    for (name, text) in [("flat", flat()), ("layered", layered())] {
        c.bench_function(&format!("check/{name}/{STEPS}"), |b| {
            b.iter(|| {
                let loaded =
                    load("f.yaml", black_box(text.as_bytes()), &mut |_| Err("none".into()));
                assert_eq!(loaded.expect("a good file").workflow.steps.len(), STEPS);
            });
        });
    }
}

criterion_group!(benches, check);
criterion_main!(benches);
