//! What agents say, as people read it; and what is handed to the next attempt.

use std::fs;

use crate::stage::{LIKE_CLAUDE, Stage, result};

const SAYS: &str = r#"cat <<'E'
{"type":"system","subtype":"init","session_id":"s"}
{"type":"assistant","message":{"content":[{"type":"text","text":"I look first."}]}}
{"type":"assistant","message":{"content":[{"type":"tool_use","name":"Bash","input":{"path":"x"}}]}}
E"#;

fn well() -> String {
    result("\"subtype\":\"success\",\"is_error\":false,\"result\":\"done\"")
}

#[test]
fn words_and_tools_are_shown_and_the_raw_stream_on_demand() {
    let stage = Stage::new(&format!("{SAYS}\necho oops >&2\n{}", well()), LIKE_CLAUDE, "");
    stage.exits("run w.yaml --yes", 0);
    let said = stage.exits("log --step work", 0);
    assert_eq!(said, "I look first.\n> Bash x\noops\n");
    let followed = stage.exits("log --step work -f", 0);
    assert_eq!(followed, said);
    let raw = stage.exits("log --step work --raw", 0);
    assert!(raw.starts_with("{\"type\":\"system\"") && raw.contains("\"tool_use\""), "{raw}");
}

#[test]
fn an_agent_that_begins_anew_is_handed_what_happened_without_secrets() {
    let long = "yes 'a line that is said again and again' | head -c 200000";
    let script = format!(
        "if [ $(wc -l < calls) = 1 ]; then\n{SAYS}\n{long}\necho key is $SOME_KEY >&2\n\
         echo half > made.txt\nexit 1; fi\n{}\necho whole > made.txt",
        well()
    );
    let step = ", writes: [made.txt], retry: { max: 1, backoff: 1ms, on: [failed] }";
    let stage = Stage::new(&script, LIKE_CLAUDE, step);
    let mut command = stage.command("run w.yaml --yes");
    let output = command.env("SOME_KEY", "hush-hush-123").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let out = stage.run_dir().unwrap().join("out");
    let brief = fs::read_to_string(out.join("work.2.brief")).unwrap();
    assert!(brief.contains("Attempt 1 did not finish: failed (exit 1)"), "{brief}");
    assert!(brief.contains("- made.txt") && brief.contains("/rescue/"), "{brief}");
    assert!(brief.contains("key is [redacted:SOME_KEY]"), "{brief}");
    assert!(brief.contains("work.1.out: all that it printed"), "{brief}");
    assert!(brief.chars().count() <= 6_000, "{}", brief.chars().count());
    let printed = fs::read(out.join("work.1.out")).unwrap();
    let hash = onward_core::digest::Digest::of(&printed).to_string();
    assert!(brief.contains(&hash), "{brief}");
    let prompt = fs::read_to_string(out.join("work.2.prompt")).unwrap();
    assert!(prompt.starts_with("p\n\n") && prompt.ends_with(&brief), "{prompt}");
}
