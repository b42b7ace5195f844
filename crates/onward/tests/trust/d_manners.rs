//! Manners: the terminal that closes, the counter, what follows, what is quiet, and
//! the shapes that scripts read.

use std::{fs, process::Stdio};

use onward_engine::care::harness::until;
use serde_json::Value;

use crate::{
    bench::{Bench, journal, sees, watched},
    support::terminal::Terminal,
};

/// A step that waits for the file `go`, with one before and one after it.
const WAITS: &str = "  - { id: a, run: 'LOG; echo first' }\n\
    \x20 - { id: b, run: 'LOG; echo one; echo > began; \
    while ! [ -e go ]; do sleep 0.05; done; echo two' }\n\
    \x20 - { id: c, run: LOG }\n";

fn run_of(bench: &Bench) -> std::path::PathBuf {
    bench.project().runs().unwrap().remove(0).dir
}

#[test]
fn d_closing_the_terminal_leaves_the_run_running() {
    let bench = Bench::new(WAITS);
    let terminal = Terminal::start(&bench, "run w.yaml");
    sees(&bench.path("began"));
    let mut child = terminal.hang_up();
    bench.write("go", "");
    let run = run_of(&bench);
    until("the run to end without its terminal", || {
        Ok(journal(&run).contains("\"kind\":\"run.ended\"").then_some(()))
    })
    .unwrap();
    assert!(!journal(&run).contains("run.paused"), "{}", journal(&run));
    child.wait().unwrap();
    bench.is_proved(&run);
}

#[test]
fn d_the_bar_counts_what_list_counts() {
    let bench = Bench::new(WAITS);
    let mut terminal = Terminal::start(&bench, "run w.yaml");
    sees(&bench.path("began"));
    terminal.shows("b  ");
    terminal.shows("1/3");
    let list = bench.exits("list --json", 0).json();
    assert_eq!(list["runs"][0]["counts"], serde_json::json!({"done": 1, "total": 3}), "{list:#}");
    bench.write("go", "");
    let shown = terminal.exits(0);
    assert!(shown.contains("completed: 3 steps"), "{shown}");
}

#[test]
fn d_a_running_step_is_followed_to_its_end() {
    let bench = Bench::new(WAITS);
    let (mut engine, run) = bench.start_run();
    sees(&bench.path("began"));
    let mut follow = bench.command("log --step b -f");
    let follow = follow.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // What a step printed is kept by its supervisor, a moment after it was printed.
    until("the first words of the step", || {
        let now = bench.exits("log --step b --json", 0).json();
        assert_eq!(now["ended"], Value::Bool(false), "{now:#}");
        Ok((now["stdout"] == "one\n").then_some(()))
    })
    .unwrap();
    bench.write("go", "");
    let output = follow.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "one\ntwo\n");
    engine.wait().unwrap();
    let said = bench.exits("log --step c", 0);
    assert!(said.err.contains("c, attempt 1, printed nothing"), "{said:?}");
    let said = bench.exits("log --step b --attempt 7", 2);
    assert!(said.err.contains("b has 1 attempt, not 7"), "{said:?}");
    drop(run);
}

#[test]
fn d_a_wrong_word_in_the_wizard_is_asked_for_again() {
    let bench = Bench::new("  - { id: a, run: 'true' }\n");
    let flags = "init --from conference --goal g --criteria good --allowed all --researchers 2 \
        --iterations 2 --rounds 1";
    let mut terminal = Terminal::start(&bench, flags);
    terminal.shows("(yes or no)? ");
    terminal.types("perhaps\n");
    terminal.shows("`perhaps` is not an answer here: type yes or no");
    terminal.shows("(yes or no)? ");
    terminal.types("no\n");
    terminal.exits(0);
    assert!(bench.path("conference.md").is_file());
}

#[test]
fn d_quiet_is_quiet_and_more_is_more() {
    let steps = "  - { id: fan, each: '{{ range(30) | list }}', run: 'true' }\n";
    let bench = Bench::new(steps);
    let said = bench.exits("run w.yaml -q", 0);
    assert_eq!((said.err.lines().count(), said.out.as_str()), (1, ""), "{said:?}");
    let said = bench.exits("run w.yaml", 0);
    assert!(said.err.contains("done  fan  all 30") && !said.err.contains("fan[7]"), "{said:?}");
    let said = bench.exits("run w.yaml -v", 0);
    assert!(said.err.contains("done  fan[7]"), "{said:?}");
}

#[test]
fn d_a_person_whom_the_environment_does_not_name_is_named_by_the_system() {
    let bench = Bench::new("  - { id: g, gate: Go? }\n");
    bench.exits("run w.yaml", 11);
    let said = bench.command("approve").env_remove("USER").output().unwrap();
    assert!(said.status.success(), "{said:?}");
    let number = rustix::process::getuid().as_raw().to_string();
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let own = users.lines().find(|line| line.split(':').nth(2) == Some(&number));
    let name = own.and_then(|line| line.split(':').next());
    let by = name.map_or(format!("user {number}"), str::to_owned);
    let journal = journal(&run_of(&bench));
    assert!(journal.contains(&format!("\"by\":\"{by}\"")), "{by}: {journal}");
}

#[test]
fn d_a_resume_can_be_left_in_the_background_and_attached_to() {
    let bench = Bench::new(WAITS);
    let (run, _) =
        bench.run_and_kill(|watch| !watch.in_flight().is_empty() && watch.finished().len() == 1);
    let said = bench.exits("resume --detach", 0);
    assert!(said.err.contains("continues in the background"), "{said:?}");
    bench.write("go", "");
    bench.exits("attach", 0);
    bench.is_proved(&run);
    let _ = watched(&run);
}

#[test]
fn d_a_run_that_comes_to_rest_at_once_is_not_left_in_the_background() {
    let bench = Bench::new("  - { id: g, gate: Go? }\n");
    bench.exits("run w.yaml --no-input", 11);
    let said = bench.exits("resume --detach", 11);
    assert!(said.err.contains("g waits for your answer: Go?"), "{said:?}");
    let said = bench.exits("resume --detach --json", 11).json();
    assert_eq!(said["status"], "waiting", "{said:#}");
}

#[test]
fn d_a_cancelled_run_says_so_and_asks_nothing_more() {
    let bench = Bench::new("  - { id: g, gate: Go? }\n");
    bench.exits("run w.yaml --no-input", 11);
    let said = bench.exits("cancel", 0);
    assert!(said.err.contains("cancelled; its files stay"), "{said:?}");
    let said = bench.exits("list", 0);
    assert!(said.out.contains("cancelled") && !said.out.contains("needs you"), "{said:?}");
    let said = bench.exits("approve g", 1);
    assert!(said.err.contains("gate `g` asks no more: the run was cancelled"), "{said:?}");
    let said = bench.exits("cancel", 17);
    assert!(said.err.contains("the run was cancelled already"), "{said:?}");
}

#[test]
fn d_every_template_of_init_can_be_checked_and_its_settings_hold_when_they_are_uncommented() {
    let bench = Bench::new("");
    for template in ["commands", "review", "fan-out"] {
        bench.exits(&format!("init --from {template} {template}"), 0);
        bench.exits(&format!("check {template}.yaml"), 0);
    }
    let settings = bench.text(".onward/config.toml");
    let is_setting = |line: &&str| line.contains(" = ") || line.starts_with("# [");
    let uncommented: Vec<&str> =
        settings.lines().filter(is_setting).map(|it| it.trim_start_matches("# ")).collect();
    bench.write(".onward/config.toml", &uncommented.join("\n"));
    let said = bench.exits("config", 0);
    assert!(said.out.contains("defaults.grace_seconds"), "{said:?}");
    bench.write(".onward/config.toml", "mode = 1");
    bench.exits("config", 2);
    bench.exits("config path", 0);
}

#[test]
fn d_an_agent_of_the_configuration_is_known_by_its_name() {
    let bench = Bench::new("  - { id: a, agent: helper, prompt: hi, edits: false }\n");
    let said = bench.exits("check w.yaml", 2);
    assert!(said.err.contains("there is no agent `helper`"), "{said:?}");
    assert!(said.err.contains("[agents.helper] in the configuration"), "{said:?}");
    bench.exits("run w.yaml", 2);
    bench.write(".onward/config.toml", "[agents.helper]\ncommand = ['true']\n");
    bench.exits("check w.yaml", 0);
    bench.exits("run w.yaml", 0);
}

#[test]
fn d_keys_of_other_tools_get_ours_as_a_hint() {
    let bench = Bench::new("");
    let steps = "  - { id: a, cmd: x }\n  - { id: b, run: x, depends_on: [a] }\n  \
        - { id: c, run: x, env_vars: {} }\n  - { id: d, run: x, retry: 3 }\n  \
        - { name: e, run: x }\n";
    bench.workflow("w.yaml", "steps:", steps);
    let said = bench.exits("check w.yaml", 2);
    for ours in ["run: COMMAND", "needs: [STEP]", "env: {", "retry: { max: 3 }", "id: NAME"] {
        assert!(said.err.contains(&format!("here it is `{ours}")), "{ours}: {said:?}");
    }
}

#[test]
fn d_a_fan_out_that_cannot_be_made_is_a_failed_step_of_the_run() {
    let fan = "  - { id: fan, each: \"{{ ['x', 'x'] }}\", run: 'true' }\n";
    let bench = Bench::new(&format!("{fan}  - {{ id: b, run: 'true' }}\n"));
    bench.exits("run w.yaml", 10);
    let said = bench.exits("status", 0);
    assert!(said.out.contains("0 of 2 done") && said.out.contains("failed"), "{said:?}");
}

#[test]
fn d_attach_answers_gates() {
    let bench =
        Bench::new("  - { id: a, run: LOG }\n  - { id: g, gate: Go? }\n  - { id: b, run: LOG }\n");
    // On a machine that is quick it has come to rest before it could be left.
    let code = bench.onward("run w.yaml --detach").code;
    assert!(code == 0 || code == 11, "{code}");
    let run = run_of(&bench);
    until("the gate to open", || Ok(journal(&run).contains("gate.opened").then_some(()))).unwrap();
    let mut terminal = Terminal::start(&bench, "attach");
    terminal.shows("g? [approve/reject] ");
    terminal.types("maybe\n");
    terminal.shows("`maybe` is not an answer here");
    terminal.types("c fine by me\n");
    terminal.shows("comment: fine by me");
    terminal.shows("g? [approve/reject] ");
    terminal.types("a\n");
    terminal.exits(0);
    assert!(journal(&run).contains("fine by me"), "{}", journal(&run));
    bench.is_proved(&run);
}

#[test]
fn d_why_shows_what_changed_and_config_where_values_come_from() {
    let bench = Bench::new("  - { id: a, run: 'echo one; LOG' }\n  - { id: b, run: 'false' }\n");
    bench.exits("run w.yaml", 10);
    let text = bench.text("w.yaml").replace("echo one", "echo two");
    fs::write(bench.path("w.yaml"), text).unwrap();
    let said = bench.exits("why a", 0);
    assert!(said.out.contains("- echo one") && said.out.contains("+ echo two"), "{said:?}");
    bench.write(".onward/config.toml", "[defaults]\ngrace_seconds = 3\n");
    let said = bench.exits("config", 0);
    let line = said.out.lines().find(|it| it.contains("grace_seconds")).unwrap();
    assert!(line.contains('3') && line.contains(".onward/config.toml"), "{said:?}");
    let said = bench.exits("config path", 0);
    assert!(said.out.trim_end().ends_with(".onward/config.toml"), "{said:?}");
}

#[test]
fn d_each_command_has_its_page_and_the_version_its_commit() {
    let bench = Bench::new("  - { id: a, run: 'true' }\n");
    bench.exits("man --dir pages", 0);
    for page in ["onward.1", "onward-resume.1", "onward-plan.1", "onward-config.1"] {
        assert!(bench.text(&format!("pages/{page}")).contains(".TH"), "{page}");
    }
    assert!(!bench.path("pages/onward-supervise.1").exists());
    let version = bench.exits("version --json", 0).json();
    assert!(version["commit"].is_string() || version["commit"].is_null(), "{version:#}");
    assert!(version["features"].is_array(), "{version:#}");
}
