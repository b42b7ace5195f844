//! Secrets of twenty kinds go through a run, and no byte that onward wrote holds one.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{
    bench::{Bench, id},
    support::program::git,
};

const PEM: &str = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n\
    BKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n-----END PRIVATE KEY-----";

/// Variables with what of them is secret.
const KINDS: [(&str, &str, &str); 16] = [
    ("API_KEY", "sk-q7w8e9r0t1y2", "sk-q7w8e9r0t1y2"),
    ("X_TOKEN", "tok-5f0c9a77d1", "tok-5f0c9a77d1"),
    ("CLIENT_SECRET", "cs/+4411==zz", "cs/+4411==zz"),
    ("DB_PASSWORD", "hunter22-9", "hunter22-9"),
    ("DB_PASS", "p4ss-of-db", "p4ss-of-db"),
    ("DB_PWD", "pwd-77-of-db", "pwd-77-of-db"),
    ("GH_PAT", "pat-0a1b2c3d", "pat-0a1b2c3d"),
    ("DATABASE_URL", "postgres://ann:urlpass88@db:5432/x", "urlpass88"),
    ("SENTRY_DSN", "https://dsnpart991@sentry.example/1", "dsnpart991"),
    ("NPM_AUTH", "npmauth-1234", "npmauth-1234"),
    ("SESSION_COOKIE", "sid=cookie5566", "cookie5566"),
    ("SIGNING_PASSPHRASE", "correct horse 42 staple", "correct horse 42 staple"),
    ("AWS_CREDENTIALS", "awscred-aabbcc", "awscred-aabbcc"),
    ("SOME_JWT", "jwt-part-99887", "jwt-part-99887"),
    ("ODD_SECRET", "quo\"te\\back7", "quo\\\"te"),
    ("TLS_KEY", PEM, "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC"),
];
/// Known by their shape, in no variable.
const SHAPES: [&str; 2] = ["ghp_0123456789abcdefghijABCDEFGHIJ456789", "AKIA0123456789ABCDEF"];
/// Given to a step in the workflow file.
const OF_STEP: &str = "stepenv-445566";

/// Every file below a directory that holds a text. What a person, or a step, put there is theirs.
fn holders(dir: &Path, text: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(holders(&path, text));
        } else if entry.file_name() != "workflow.yaml" && entry.file_type().unwrap().is_file() {
            let bytes = fs::read(&path).unwrap();
            if bytes.windows(text.len()).any(|it| it == text.as_bytes()) {
                found.push(path);
            }
        }
    }
    found
}

fn base64(text: &str) -> String {
    let mut command = std::process::Command::new("base64");
    let mut child = command
        .arg("-w0")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(child.stdin.as_mut().unwrap(), text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim_end_matches('=').to_owned()
}

fn clean(bench: &Bench, shown: &str, when: &str) {
    // A supervisor leaves a moment after its engine, and takes a file with it.
    let runs = bench.project().runs().unwrap();
    for run in &runs {
        crate::bench::sees_nobody_left(&run.dir);
    }
    let names = KINDS.iter().map(|it| (it.0, it.2.to_owned()));
    // Of an encoding the ends depend on what is around it.
    let encoded = ["API_KEY", "GH_PAT", "DB_PASS"].map(|name| {
        let value = KINDS.iter().find(|it| it.0 == name).unwrap().1;
        (name, base64(value)[..12].to_owned())
    });
    let shapes = SHAPES.iter().map(|it| ("a shape", (*it).to_owned()));
    let all = names.chain(encoded).chain(shapes).chain([("of a step", OF_STEP.to_owned())]);
    for (name, secret) in all {
        let found = holders(&bench.path(".onward"), &secret);
        assert!(found.is_empty(), "{when}: {name} in {found:?}");
        assert!(!shown.contains(&secret), "{when}: {name} is shown: {shown}");
    }
}

/// Says everything on both streams, in its result, as a key of it, and in base64; fails if asked.
const SAYS: &str = "    run: |\n      LOG\n      cat said.txt\n      cat said.txt >&2\n      \
    for v in API_KEY GH_PAT DB_PASS; do eval \"printf %s \\\"\\$$v\\\"\" | base64; done\n      \
    for v in API_KEY GH_PAT DB_PASS; do eval \"printf xx%s \\\"\\$$v\\\"\" | base64; done\n      \
    printf 'hal'; printf '%.6s' \"$X_TOKEN\"; sleep 0.05\n      \
    printf '%s\\n' \"${X_TOKEN#??????}\"\n      \
    printf '{\"%s\":\"%s\"}' \"$X_TOKEN\" \"$GH_PAT\" > $ONWARD_RESULT\n";

fn said() -> String {
    let values = KINDS.iter().map(|it| it.1);
    values.chain(SHAPES).chain([OF_STEP]).fold(String::new(), |all, it| all + it + "\n")
}

fn bench() -> Bench {
    let bench = Bench::new("");
    bench.workflow(
        "w.yaml",
        "steps:",
        &format!(
            "  - id: one\n    env: {{ STEP_TOKEN: {OF_STEP} }}\n{SAYS}\
             \x20 - id: two\n    run: 'LOG; echo {{{{ steps.one.stdout }}}} \
             {{{{ steps.one.result }}}} > two.txt'\n    writes: [two.txt]\n\
             \x20 - id: three\n    env: {{ STEP_TOKEN: {OF_STEP} }}\n{SAYS}      test -e go\n\
             \x20 - {{ id: ask, gate: 'Is {{{{ steps.three.stdout }}}} fine?' }}\n"
        ),
    );
    // It lies in the project, as a file that a person left there.
    bench.write("said.txt", &said());
    bench
}

fn onward(bench: &Bench, arguments: &str, with_secrets: bool) -> (Option<i32>, String) {
    let mut command = bench.command(arguments);
    if with_secrets {
        command.envs(KINDS.iter().map(|it| (it.0, it.1)));
    }
    let output = command.output().unwrap();
    let shown = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&shown).into_owned())
}

#[test]
fn c5_no_byte_that_onward_wrote_holds_a_secret() {
    let bench = bench();
    let (code, shown) = onward(&bench, "run w.yaml --no-input", true);
    assert_eq!(code, Some(10), "{shown}");
    clean(&bench, &shown, "run");
    let run = bench.project().runs().unwrap().remove(0).dir;
    let journal = crate::bench::journal(&run);
    for name in ["API_KEY", "DATABASE_URL", "STEP_TOKEN", "token"] {
        let mark = format!("[redacted:{name}]");
        assert!(journal.contains(&mark), "{mark} is not in {journal}");
    }
    // Another environment: no value is known any more, and every one is found.
    bench.write("go", "");
    let (code, shown) = onward(&bench, "resume --no-input --yes", false);
    assert_eq!(code, Some(11), "{shown}");
    clean(&bench, &shown, "resume");
    for command in ["status", "log", "why three", "plan"] {
        let (_, shown) = onward(&bench, command, false);
        clean(&bench, &shown, command);
    }
    let (_, shown) = onward(&bench, &format!("log {} --step three", id(&run)), false);
    clean(&bench, &shown, "log --step");
}

#[test]
fn c5_an_output_that_is_named_after_a_secret_does_not_count() {
    let bench = Bench::new("  - { id: one, run: 'LOG; touch out-$X_TOKEN', writes: ['out-*'] }\n");
    let (code, shown) = onward(&bench, "run w.yaml", true);
    assert_eq!(code, Some(10), "{shown}");
    assert!(shown.contains("the name of an output holds a secret ($X_TOKEN)"), "{shown}");
    clean(&bench, &shown, "run");
}

#[test]
fn c5_an_input_that_looks_like_a_token_is_refused() {
    let bench = Bench::new("");
    let head = "inputs: { word: { type: string, default: none } }\nsteps:";
    bench.workflow("w.yaml", head, "  - { id: one, run: LOG }\n");
    let said = bench.exits(&format!("run w.yaml --input word={}", SHAPES[0]), 2);
    assert!(said.err.contains("looks like"), "{said:?}");
    assert!(!bench.path(".onward/runs").exists() || bench.project().runs().unwrap().is_empty());
}

#[test]
fn c5_what_a_run_writes_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    fn check(dir: &Path) {
        for entry in fs::read_dir(dir).unwrap().flatten() {
            let mode = entry.metadata().unwrap().permissions().mode() & 0o077;
            assert_eq!(mode, 0, "{}", entry.path().display());
            if entry.file_type().unwrap().is_dir() {
                check(&entry.path());
            }
        }
    }
    let bench = Bench::new(
        "  - { id: one, run: 'LOG; echo said', writes: [] }\n\
         \x20 - { id: two, edits: true, run: 'LOG; echo two > two' }\n",
    );
    git(&bench.root, &["init", "-q", "."]);
    git(&bench.root, &["add", "w.yaml"]);
    bench.exits("run w.yaml", 0);
    assert!(bench.project().runs().unwrap().remove(0).dir.join("git/index").exists());
    check(&bench.path(".onward/runs"));
}
