//! Limits of an earlier life bind no later one.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use crate::bench::{Bench, id, sees_nobody_left};

/// `onward` with these arguments, under a shell that first says this.
fn under(bench: &Bench, first: &str, arguments: &str) -> Output {
    let program = bench.command(arguments);
    let words: Vec<String> = std::iter::once(program.get_program())
        .chain(program.get_args())
        .map(|it| format!("'{}'", it.to_str().unwrap()))
        .collect();
    let script = format!("{first}; exec {}", words.join(" "));
    let mut command = Command::new("bash");
    command.args(["-c", &script]).current_dir(&bench.root);
    for (name, value) in program.get_envs().filter_map(|(name, value)| Some((name, value?))) {
        command.env(name, value);
    }
    command.output().unwrap()
}

/// Lines that a later version may write, until the supervisor's log is so long.
fn fill(log: &Path, bytes: usize) {
    let mut text = fs::read(log).unwrap();
    while text.len() < bytes {
        let body = format!("{{\"kind\":\"padding\",\"text\":\"{}\",", "x".repeat(100));
        let crc = crc32fast::hash(body.as_bytes());
        text.extend_from_slice(format!("{body}\"crc\":\"{crc:08x}\"}}\n").as_bytes());
    }
    fs::write(log, text).unwrap();
}

#[test]
fn e10_a_log_without_room_for_an_end_lets_nothing_begin() {
    for more_kib in [1, 2, 3, 12] {
        let bench = Bench::new(
            "  - { id: go, run: 'LOG; test -e go' }\n\
             \x20 - { id: a, each: [a, b, c, d, e, f, g, h], run: 'LOG' }\n",
        );
        bench.exits("run w.yaml", 10);
        let run = bench.project().runs().unwrap().remove(0).dir;
        sees_nobody_left(&run);
        fill(&run.join("exits.jsonl"), 300 << 10);
        bench.write("go", "");
        let said = under(&bench, &format!("ulimit -f {}", 301 + more_kib), "resume --no-input");
        assert!(!said.status.success(), "{said:?}");
        sees_nobody_left(&run);
        bench.exits("resume --no-input", 0);
        for item in ["a", "b", "c", "d", "e", "f", "g", "h"] {
            assert_eq!(bench.ran(&format!("a[{item}]")).len(), 1, "{item} with {more_kib} KiB");
        }
        bench.is_proved(&run);
    }
}

#[test]
fn e10_a_supervisor_that_was_started_under_a_file_size_limit_is_replaced() {
    let bench = Bench::new(
        "  - { id: a, each: [a, b, c, d, e, f, g, h, i, j, k, l], run: 'echo {{ item }} >> ran; \
         echo x' }\n  - { id: z, run: 'echo z >> ran' }\n",
    );
    assert!(!under(&bench, "ulimit -f 2", "run w.yaml").status.success());
    let run = bench.project().runs().unwrap().remove(0).dir;
    bench.exits(&format!("resume --no-input {}", id(&run)), 0);
    let ran = bench.text("ran");
    assert_eq!(ran.lines().filter(|it| *it == "z").count(), 1, "{ran}");
    sees_nobody_left(&run);
}
