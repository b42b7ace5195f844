//! Whole files: what is accepted and as what, and what is said about the others.

use std::fmt::Write as _;

use proptest::prelude::*;

use super::*;
use crate::evidence::Usd;
use crate::workflow::{
    Severity,
    model::{Count, Items, Kind, Limits, Many, OnFailure, PARALLEL_DEFAULT, Span, Step, Worktree},
    problem::READ_ON,
};

/// Files that tests include.
const FILES: [(&str, &str); 9] = [
    ("prompts/writer.md", "You write."),
    ("schemas/verdict.json", r#"{"type": "object"}"#),
    ("schemas/broken.json", "{"),
    (
        "sub.yaml",
        "onward: 1
inputs:
  who: { type: string }
  n: { type: integer, default: 1 }
steps:
  - { id: greet, run: \"echo {{ inputs.who }}\" }
",
    ),
    ("loop-a.yaml", "onward: 1\nsteps: [{ id: b, workflow: loop-b.yaml }]\n"),
    ("loop-b.yaml", "onward: 1\nsteps: [{ id: a, workflow: loop-a.yaml }]\n"),
    ("dir/up.yaml", "onward: 1\nsteps: [{ id: s, workflow: ../sub.yaml, with: { who: x } }]\n"),
    ("bad.yaml", "onward: 1\nsteps:\n  - { id: a, rnu: x }\n"),
    ("junk.bin", "a\0b"),
];

fn load_text(text: &[u8]) -> Result<Loaded, Vec<Problem>> {
    load("dir/flow.yaml", text, &mut |path| {
        let file = FILES.iter().find(|(name, _)| *name == path);
        file.map(|(_, text)| text.as_bytes().to_vec()).ok_or_else(|| "no such file".into())
    })
}

fn good(text: &str) -> Workflow {
    load_text(text.as_bytes()).unwrap_or_else(|problems| panic!("{}", shown(&problems))).workflow
}

fn shown(problems: &[Problem]) -> String {
    let show = |it: &Problem| {
        // Where to read on goes without saying, in the list of problems.
        let told = it.hint.as_ref().filter(|hint| *hint != READ_ON);
        assert!(it.severity == Severity::Warning || it.hint.is_some(), "{}", it.message);
        let hint = told.map(|hint| format!(" ({hint})")).unwrap_or_default();
        let word = if it.severity == Severity::Warning { "warning: " } else { "" };
        format!("{}:{} {word}{}{hint}\n", it.at.line, it.at.column, it.message)
    };
    problems.iter().map(show).collect()
}

/// A case that is a list of steps stands below this.
const HEAD: &str = "onward: 1\ninputs: { topic: { type: string } }\nsteps:\n";

fn problems_of(case: &str) -> String {
    let is_steps = case.starts_with("- {") || case.starts_with("- id");
    let text = if is_steps {
        let indented = case.lines().map(|line| format!("  {line}\n"));
        format!("{HEAD}{}", indented.collect::<String>())
    } else {
        case.to_owned()
    };
    match load_text(text.as_bytes()) {
        Ok(loaded) => shown(&loaded.warnings),
        Err(problems) => shown(&problems),
    }
}

/// Cases are separated by blank lines: a text, `=>`, and what is said about it.
#[test]
fn every_class_of_problem_is_said_with_its_place_and_a_hint() {
    let cases =
        include_str!("problems.txt").split("\n\n").filter_map(|case| case.split_once("\n=>"));
    let mut count = 0;
    for (text, expected) in cases {
        count += 1;
        assert_eq!(problems_of(text).trim(), expected.trim(), "{text}");
    }
    assert!(count > 100, "{count} cases found");
}

fn step<'w>(workflow: &'w Workflow, id: &str) -> &'w Step {
    workflow.steps.iter().find(|step| step.id.as_str() == id).unwrap()
}

const EVERYTHING: &str = include_str!("everything.yaml");

#[test]
fn a_file_with_every_feature_is_read_as_it_is_meant() {
    let loaded = load_text(EVERYTHING.as_bytes()).unwrap_or_else(|it| panic!("{}", shown(&it)));
    assert_eq!(shown(&loaded.warnings), "");
    let workflow = &loaded.workflow;
    assert_eq!(workflow.name, "release-notes");
    assert_eq!(
        workflow.limits,
        Limits { parallel: 4, usd: Some(Usd(20_000_000)), resumes: Some(10) }
    );
    assert_eq!(workflow.agents["writer"].system.as_ref().unwrap().text, "You write.");
    assert_eq!(workflow.agents["codex"].adapter, "codex");

    let facts = step(workflow, "facts");
    assert!(facts.edits && facts.needs.is_empty());
    assert_eq!((&facts.timeout, facts.idle_ms), (&Some(Span::Fixed(1_800_000)), Some(300_000)));
    assert_eq!((facts.retry.max, facts.retry.backoff_ms), (3, 30_000));
    assert_eq!(facts.retry.on, [Cause::Crash, Cause::Failed].into());
    let Kind::Agent { prompt, .. } = &facts.kind else { panic!() };
    assert_eq!(prompt.refs.names, ["inputs".to_owned()].into());

    let approve = step(workflow, "approve");
    let Kind::Gate(gate) = &approve.kind else { panic!() };
    assert_eq!((gate.options.len(), &gate.stop[..]), (3, &["cancel".to_owned()][..]));
    assert_eq!(approve.needs, [0]);
    assert_eq!((&approve.timeout, approve.retry.max), (&None, 0));

    let draft = step(workflow, "draft");
    let Many::Each(each) = &draft.many else { panic!() };
    assert_eq!(each.name, "writer");
    assert!(matches!(&each.items, Items::Expression(_)));
    assert_eq!(draft.worktree, Some(Worktree::Own));

    let lint = step(workflow, "lint");
    assert_eq!(lint.dir.as_ref().unwrap().source, "sub/{{ inputs.topic }}");
    assert_eq!((lint.on_failure, draft.on_failure), (OnFailure::Continue, OnFailure::Fail));
    assert!(matches!(&lint.timeout, Some(Span::Expression(it)) if !it.refs.names.is_empty()));

    let qa = step(workflow, "qa");
    let Many::Repeat(repeat) = &qa.many else { panic!() };
    assert_eq!((&repeat.max, repeat.continue_on_max), (&Count::Fixed(5), false));
    assert_eq!(repeat.until.as_ref().unwrap().refs.steps, ["review".to_owned()].into());

    let publish = step(workflow, "publish");
    assert!(publish.effect_outside && !publish.edits);
    assert_eq!(publish.probe.as_ref().unwrap().absent, 4);
    let Kind::Run { command } = &publish.kind else { panic!() };
    assert_eq!(command.refs.stdout, ["version".to_owned()].into());
    assert_eq!(command.refs.steps, ["approve".to_owned(), "version".to_owned()].into());

    let Kind::Sub { with, workflow: sub, .. } = &step(workflow, "hello").kind else { panic!() };
    assert_eq!((with["n"].source.as_str(), sub.steps.len()), ("{{ 2 }}", 1));

    let paths: Vec<&str> = loaded.files.iter().map(|file| file.path.as_str()).collect();
    let included = ["flow.yaml", "prompts/writer.md", "schemas/verdict.json", "sub.yaml"];
    assert_eq!(paths, included);
    assert_eq!(reload(&loaded.files).unwrap().workflow, loaded.workflow);
    assert_eq!(reload(&loaded.files).unwrap().hash, loaded.hash);
}

#[test]
fn the_hash_covers_every_file() {
    let text = "onward: 1\nsteps: [{ id: s, workflow: sub.yaml, with: { who: x } }]\n";
    let with = |sub: &str| {
        let sub = sub.as_bytes().to_vec();
        load("f.yaml", text.as_bytes(), &mut |_| Ok(sub.clone())).unwrap().hash
    };
    let sub = FILES[3].1;
    assert_eq!(with(sub), with(sub));
    assert_ne!(with(sub), with(&sub.replace("echo", "printf")));
}

#[test]
fn what_is_left_out_has_a_default() {
    let workflow = good("onward: 1\nsteps: [{ id: a, run: true }, { id: b, gate: Go on? }]\n");
    assert_eq!(workflow.name, "flow");
    assert_eq!(workflow.limits.parallel, PARALLEL_DEFAULT);
    let Kind::Run { command } = &workflow.steps[0].kind else { panic!() };
    assert_eq!(command.source, "true");
    let Kind::Gate(gate) = &workflow.steps[1].kind else { panic!() };
    assert_eq!(gate.options, ["approve", "reject"]);
    assert_eq!(gate.stop, ["reject"]);
    assert_eq!(workflow.steps[0].retry.on, Cause::RETRIED.into());
}

#[test]
fn a_step_needs_the_one_before_it_unless_it_says_otherwise() {
    let text = "onward: 1
steps:
- {id: a, run: x}
- {id: b, run: x}
- {id: c, run: x, needs: [b, a, a]}
- {id: d, run: x, needs: []}
";
    let needs: Vec<Vec<usize>> = good(text).steps.into_iter().map(|step| step.needs).collect();
    assert_eq!(needs, [vec![], vec![0], vec![0, 1], vec![]]);
}

#[test]
fn a_list_of_items_may_hold_expressions() {
    let items = "[1, '{{ inputs.w }}']";
    let text = format!(
        "onward: 1\ninputs: {{w: {{type: string}}}}\nsteps: [{{ id: a, run: x, each: {items} }}]\n"
    );
    let workflow = good(&text);
    let Many::Each(each) = &workflow.steps[0].many else { panic!() };
    let Items::Expression(items) = &each.items else { panic!() };
    assert_eq!(items.source, "{{ [1, ( inputs.w )] }}");
}

#[test]
fn a_problem_in_an_included_file_names_that_file() {
    let text = "onward: 1\nsteps: [{ id: s, workflow: bad.yaml }]\n";
    let problems = load_text(text.as_bytes()).unwrap_err();
    assert_eq!(problems[0].file, "dir/bad.yaml");
    assert_eq!(problems[0].source_line.as_deref(), Some("  - { id: a, rnu: x }"));
}

#[test]
fn a_problem_of_a_file_included_twice_is_said_once() {
    let twice = "{ id: s, workflow: bad.yaml }, { id: t, workflow: bad.yaml }";
    let problems = load_text(format!("onward: 1\nsteps: [{twice}]\n").as_bytes()).unwrap_err();
    assert_eq!(problems.len(), 1, "{}", shown(&problems));
}

#[test]
fn a_schema_copied_into_many_steps_is_bounded() {
    let steps = (0..100).fold(String::new(), |all, n| {
        all + "- { id: s" + &n.to_string() + ", run: x, result: { schema: s.json } }\n"
    });
    let schema = format!("{{\"title\": \"{}\"}}", "x".repeat(1 << 20)).into_bytes();
    let text = format!("onward: 1\nsteps:\n{steps}");
    let problems = load("f", text.as_bytes(), &mut |_| Ok(schema.clone())).unwrap_err();
    assert!(problems[0].message.contains("more than 64 MiB"), "{}", shown(&problems));
}

#[test]
fn a_computed_step_means_every_step_before() {
    let text = "onward: 1
inputs: {w: {type: string}}
steps:
- {id: a, run: x}
- {id: b, run: x}
- {id: c, run: x, needs: [a]}
- {id: d, needs: [b], run: 'x {{ steps[inputs.w].result }}'}
";
    let workflow = good(text);
    let Kind::Run { command } = &workflow.steps[3].kind else { panic!() };
    assert_eq!(command.refs.steps, ["a".to_owned(), "b".to_owned()].into());
    assert!(command.refs.stdout.is_empty());
}

#[test]
fn what_is_not_text_is_refused_with_a_place() {
    let message = |bytes: &[u8]| shown(&load_text(bytes).unwrap_err());
    assert!(message(b"onward: 1\nab\xff").starts_with("2:3 the file is not text: here is a byte"));
    assert!(message(b"onward: 1\n\0").starts_with("2:1 the file is not text: here is a NUL byte"));
    assert!(message(b"").starts_with("1:1 the file is empty"));
    let large = vec![b'a'; TEXT_BYTES_MAX + 1];
    assert!(message(&large).contains("at most 8 MiB"));
}

#[test]
fn a_large_file_that_begins_as_a_workflow_is_read() {
    let note = "# a line of sixty-four characters, so that the file is a large one\n";
    let mut text = String::from("onward: 1\nsteps: [{ id: a, run: a }]\n");
    text.extend(std::iter::repeat_n(note, TEXT_BYTES_MAX / note.len() + 1));
    assert!(text.len() > TEXT_BYTES_MAX);
    assert_eq!(good(&text).steps.len(), 1);
    for (head, is_one) in [
        ("onward: 1\n", true),
        ("\u{feff}# notes\n\nonward: 1", true),
        ("name: x\n  onward: 1\n", false),
        ("", false),
    ] {
        assert_eq!(begins_as_workflow(head.as_bytes()), is_one, "{head:?}");
    }
    assert!(!begins_as_workflow(&[&vec![b' '; HEAD_BYTES][..], b"\nonward: 1"].concat()));
}

#[test]
fn a_layered_graph_of_references_is_checked_in_one_walk() {
    let mut text = String::from("onward: 1\nsteps:\n");
    for layer in 0..100 {
        for step in 0..3 {
            let parents = match layer {
                0 => String::new(),
                _ => (0..3).map(|it| format!("s{}_{it}", layer - 1)).collect::<Vec<_>>().join(", "),
            };
            write!(text, "- {{ id: s{layer}_{step}, needs: [{parents}], run: 'x").unwrap();
            text.push_str(if layer > 0 { " {{ steps.s0_0.stdout }}' }\n" } else { "' }\n" });
        }
    }
    assert_eq!(good(&text).steps.len(), 300);
}

#[test]
fn inclusion_that_doubles_at_every_level_is_refused() {
    let read = |path: &str| {
        let level: u32 = path.trim_end_matches(".yaml").parse().unwrap();
        let twice = |id: &str| format!("- {{ id: {id}, workflow: {}.yaml }}\n", level + 1);
        let steps = match level {
            14 => ('a'..'u')
                .map(|id| ["- { id: ", &id.to_string(), ", run: x }\n"].concat())
                .collect(),
            _ => twice("a") + &twice("b"),
        };
        Ok(format!("onward: 1\nsteps:\n{steps}").into_bytes())
    };
    let problems = load("0.yaml", &read("0.yaml").unwrap(), &mut { read }).unwrap_err();
    assert!(problems[0].message.contains("more than 200000 steps"), "{}", shown(&problems));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Cuts, doubles and damages a file that uses everything.
    #[test]
    fn loading_never_panics(
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0..7_u8, any::<u8>()), 1..12),
    ) {
        let mut bytes = EVERYTHING.as_bytes().to_vec();
        for (at, what, byte) in edits {
            let at = at.index(bytes.len() + 1);
            match what {
                0 => bytes.truncate(at.max(1)),
                1 => drop(bytes.drain(at..(at + usize::from(byte)).min(bytes.len()))),
                2 => bytes.insert(at, byte),
                3 => bytes.insert(at, b"{}[]%*&!|>'\"#:-\n\t "[usize::from(byte) % 18]),
                4 => {
                    let end = (at + usize::from(byte)).min(bytes.len());
                    let copy = bytes[at..end].to_vec();
                    bytes.splice(at..at, copy);
                }
                5 => drop(bytes.splice(at..at, *b"{{ steps.")),
                _ => drop(bytes.splice(at..at, *b"{% for x in ")),
            }
        }
        if let Err(problems) = load_text(&bytes) {
            prop_assert!(!problems.is_empty());
            for problem in problems {
                prop_assert!(problem.at.line > 0 && problem.at.column > 0, "{problem:?}");
                prop_assert!(!problem.file.is_empty());
            }
        }
    }

    #[test]
    fn junk_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(load_text(&bytes).is_err());
    }
}
