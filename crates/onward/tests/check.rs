//! `onward check` and `onward schema`, end to end: words, data and exit codes.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::{
    fs::{self, File},
    path::Path,
    process::{Command, Output, Stdio},
};

use tempfile::TempDir;

/// A directory of files and a fixed environment.
struct Project(TempDir);

impl Project {
    fn new(files: &[(&str, &str)]) -> Self {
        let project = Self(TempDir::new().unwrap());
        for (path, text) in files {
            let path = project.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        project
    }

    /// One workflow, `flow.yaml`.
    fn flow(text: &str) -> Self {
        Self::new(&[("flow.yaml", text)])
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_onward"));
        command.args(arguments.split(' ')).current_dir(self.path()).env_clear();
        command
    }

    /// Standard output, standard error and exit code as one text.
    #[must_use]
    fn onward(&self, arguments: &str) -> String {
        shown(&self.command(arguments).output().unwrap())
    }
}

fn shown(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    format!("{out}--- stderr\n{err}--- exit {}\n", output.status.code().unwrap())
}

const SUB: &str = "onward: 1
inputs: { who: { type: string } }
steps: [{ id: greet, run: \"echo {{ inputs.who }}\" }]
";

const EXAMPLE: &str = r#"# yaml-language-server: $schema=workflow.json
onward: 1
name: release-notes
inputs:
  topic: { type: string }
  writers: { type: list, default: [ann, bob] }
agents:
  writer: { use: claude, model: sonnet, system: prompts/writer.md }
defaults: { timeout: 30m, retry: { max: 2, backoff: 30s } }
limits: { parallel: 4, usd: 20, resumes: 10 }
steps:
  - id: facts
    agent: writer
    prompt: Collect facts about {{ inputs.topic }} into notes.md.
    reads: [docs/**]
    writes: [notes.md]
    check: test -s notes.md
  - id: approve
    gate: Publish from these notes?
    shows: [notes.md]
    options: [approve, revise, cancel]
  - id: draft
    each: "{{ inputs.writers }}"
    as: writer
    worktree: true
    steps:
      - { id: write, agent: writer, prompt: "As {{ writer }}.", writes: ["draft-{{ writer }}.md"] }
  - id: qa
    repeat: { max: 5, until: "{{ steps.review.result.verdict == 'APPROVE' }}" }
    steps:
      - { id: review, agent: writer, prompt: "…", result: { schema: schemas/verdict.json } }
      - { id: fix, when: "{{ steps.review.result.verdict == 'REJECT' }}", agent: writer, prompt: "…" }
  - id: publish
    run: gh release create v1
    effect: outside
    probe: { run: gh release view v1, absent: 1 }
"#;

fn example() -> Project {
    Project::new(&[
        ("flow.yaml", EXAMPLE),
        ("prompts/writer.md", "You write."),
        ("schemas/verdict.json", "{}"),
    ])
}

#[test]
fn a_good_file_is_drawn() {
    insta::assert_snapshot!(example().onward("check flow.yaml"), @"");
}

#[test]
fn a_good_file_is_drawn_for_mermaid() {
    insta::assert_snapshot!(example().onward("check flow.yaml --mermaid"), @"");
}

#[test]
fn quiet_says_nothing_about_a_good_file() {
    insta::assert_snapshot!(example().onward("check -q flow.yaml"), @"");
}

#[test]
fn a_directory_can_be_given_apart() {
    let project = Project::new(&[("a/b/flow.yaml", SUB)]);
    insta::assert_snapshot!(project.onward("--cwd a/b check flow.yaml"), @"");
}

#[test]
fn scripts_get_one_object() {
    insta::assert_snapshot!(example().onward("check flow.yaml --json"), @"");
    let bad = Project::flow("onward: 1\nsteps:\n  - { id: a, rnu: x }\n");
    insta::assert_snapshot!(bad.onward("check --json flow.yaml"), @"");
}

#[test]
fn a_misspelt_key_is_shown_with_its_line_and_the_word_that_was_meant() {
    let project = Project::flow("onward: 1\nsteps:\n  - id: build\n    rnu: make\n");
    insta::assert_snapshot!(project.onward("check flow.yaml"), @"");
}

#[test]
fn a_cycle_is_shown_step_by_step() {
    let project = Project::flow(
        "onward: 1
steps:
  - { id: a, run: x, needs: [c] }
  - { id: b, run: x }
  - { id: c, run: x }
",
    );
    insta::assert_snapshot!(project.onward("check flow.yaml"), @"");
}

#[test]
fn a_name_that_cannot_be_seen_is_shown_in_the_template() {
    let project = Project::flow(
        "onward: 1
inputs: { topic: { type: string } }
steps:
  - { id: lint, run: make lint }
  - id: test
    needs: []
    run: |
      echo {{ inputs.topik }}
      echo {{ steps.lint.stdout }}
",
    );
    insta::assert_snapshot!(project.onward("check flow.yaml"), @"");
}

#[test]
fn a_value_inside_quotes_is_refused() {
    let project = Project::flow(
        "onward: 1
inputs: { title: { type: string } }
steps:
  - id: commit
    run: git commit -m \"{{ inputs.title }}\"
",
    );
    insta::assert_snapshot!(project.onward("check flow.yaml"), @"");
}

#[test]
fn a_fault_of_the_yaml_has_a_place() {
    let project = Project::flow("onward: 1\nsteps:\n  - id: a\n    run: echo: b: c\n");
    insta::assert_snapshot!(project.onward("check flow.yaml"), @"");
}

#[test]
fn a_problem_of_an_included_file_is_shown_there() {
    let project = Project::new(&[
        ("d/flow.yaml", "onward: 1\nsteps: [{ id: s, workflow: sub/other.yaml }]\n"),
        ("d/sub/other.yaml", "onward: 1\nsteps: [{ id: a, gate: Go on?, stop: [rejct] }]\n"),
    ]);
    insta::assert_snapshot!(project.onward("check d/flow.yaml"), @"");
}

#[test]
fn an_included_workflow_gets_its_inputs() {
    let flow = "onward: 1\nsteps: [{ id: s, workflow: sub.yaml, with: { hwo: x } }]\n";
    let project = Project::new(&[("flow.yaml", flow), ("sub.yaml", SUB)]);
    insta::assert_snapshot!(project.onward("check flow.yaml"), @"");
}

#[test]
fn parallel_edits_are_a_warning_and_not_an_error() {
    let project = Project::flow(
        "onward: 1
steps:
  - { id: api, agent: claude, prompt: Write the API. }
  - { id: docs, agent: codex, prompt: Write the docs., needs: [] }
",
    );
    insta::assert_snapshot!(project.onward("check flow.yaml"), @"");
}

#[test]
fn a_file_for_a_newer_onward_says_so() {
    let project = Project::flow("onward: 7\nnew_things: true\n");
    insta::assert_snapshot!(project.onward("check flow.yaml"), @"");
}

#[test]
fn many_problems_are_counted() {
    let steps: Vec<String> = (0..30).map(|n| format!("  - {{ id: s{n}, rnu: x }}\n")).collect();
    let project = Project::flow(&format!("onward: 1\nsteps:\n{}", steps.concat()));
    let output = project.onward("check flow.yaml");
    assert_eq!(output.matches("did you mean `run`?").count(), 20);
    assert!(output.contains("and 10 more; see them with `-v`"), "{output}");
    let output = project.onward("check -v flow.yaml");
    assert_eq!(output.matches("did you mean `run`?").count(), 30);
}

#[test]
fn a_file_that_is_not_there_cannot_be_read() {
    let project = Project::new(&[]);
    insta::assert_snapshot!(project.onward("check flow.yaml"), @"");
    insta::assert_snapshot!(project.onward("check flow.yaml --json"), @"");
}

#[test]
fn a_directory_is_no_workflow() {
    let project = Project::new(&[("dir/x", "")]);
    insta::assert_snapshot!(project.onward("check dir"), @"");
}

#[test]
fn a_command_line_that_is_none_is_answered_in_the_same_way() {
    let project = Project::new(&[]);
    insta::assert_snapshot!(project.onward("check --josn flow.yaml"), @"");
    insta::assert_snapshot!(project.onward("chekc flow.yaml --json"), @"");
}

#[test]
fn a_huge_file_is_refused_unread() {
    let project = Project::new(&[]);
    let file = File::create(project.path().join("huge.yaml")).unwrap();
    file.set_len(100 << 20).unwrap();
    insta::assert_snapshot!(project.onward("check huge.yaml"), @"");
}

#[test]
fn junk_is_answered_with_a_place_and_a_hint() {
    let project = Project::new(&[]);
    let check = |bytes: &[u8]| {
        fs::write(project.path().join("junk"), bytes).unwrap();
        project.onward("check junk")
    };
    insta::assert_snapshot!(check(b"\x7fELF\x02\x01\0\0"), @"");
    insta::assert_snapshot!(check(b"onward: 1\nname: \xff\xfe\n"), @"");
    insta::assert_snapshot!(check(b""), @"");
}

#[test]
fn what_a_file_says_cannot_reach_the_terminal_as_commands() {
    let project = Project::flow("onward: 1\n\"\\e[2J\\e[31mowned\": 1\nsteps: []\n");
    let output = project.onward("check flow.yaml");
    assert!(output.contains("owned") && !output.contains('\u{1b}'), "{output:?}");
}

#[test]
fn colour_is_for_those_who_want_it() {
    let project = Project::flow("onward: 1\nsteps: []\n");
    let coloured = |name: &str, value: &str| {
        let output = project.command("check flow.yaml").env(name, value).output().unwrap();
        String::from_utf8(output.stderr).unwrap().contains('\u{1b}')
    };
    assert!(coloured("CLICOLOR_FORCE", "1"));
    assert!(!coloured("NO_COLOR", "1"));
    assert!(!coloured("TERM", "xterm"), "a pipe is no terminal");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let project = Project::new(&[]);
    let mut child = project.command("schema").stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn the_published_schema_accepts_the_example_and_refuses_slips() {
    let output = Project::new(&[]).command("schema workflow").output().unwrap();
    let schema: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let step = |step: serde_json::Value| serde_json::json!({"onward": 1, "steps": [step]});
    for good in [
        serde_json::json!({"id": "a", "run": true}),
        serde_json::json!({"id": "a", "agent": "claude", "prompt": "x", "timeout": "1h30m"}),
        serde_json::json!({"id": "a", "gate": "x", "shows": ["y"], "stop": []}),
        serde_json::json!({"id": "a", "call": "a.b", "with": {"x": [1]}}),
        serde_json::json!({"id": "a", "each": ["x"], "as": "y", "workflow": "b.yaml"}),
        serde_json::json!({"id": "a", "repeat": {"max": "{{ inputs.n }}"}, "steps": [
            {"id": "b", "run": "x", "effect": "outside", "probe": {"run": "y"}},
        ]}),
    ] {
        let file = step(good);
        assert!(validator.is_valid(&file), "{:?}", validator.iter_errors(&file).next());
    }
    for bad in [
        serde_json::json!({"id": "a"}),
        serde_json::json!({"run": "x"}),
        serde_json::json!({"id": "a", "rnu": "x"}),
        serde_json::json!({"id": "a", "run": "x", "gate": "y"}),
        serde_json::json!({"id": "a", "run": "x", "shows": ["y"]}),
        serde_json::json!({"id": "a", "agent": "claude"}),
        serde_json::json!({"id": "a", "run": "x", "timeout": "30"}),
        serde_json::json!({"id": "a", "run": "x", "each": ["b"], "repeat": {"max": 1}}),
        serde_json::json!({"id": "a", "run": "x", "as": "b"}),
        serde_json::json!({"id": "a", "steps": [{"id": "b", "rnu": "x"}]}),
        serde_json::json!({"id": "a", "run": "x", "retry": {"on": ["crashed"]}}),
        serde_json::json!({"id": "a", "run": "x", "probe": {"run": "y"}}),
    ] {
        let file = step(bad);
        assert!(!validator.is_valid(&file), "{file}");
    }
    assert!(
        !validator.is_valid(&serde_json::json!({"onward": 2, "steps": [{"id": "a", "run": "x"}]}))
    );
    assert!(!validator.is_valid(&serde_json::json!({"onward": 1, "stpes": []})));
}
