//! What the user's own shell offers at Tab, in the real shells.

use std::process::Command;

use crate::bench::{Bench, id};

/// A project with two runs of different steps, and their ids: the last one first.
fn finished() -> (Bench, [String; 2]) {
    let bench = Bench::new("  - { id: alpha, run: 'true' }\n");
    let last = || id(&bench.project().runs().unwrap().remove(0).dir);
    bench.write("v.yaml", &bench.text("w.yaml").replace("alpha", "beta"));
    bench.exits("run v.yaml", 0);
    let older = last();
    bench.exits("run w.yaml", 0);
    let runs = [last(), older];
    (bench, runs)
}

/// What a shell without the user's own settings prints.
fn prints(bench: &Bench, shell: &[&str], script: &str) -> String {
    let usual = bench.command("version");
    let mut command = Command::new(shell[0]);
    command.args(&shell[1..]).args(["-c", script]).current_dir(&bench.root);
    command.envs(usual.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = command.output().unwrap_or_else(|error| panic!("{}: {error}", shell[0]));
    String::from_utf8(output.stdout).unwrap()
}

/// The same questions to every shell; `offers` answers with what it offers for a line.
fn completes([run, older]: &[String; 2], offers: impl Fn(&str) -> String) {
    let commands = offers("onward ");
    assert!(commands.contains("resume") && commands.contains("watch"), "{commands}");
    for hidden in ["supervise", "snapshot", "stand-in", "rehearsed"] {
        assert!(!commands.contains(hidden), "{commands}");
    }
    assert!(offers("onward resume ").contains(run));
    assert!(offers("onward log --step ").contains("alpha"));
    let steps = offers(&format!("onward log {older} --step "));
    assert!(steps.contains("beta") && !steps.contains("alpha"), "{steps}");
    assert!(offers("onward resume --accept dirty").contains("dirty-tree"));
    assert!(!offers("onward sup").contains("supervise"));
    assert!(offers("onward man res").contains("rescue"));
}

#[test]
fn d_bash_completes_runs_steps_codes_and_no_internal_command() {
    let (bench, runs) = finished();
    completes(&runs, |line| {
        let words = line.strip_suffix(' ').map_or(line.to_owned(), |it| format!("{it} ''"));
        let count = words.split(' ').count() - 1;
        let script = format!(
            "source <(onward completions bash); COMP_WORDS=({words}); COMP_CWORD={count}; \
             COMP_TYPE=9; _clap_complete_onward onward '' ''; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        );
        prints(&bench, &["bash", "--noprofile", "--norc"], &script)
    });
}

/// The shell's own menu is left out: what would be in it is printed.
#[test]
fn d_zsh_completes_runs_steps_codes_and_no_internal_command() {
    let (bench, runs) = finished();
    completes(&runs, |line| {
        let words = line.strip_suffix(' ').map_or(line.to_owned(), |it| format!("{it} ''"));
        let count = words.split(' ').count();
        let script = format!(
            "compdef() {{ : }}; _describe() {{ print -l -- ${{(P)@[-1]}} }}; \
             source <(onward completions zsh); words=({words}); CURRENT={count}; \
             _clap_dynamic_completer_onward"
        );
        prints(&bench, &["zsh", "-f"], &script)
    });
}

#[test]
fn d_fish_completes_runs_steps_codes_and_no_internal_command() {
    let (bench, runs) = finished();
    completes(&runs, |line| {
        let script = format!("onward completions fish | source; complete -C '{line}'");
        prints(&bench, &["fish", "--no-config"], &script)
    });
}
