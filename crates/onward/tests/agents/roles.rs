//! How the roles of built-in workflows are played: by whom, and what they may do.

use crate::{
    program::git,
    stage::{Stage, result},
};

/// Writes down how it is called, and ends without a word.
const AGENT: &str = "#!/bin/sh\nfor arg; do echo \"$arg\"; done >> \"$HOME/called\"\nexit 1\n";

fn stage(config: &str) -> Stage {
    let stage = Stage::empty();
    stage.put("bin/claude", AGENT);
    stage.put("bin/qwen", AGENT);
    stage.put("home/called", "");
    stage.put(".onward/config.toml", config);
    stage.put(".gitignore", "bin\nhome\nstate\n");
    git(&stage.path(""), &["init", "-q"]);
    git(&stage.path(""), &["add", ".gitignore"]);
    git(&stage.path(""), &["commit", "-qm", "begin"]);
    stage
}

/// How the first agent of a pipeline, its lead, is called.
fn called(stage: &Stage, flags: &str) -> String {
    stage.onward(&format!("run pipeline --input request=x --yes {flags}"));
    stage.text("home/called")
}

#[test]
fn a_role_has_the_permissions_that_the_configuration_gives_it() {
    let plain = called(&stage(""), "");
    assert!(plain.contains("--model=opus"), "{plain}");
    assert!(!plain.contains("bypassPermissions") && !plain.contains("--allowedTools"), "{plain}");
    let config = "[roles]\nlead = { permissions = 'full', allow = ['Bash(git log:*)'] }\n";
    let told = called(&stage(config), "");
    for part in ["bypassPermissions", "--allowedTools=Bash(git log:*)", "--model=opus"] {
        assert!(told.lines().any(|line| line == part), "{part}: {told}");
    }
    // Another agent has the same permissions, and other names for its tools.
    let told = called(&stage(config), "--agent qwen");
    let names_tools = told.contains("--allowed-tools");
    assert!(told.contains("--approval-mode=yolo") && !names_tools, "{told}");
}

#[test]
fn a_run_keeps_the_permissions_that_it_was_begun_with() {
    let stage = stage("[roles]\nlead = { agent = 'qwen', permissions = 'read-only' }\n");
    let told = called(&stage, "");
    assert!(told.contains("--approval-mode=plan"), "{told}");
    stage.put(".onward/config.toml", "[roles]\nlead = { permissions = 'full' }\n");
    stage.put("home/called", "");
    stage.onward("resume --yes");
    let told = stage.text("home/called");
    assert!(told.contains("--approval-mode=plan"), "{told}");
}

#[test]
fn the_roles_of_the_configuration_are_checked_and_shown() {
    let stage = stage(
        "[roles]\nlead = { agent = 'codex', permissions = 'edit', allow = ['x'] }\n\
         analyst = 'qwen'\ngardener = { permissions = 'full' }\n",
    );
    let shown = stage.exits("config", 0);
    for line in ["roles.lead.permissions", "roles.lead.allow", "roles.analyst.agent"] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    let (_, said) = stage.onward("doctor");
    assert!(said.contains("roles.lead.allow: codex takes no list of tools"), "{said}");
    assert!(said.contains("roles.gardener: no built-in workflow has this role"), "{said}");
    stage.exits("check pipeline", 0);
    for (wrong, says) in [
        ("lead = { permissions = 'all' }", "unknown variant `all`"),
        ("lead = { permission = 'full' }", "unknown field `permission`"),
        ("lead = 7", "expected the name of an agent, or a table"),
    ] {
        stage.put(".onward/config.toml", &format!("[roles]\n{wrong}\n"));
        for command in ["check pipeline", "config"] {
            let (code, said) = stage.onward(command);
            assert!(code != Some(0) && said.contains(says), "{command}: {said}");
        }
    }
    // An agent that is not there is found before a run begins.
    stage.put(".onward/config.toml", "[roles]\nlead = { agent = 'unheard-of' }\n");
    for command in ["doctor", "run pipeline --input request=x --yes"] {
        let (_, said) = stage.onward(command);
        assert!(said.contains("`unheard-of`"), "{command}: {said}");
    }
    assert_eq!(stage.run_dir(), None);
}

#[test]
fn a_tool_that_was_refused_to_a_role_says_where_it_can_be_allowed() {
    let stage = stage("");
    let denied = "\"permission_denials\":[{\"tool_name\":\"Bash\"}]";
    let fields = "\"subtype\":\"success\",\"is_error\":false,\"result\":\"no\"";
    let script = result(&format!("{fields},{denied}"));
    stage.put("bin/claude", &format!("#!/bin/sh\n{script}\n"));
    let said = stage.exits("run pipeline --input request=x --yes", 11);
    assert!(said.contains("permission denied: it may not use Bash"), "{said}");
    assert!(said.contains("allow it in the settings of the agent of intake first"), "{said}");
}
