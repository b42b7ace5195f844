//! The workflow in `examples`, with scripts in the place of its three agents; and who plays the
//! roles of built-in workflows.

use std::{fs, path::Path};

use crate::{program::git, stage::Stage};

const CLAUDE: &str = r#"#!/bin/sh
echo claude >> "$HOME/order"
echo '1. Say hello.' > plan.md
printf '{"type":"result","subtype":"success","is_error":false,"session_id":"c",'
printf '"result":"Planned.","total_cost_usd":0.25,'
echo '"modelUsage":{"m":{"inputTokens":100,"outputTokens":20}}}'
"#;
const CODEX: &str = r#"#!/bin/sh
echo codex >> "$HOME/order"
echo '{"type":"thread.started","thread_id":"x-1"}'
[ -e "$HOME/killed" ] || { : > "$HOME/killed"; echo 'echo half' > greet.sh; kill -9 $$; }
echo 'echo "Hello, $1"' > greet.sh
echo '{"type":"item.completed","item":{"type":"agent_message","text":"Built."}}'
echo '{"type":"turn.completed","usage":{"input_tokens":50,"output_tokens":5}}'
"#;
const GEMINI: &str = r#"#!/bin/sh
echo gemini >> "$HOME/order"
echo '{"type":"init","session_id":"g-1"}'
echo '{"type":"message","role":"assistant","content":"{\"verdict\":\"accept\",\"reasons\":[]}"}'
echo '{"type":"result","status":"success","stats":{"input_tokens":30,"output_tokens":3}}'
"#;

#[test]
fn three_agents_and_commands_work_at_one_thing() {
    let stage = Stage::empty();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/three-agents");
    for name in ["workflow.yaml", "review.json"] {
        stage.put(name, &fs::read_to_string(examples.join(name)).unwrap());
    }
    for (name, script) in [("claude", CLAUDE), ("codex", CODEX), ("gemini", GEMINI)] {
        stage.put(&format!("bin/{name}"), script);
    }
    fs::create_dir_all(stage.path("home")).unwrap();
    stage.put(".gitignore", "bin\nhome\nstate\n");
    git(&stage.path(""), &["init", "-q"]);
    git(&stage.path(""), &["add", "workflow.yaml", "review.json", ".gitignore"]);
    git(&stage.path(""), &["commit", "-qm", "begin"]);
    stage.exits("check workflow.yaml", 0);
    stage.exits("run workflow.yaml --yes", 0);
    assert_eq!(stage.text("home/order"), "claude\ncodex\ncodex\ngemini\n");
    assert_eq!(stage.text("greeting.txt"), "Hello, Ada\n");
    assert_eq!(stage.text("report.txt"), "accept\n");
    let bill = stage.exits("status --cost --json", 0);
    let bill: serde_json::Value = serde_json::from_str(&bill).unwrap();
    let steps = &bill["bill"]["steps"];
    assert_eq!(steps["plan"]["usd"], 0.25, "{bill:#}");
    assert_eq!(steps["build"]["input_tokens"], 50, "{bill:#}");
    assert_eq!(steps["review"]["output_tokens"], 3, "{bill:#}");
}

#[test]
fn one_agent_or_several_play_the_roles_of_a_built_in_workflow() {
    let stage = Stage::empty();
    stage.put("bin/claude", CLAUDE);
    let lacks = "agent `nobody` has no command";
    let (code, said) = stage.onward("run conference --agent nobody --yes");
    assert!(code != Some(0) && said.contains(lacks), "{said}");
    stage.put(".onward/config.toml", "[roles]\nsynthesizer = 'nobody'\n");
    let (code, said) = stage.onward("run conference --yes");
    assert!(code != Some(0) && said.contains(lacks), "{said}");
    // The flag is nearer than the configuration.
    let (_, said) = stage.onward("run conference --agent claude --yes");
    assert!(!said.contains(lacks), "{said}");
    stage.put("w.yaml", "onward: 1\nname: w\nsteps: [{ id: a, run: x }]\n");
    let said = stage.exits("run w.yaml --agent claude", 2);
    assert!(said.contains("--agent is for built-in workflows"), "{said}");
}
