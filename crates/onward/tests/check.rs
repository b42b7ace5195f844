//! `onward check`, end to end: words, data and exit codes.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

#[expect(dead_code, reason = "other tests use the rest")]
#[path = "support/program.rs"]
mod program;

use std::{
    fs::{self, File},
    path::Path,
    process::{Command, Output},
};

use program::{Said, bare};
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
        bare(self.path(), arguments)
    }

    /// Standard output, standard error and exit code as one text.
    #[must_use]
    fn onward(&self, arguments: &str) -> String {
        shown(&self.command(arguments).output().unwrap())
    }
}

fn shown(output: &Output) -> String {
    format!("{}\n", Said::of(output).shown())
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
      - { id: fix, when: steps.review.result.verdict == 'REJECT', agent: writer, prompt: "…" }
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
    insta::assert_snapshot!(example().onward("check flow.yaml"), @r#"
    release-notes: 5+ steps, more from draft and qa
    ├─ facts      agent writer
    ├─ approve    gate approve/revise/cancel    needs facts
    ├─ draft      steps, each writer, worktree  needs approve
    │  └─ write   agent writer
    ├─ qa         steps, up to 5 times          needs draft
    │  ├─ review  agent writer
    │  └─ fix     agent writer, when            needs review
    └─ publish    run, outside                  needs qa
    --- stderr
    --- exit 0
    "#);
}

#[test]
fn a_good_file_is_drawn_for_mermaid() {
    insta::assert_snapshot!(example().onward("check flow.yaml --mermaid"), @r#"
    flowchart TD
      n1("facts")
      n2{"approve"}
      subgraph n3["draft (each writer)"]
        n4("write")
      end
      subgraph n5["qa (up to 5 times)"]
        n6("review")
        n7("fix")
        n6 --> n7
      end
      n8["publish"]
      n1 --> n2
      n2 --> n3
      n3 --> n5
      n5 --> n8
    --- stderr
    --- exit 0
    "#);
}

#[test]
fn quiet_says_nothing_about_a_good_file() {
    insta::assert_snapshot!(example().onward("check -q flow.yaml"), @r#"
    --- stderr
    --- exit 0
    "#);
}

#[test]
fn a_directory_can_be_given_apart() {
    let project = Project::new(&[("a/b/flow.yaml", SUB)]);
    insta::assert_snapshot!(project.onward("--cwd a/b check flow.yaml"), @r#"
    flow: 1 step
    └─ greet  run
    --- stderr
    --- exit 0
    "#);
}

#[test]
fn scripts_get_one_object() {
    insta::assert_snapshot!(example().onward("check flow.yaml --json"), @r#"
    {
      "file": "flow.yaml",
      "more": true,
      "ok": true,
      "problems": [],
      "schema": "onward.check/1",
      "steps": 5
    }
    --- stderr
    --- exit 0
    "#);
    let bad = Project::flow("onward: 1\nsteps:\n  - { id: a, rnu: x }\n");
    insta::assert_snapshot!(bad.onward("check --json flow.yaml"), @r#"
    {
      "file": "flow.yaml",
      "more": false,
      "ok": false,
      "problems": [
        {
          "column": 14,
          "file": "flow.yaml",
          "hint": "did you mean `run`?",
          "line": 3,
          "message": "a step has no key `rnu`",
          "severity": "error"
        }
      ],
      "schema": "onward.check/1",
      "steps": 0
    }
    --- stderr
    --- exit 2
    "#);
}

#[test]
fn a_misspelt_key_is_shown_with_its_line_and_the_word_that_was_meant() {
    let project = Project::flow("onward: 1\nsteps:\n  - id: build\n    rnu: make\n");
    insta::assert_snapshot!(project.onward("check flow.yaml"), @r#"
    --- stderr
    error: a step has no key `rnu`
     --> flow.yaml:4:5
      |
    4 |     rnu: make
      |     ^
    help: did you mean `run`?

    error: `flow.yaml` cannot be run: 1 error
    --- exit 2
    "#);
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
    insta::assert_snapshot!(project.onward("check flow.yaml"), @r#"
    --- stderr
    error: these steps wait for each other: a -> c -> b -> a
     --> flow.yaml:3:5
      |
    3 |   - { id: a, run: x, needs: [c] }
      |     ^
    help: a -> b reads: a needs b; a step without `needs` needs the one before it

    error: `flow.yaml` cannot be run: 1 error
    --- exit 2
    "#);
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
    insta::assert_snapshot!(project.onward("check flow.yaml"), @r#"
    --- stderr
    error: the workflow declares no input `topik`
     --> flow.yaml:8:22
      |
    8 |       echo {{ inputs.topik }}
      |                      ^
    help: did you mean `topic`?

    error: `lint` need not be done when this is looked at
     --> flow.yaml:9:21
      |
    9 |       echo {{ steps.lint.stdout }}
      |                     ^
    help: give `test` `needs: [lint]`

    error: `flow.yaml` cannot be run: 2 errors
    --- exit 2
    "#);
}

#[test]
fn a_value_in_arithmetic_is_refused_and_one_in_quotes_is_not() {
    let project = Project::flow(
        "onward: 1
inputs: { title: { type: string } }
steps:
  - id: commit
    run: git commit -m \"{{ inputs.title }}\" && echo $(({{ inputs.title }}))
",
    );
    insta::assert_snapshot!(project.onward("check flow.yaml"), @r#"
    --- stderr
    error: a value in arithmetic is not safe
     --> flow.yaml:5:59
      |
    5 |     run: git commit -m "{{ inputs.title }}" && echo $(({{ inputs.title }}))
      |                                                           ^
    help: put it into a variable first, `x={{ … }}` on a line of its own, and use `$x`

    error: `flow.yaml` cannot be run: 1 error
    --- exit 2
    "#);
}

#[test]
fn a_fault_of_the_yaml_has_a_place() {
    let project = Project::flow("onward: 1\nsteps:\n  - id: a\n    run: echo: b: c\n");
    insta::assert_snapshot!(project.onward("check flow.yaml"), @r#"
    --- stderr
    error: not valid YAML: mapping values are not allowed in this context
     --> flow.yaml:4:14
      |
    4 |     run: echo: b: c
      |              ^
    help: check the indentation, or quote the text: it holds a `: `

    error: `flow.yaml` cannot be run: 1 error
    --- exit 2
    "#);
}

#[test]
fn a_problem_of_an_included_file_is_shown_there() {
    let project = Project::new(&[
        ("d/flow.yaml", "onward: 1\nsteps: [{ id: s, workflow: sub/other.yaml }]\n"),
        ("d/sub/other.yaml", "onward: 1\nsteps: [{ id: a, gate: Go on?, stop: [rejct] }]\n"),
    ]);
    insta::assert_snapshot!(project.onward("check d/flow.yaml"), @r#"
    --- stderr
    error: `rejct` is not an option of this gate
     --> d/sub/other.yaml:2:39
      |
    2 | steps: [{ id: a, gate: Go on?, stop: [rejct] }]
      |                                       ^
    help: did you mean `reject`?

    error: `d/flow.yaml` cannot be run: 1 error
    --- exit 2
    "#);
}

#[test]
fn an_included_workflow_gets_its_inputs() {
    let flow = "onward: 1\nsteps: [{ id: s, workflow: sub.yaml, with: { hwo: x } }]\n";
    let project = Project::new(&[("flow.yaml", flow), ("sub.yaml", SUB)]);
    insta::assert_snapshot!(project.onward("check flow.yaml"), @r#"
    --- stderr
    error: the workflow needs its input `who`
     --> flow.yaml:2:28
      |
    2 | steps: [{ id: s, workflow: sub.yaml, with: { hwo: x } }]
      |                            ^
    help: give it: `with: { who: … }`

    error: the workflow has no input `hwo`
     --> flow.yaml:2:46
      |
    2 | steps: [{ id: s, workflow: sub.yaml, with: { hwo: x } }]
      |                                              ^
    help: did you mean `who`?

    error: `flow.yaml` cannot be run: 2 errors
    --- exit 2
    "#);
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
    insta::assert_snapshot!(project.onward("check flow.yaml"), @r#"
    flow: 2 steps
    ├─ api   agent claude
    └─ docs  agent codex
    --- stderr
    warning: `api` and `docs` may run at the same time and edit one tree
     --> flow.yaml:4:5
      |
    4 |   - { id: docs, agent: codex, prompt: Write the docs., needs: [] }
      |     ^
    help: `api` is in line 3; settle it with `worktree: true`, `edits: false` or `needs`

    `flow.yaml` can be run, with 1 warning
    --- exit 0
    "#);
}

#[test]
fn a_file_for_a_newer_onward_says_so() {
    let project = Project::flow("onward: 7\nnew_things: true\n");
    insta::assert_snapshot!(project.onward("check flow.yaml"), @r#"
    --- stderr
    error: the file is in version 7 of the language
     --> flow.yaml:1:9
      |
    1 | onward: 7
      |         ^
    help: this onward reads version 1: update onward

    error: `flow.yaml` cannot be run: 1 error
    --- exit 2
    "#);
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
    let message = "cannot read `flow.yaml`: no such file or directory";
    let hint = "check the path; relative ones start at `--cwd`, or here; known here: agent-memory,";
    let said = project.onward("check flow.yaml");
    let start = format!("--- stderr\nerror: {message}\nhelp: {hint}");
    assert!(said.starts_with(&start) && said.ends_with("--- exit 1\n"), "{said}");
    let said = project.onward("check flow.yaml --json");
    for part in ["\"cannot_read\"", "\"onward.error/1\"", message, hint] {
        assert!(said.contains(part), "{said}");
    }
    assert!(said.ends_with("--- stderr\n--- exit 1\n"), "{said}");
}

#[test]
fn a_directory_is_no_workflow() {
    let project = Project::new(&[("dir/x", "")]);
    insta::assert_snapshot!(project.onward("check dir"), @r#"
    --- stderr
    error: cannot read `dir`: is a directory
    --- exit 1
    "#);
}

#[test]
fn a_command_line_that_is_none_is_answered_in_the_same_way() {
    let project = Project::new(&[]);
    insta::assert_snapshot!(project.onward("check --josn flow.yaml"), @r#"
    --- stderr
    error: unexpected argument '--josn' found

      tip: a similar argument exists: '--json'

    Usage: onward check --json <FILE>

    For more information, try '--help'.
    --- exit 2
    "#);
    insta::assert_snapshot!(project.onward("chekc flow.yaml --json"), @r#"
    {
      "code": "usage",
      "hint": "see `onward --help`",
      "message": "unrecognized subcommand 'chekc'",
      "schema": "onward.error/1"
    }
    --- stderr
    --- exit 2
    "#);
}

#[test]
fn a_huge_file_is_refused_unread() {
    let project = Project::new(&[]);
    let file = File::create(project.path().join("huge.yaml")).unwrap();
    file.set_len(100 << 20).unwrap();
    insta::assert_snapshot!(project.onward("check huge.yaml"), @r#"
    --- stderr
    error: the file has 104857600 bytes; a workflow has at most 8 MiB
     --> huge.yaml:1:1
    help: is this the right file?

    error: `huge.yaml` cannot be run: 1 error
    --- exit 2
    "#);
}

#[test]
fn junk_is_answered_with_a_place_and_a_hint() {
    let project = Project::new(&[]);
    let check = |bytes: &[u8]| {
        fs::write(project.path().join("junk"), bytes).unwrap();
        project.onward("check junk")
    };
    insta::assert_snapshot!(check(b"\x7fELF\x02\x01\0\0"), @r#"
    --- stderr
    error: the file is not text: here is a NUL byte
     --> junk:1:7
    help: a workflow is YAML in UTF-8; is this the right file?

    error: `junk` cannot be run: 1 error
    --- exit 2
    "#);
    insta::assert_snapshot!(check(b"onward: 1\nname: \xff\xfe\n"), @r#"
    --- stderr
    error: the file is not text: here is a byte that is not UTF-8
     --> junk:2:7
    help: a workflow is YAML in UTF-8; is this the right file?

    error: `junk` cannot be run: 1 error
    --- exit 2
    "#);
    insta::assert_snapshot!(check(b""), @r#"
    --- stderr
    error: the file is empty
     --> junk:1:1
    help: `onward schema workflow` has all that can stand here; `onward init` writes an example

    error: `junk` cannot be run: 1 error
    --- exit 2
    "#);
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
fn every_mistake_of_a_newcomer_comes_with_what_to_write() {
    for (steps, help) in [
        ("steps: []\n", "such as `steps: [{ id: hello, run: echo hello }]`"),
        ("steps: { a: { run: x } }\n", "begin each item on a line of its own, with `- `"),
        ("steps:\n  - id: a\n   run: x\n", "check the indentation"),
        ("steps:\n  - { id: a, agent: claude }\n", "add `prompt:` with what the agent is to do"),
        ("steps:\n  - { id: a, run: [1] }\n", "write it in quotes"),
        ("steps:\n  - { id: a, run: 'echo {{ run.id' }\n", "a value is written `{{ name }}`"),
        ("steps:\n  - { id: a, run: 'echo {{ run.id | nope }}' }\n", "there are: "),
        ("steps:\n  - { id: a, run: x, needs: [other] }\n", "there are: a"),
        ("steps:\n  - { id: a, workflow: no.yaml }\n", "paths begin at the directory"),
        (
            "steps:\n  - { id: a, gate: x, options: [yes, '-x'] }\n",
            "begin it with another character",
        ),
        ("steps:\n  - { id: a, call: my.thing }\n", "only built-in workflows call"),
        ("steps:\n  - { id: a, call: conference.transfr }\n", "did you mean `conference.transfer`"),
        ("steps:\n  - { id: a, agent: cursor, prompt: x }\n", "define [agents.cursor]"),
        (
            "steps:\n  - { id: a, run: \"sh -c 'echo {{ run.id }}'\" }\n",
            "give it to the script as an argument: `sh -c 'echo \"$1\"' _ {{ … }}`",
        ),
    ] {
        let project = Project::flow(&format!("onward: 1\n{steps}"));
        let said = project.onward("check flow.yaml");
        assert!(said.contains("error: ") && said.contains(help), "{steps}{said}");
        assert!(said.trim_end().ends_with("--- exit 2"), "{said}");
    }
    // A name that neither the file nor the configuration knows is an error beside others too.
    let project =
        Project::flow("onward: 1\nsteps:\n  - { id: a, agent: claud, prompt: x, k: 1 }\n");
    let said = project.onward("check flow.yaml");
    assert!(said.contains("error: there is no agent `claud`"), "{said}");
}
