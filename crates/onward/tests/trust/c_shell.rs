//! Values, secrets and escapes of strangers are data.

use crate::{
    bench::{Bench, id},
    support::terminal::Terminal,
};

/// What an agent or a file's name could say to a terminal, and how it is shown.
const HOSTILE: &str = "\\033[2J\\033[31mAPPROVED\\302\\233H\\342\\200\\256\\rgone";

fn is_harmless(text: &str, case: &str) {
    let is_hostile = |c: char| {
        (c.is_control() && !matches!(c, '\n' | '\t' | '\r' | '\x1b' | '\x07'))
            || matches!(c, '\u{202a}'..='\u{202e}')
    };
    assert!(!text.contains(is_hostile), "{case}: {text:?}");
    for bad in ["\x1b[2J", "\x1b[31mAPPROVED", "\rgone"] {
        assert!(!text.contains(bad), "{case}: {text:?}");
    }
}

#[test]
fn c6_what_an_agent_wrote_cannot_speak_to_the_terminal() {
    let bench = Bench::new("");
    bench.workflow(
        "w.yaml",
        "steps:",
        &format!(
            "  - {{ id: say, run: 'LOG; printf \"{HOSTILE}\"; printf \"{HOSTILE}\" >&2' }}\n\
             \x20 - {{ id: ask, gate: 'Look: {{{{ steps.say.stdout }}}}' }}\n"
        ),
    );
    bench.exits("run w.yaml --no-input", 11);
    let run = id(&bench.project().runs().unwrap().remove(0).dir);
    for command in ["status", "log", "plan", "log --step say", "list"] {
        let arguments = if command.starts_with("log --step") {
            format!("log {run} --step say")
        } else if command == "list" {
            command.to_owned()
        } else {
            format!("{command} {run}")
        };
        let shown = Terminal::start(&bench, &arguments).exits(0);
        is_harmless(&shown, command);
        if command != "log --step say" {
            let said = bench.exits(&arguments, 0);
            is_harmless(&said.out, command);
            is_harmless(&said.err, command);
        }
    }
    // A program gets the bytes as they are.
    let said = bench.exits(&format!("log {run} --step say"), 0);
    assert!(said.out.contains("\x1b[2J\x1b[31mAPPROVED\u{9b}H\u{202e}\rgone"), "{said:?}");
    let mut terminal = Terminal::start(&bench, "run w.yaml");
    terminal.shows("Ctrl-D");
    terminal.types("\x04");
    is_harmless(&terminal.exits(11), "the gate");
}

#[test]
fn c4_a_value_is_never_shell_text() {
    let hostile = "$(touch pwned)`touch pwned`'\"; touch pwned; #\\";
    for (run, shown) in [
        ("printf %s {{ inputs.x }}", hostile.to_owned()),
        ("printf %s \"{{ inputs.x }}\"", hostile.to_owned()),
        ("printf %s '{{ inputs.x }}'", hostile.to_owned()),
        ("printf %s \"{{ inputs.x | sh_quote }}\"", hostile.to_owned()),
        ("printf %s \"$(printf %s \"{{ inputs.x }}\")\"", hostile.to_owned()),
        ("cat <<EOF\n\tEOF\n{{ inputs.x }}\nEOF", format!("\tEOF\n{hostile}\n")),
        ("# {{ inputs.x }}\nprintf ok", "ok".to_owned()),
    ] {
        let bench = Bench::new("");
        let lines = run.lines().fold(String::new(), |all, line| all + "      " + line + "\n");
        let steps =
            format!("  - id: a\n    check: test -n \"{{{{ inputs.x }}}}\"\n    run: |\n{lines}");
        bench.workflow("w.yaml", "inputs: { x: { type: string } }\nsteps:", &steps);
        let mut command = bench.command("run w.yaml --input");
        let output = command.arg(format!("x={hostile}")).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{run}: {output:?}");
        assert!(!bench.path("pwned").exists(), "{run}");
        let run_id = id(&bench.project().runs().unwrap().remove(0).dir);
        let said = bench.exits(&format!("log {run_id} --step a"), 0);
        assert_eq!(said.out, shown, "{run}");
    }
    for run in ["echo \\{{ inputs.x }}", "echo ${{ inputs.x }}", "echo $(({{ inputs.x }}))"] {
        let bench = Bench::new("");
        let steps = format!("  - id: a\n    run: |\n      {run}\n");
        bench.workflow("w.yaml", "inputs: { x: { type: string } }\nsteps:", &steps);
        let said = bench.exits("check w.yaml", 2);
        assert!(said.err.contains("is not safe"), "{run}: {said:?}");
    }
}

#[test]
fn c4_a_changed_value_makes_a_step_stale_and_the_same_one_does_not() {
    let bench = Bench::new(
        "  - { id: a, run: 'LOG; echo \"{{ read_text(\"x\") }}\"' }\n\
         \x20 - { id: b, run: 'test -e go' }\n",
    );
    bench.write("x", "it is");
    bench.exits("run w.yaml", 10);
    bench.exits("resume --no-input", 10);
    assert_eq!(bench.ran("a"), [1]);
    bench.write("x", "it was");
    bench.write("go", "");
    bench.onward("resume --no-input --yes");
    assert_eq!(bench.ran("a"), [1, 2]);
}
