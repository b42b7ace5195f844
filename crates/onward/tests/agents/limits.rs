//! Limits that all runs of a machine share, and stand-ins.

use serde_json::json;

use crate::stage::Stage;

const CLAUDE: &str = r#"#!/bin/sh
echo x >> "$HOME/claude.calls"
id=
for arg; do
  case $before in --session-id|--resume) id=$arg;; esac
  before=$arg
done
mkdir -p "$HOME/.claude/projects/p"; echo x >> "$HOME/.claude/projects/p/$id.jsonl"
if [ -e "$HOME/limited" ]; then
  [ -e "$HOME/keep" ] || mv "$HOME/limited" "$HOME/met"
  reset=$(cat "$HOME/limited" "$HOME/met" 2>/dev/null | head -1)
  echo '{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":'$reset'}}'
  printf '{"type":"result","session_id":"%s","is_error":true,' $id
  echo '"api_error":"usage_limit_reached","result":"limit"}'
  exit 1
fi
echo '{"type":"result","session_id":"'$id'","subtype":"success","is_error":false,"result":"done"}'
"#;
const CODEX: &str = r#"#!/bin/sh
for arg; do last=$arg; done
echo "$last" >> "$HOME/codex.calls"
echo '{"type":"thread.started","thread_id":"x-1"}'
echo '{"type":"turn.completed","usage":{"input_tokens":1000,"output_tokens":100}}'
"#;

/// A project with a step of claude's and a plain command. The limit is lifted after so many
/// seconds.
pub(crate) fn stage(config: &str, limit_seconds: Option<i64>) -> Stage {
    let stage = Stage::empty();
    stage.put("bin/claude", CLAUDE);
    stage.put("bin/codex", CODEX);
    stage.put(".onward/config.toml", config);
    stage.put("home/x", "");
    if let Some(seconds) = limit_seconds {
        let now = onward_engine::world::real::wall_clock();
        let at = now.plus_ms(u64::try_from(seconds).unwrap() * 1000).as_micros() / 1_000_000;
        stage.put("home/limited", &format!("{at}\n"));
    }
    let steps = "[{ id: work, agent: claude, prompt: p }, { id: other, needs: [], run: 'true' }]";
    stage.put("w.yaml", &format!("onward: 1\nname: w\nsteps: {steps}\n"));
    stage
}

pub(crate) fn calls(stage: &Stage, agent: &str) -> usize {
    stage.text(&format!("home/{agent}.calls")).lines().count()
}

#[test]
fn a_limit_that_one_run_met_holds_back_every_run_of_the_account() {
    let stage = stage("", Some(3600));
    stage.exits("run w.yaml --yes", 12);
    let met = stage.of("limit.hit").remove(0);
    assert_eq!((&met["provider"], &met["agent"]), (&json!("anthropic"), &json!("claude")));
    // Another run does not ask in vain, does what it can, and says until when it is parked.
    let said = stage.exits("run w.yaml --yes", 12);
    assert!(said.contains("until ") && said.contains("from now"), "{said}");
    assert!(!said.contains("000Z"), "{said}");
    assert_eq!(calls(&stage, "claude"), 1);
    let known = stage.of("limit.hit").remove(0);
    assert_eq!(known["resets_at"], met["resets_at"]);
    assert_eq!(stage.of("attempt.finished").len(), 1, "{}", stage.journal());
    // Another account is none of it.
    let mut other = stage.command("run w.yaml --yes");
    let output = other.env("ANTHROPIC_API_KEY", "another-key").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(calls(&stage, "claude"), 2);
}

#[test]
fn every_look_at_a_parked_run_says_until_when() {
    let stage = stage("", Some(3600));
    let said = stage.exits("run w.yaml --yes", 12);
    assert!(said.contains("1 parked") && !said.contains("1 failed"), "{said}");
    for look in ["status", "list", "plan", ""] {
        let said = stage.exits(look, 0);
        let says = said.contains("until ") && said.contains("min ") && said.contains("from now");
        assert!(says && !said.contains("000Z"), "{look}: {said}");
    }
    let said = stage.exits("status", 0);
    assert!(said.contains("parked   work"), "{said}");
    let json: serde_json::Value = serde_json::from_str(&stage.exits("status --json", 0)).unwrap();
    let met = stage.of("limit.hit").remove(0);
    assert_eq!(json["run"]["until"], met["resets_at"], "{json:#}");
    assert_eq!(json["steps"][0]["state"], "parked", "{json:#}");
}

#[test]
fn a_reset_that_is_over_already_parks_the_run_and_starts_nothing_again() {
    let stage = stage("", Some(0));
    stage.put("home/keep", "");
    stage.exits("run w.yaml --yes", 12);
    assert_eq!(calls(&stage, "claude"), 1);
}

#[test]
fn an_agent_that_is_not_installed_does_not_stand_in() {
    let stage = stage("[agents.claude]\nstand_in = 'gemini'\n", Some(3600));
    // As on a machine that has no other agents.
    let mut command = stage.command("run w.yaml --yes");
    let output = command.env("PATH", format!("{}:/usr/bin:/bin", stage.path("bin").display()));
    let output = output.output().unwrap();
    assert_eq!(output.status.code(), Some(12), "{output:?}");
    assert_eq!(calls(&stage, "claude"), 1);
}

#[test]
fn another_agent_stands_in_at_a_limit_with_a_brief_and_at_its_price() {
    let config = "[agents.claude]\nstand_in = 'codex'\n[agents.codex]\nprice = { input = 2, \
                  output = 10 }\n";
    let stage = stage(config, Some(3600));
    stage.exits("run w.yaml --yes", 0);
    let starts = stage.of("attempt.started");
    let works: Vec<_> = starts.iter().filter(|it| it["step"] == "work").collect();
    assert_eq!((&works[0]["agent"], &works[1]["agent"]), (&json!("claude"), &json!("codex")));
    assert_eq!(works[0]["key"], works[1]["key"], "what is asked for is the same");
    let told = stage.text("home/codex.calls");
    assert!(told.contains("Attempt 1 did not finish: usage_limit"), "{told}");
    // A thousand tokens in and a hundred out.
    assert_eq!(stage.of("attempt.spent")[0]["usd"], 0.003, "{}", stage.journal());
}
