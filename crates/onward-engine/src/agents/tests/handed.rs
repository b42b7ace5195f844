//! What an agent is handed that does not lie in its tree, and where it keeps its own files.

use std::path::PathBuf;

use super::*;

#[test]
fn files_outside_its_tree_can_be_read_by_an_agent_that_is_told_to() {
    for adapter in ADAPTERS.into_iter().filter(|it| it.card().program.is_some()) {
        let with = |reads, permissions| {
            let order = Order { permissions, reads, ..ORDER };
            let env = adapter.env(&order).into_iter().map(|(_, value)| value);
            env.chain(adapter.start(&order)).collect::<Vec<_>>().join(" ")
        };
        // Codex reads everything; aider is no judge of what it reads.
        let asks = !["codex", "aider"].contains(&adapter.card().name);
        for permissions in [Permissions::ReadOnly, Permissions::Edit] {
            let (handed, plain) = (with(Some("/run/out"), permissions), with(None, permissions));
            assert_eq!(handed.contains("/run/out"), asks, "{handed}");
            assert!(!plain.contains("/run/out"), "{plain}");
        }
    }
}

#[test]
fn what_a_program_keeps_is_found_where_the_user_moved_it() {
    let set = |_: &str| Some(PathBuf::from("/moved"));
    for (adapter, usual, moved) in [
        (&claude::Claude as &dyn Adapter, ".claude/projects/x", Some("/moved/projects/x")),
        (&claude::Claude, ".claude.json", Some("/moved/.claude.json")),
        (&codex::Codex, ".codex/auth.json", Some("/moved/auth.json")),
        (&copilot::Copilot, ".copilot/x", Some("/moved/x")),
        (&opencode::OpenCode, ".local/share/opencode/x", Some("/moved/opencode/x")),
        (&gemini::Gemini, ".gemini/x", None),
    ] {
        let card = adapter.card();
        assert_eq!(card.moved(usual, set), moved.map(PathBuf::from), "{}", card.name);
        assert_eq!(card.moved(usual, |_| None), None, "{}", card.name);
    }
}

#[test]
fn what_qwen_says_of_its_own_end_is_heard() {
    let out = "{\"type\":\"result\",\"subtype\":\"error_during_execution\",\"is_error\":true,\
               \"error\":{\"message\":\"it rained\"}}\n";
    let said = heard(&claude::Qwen, out, "");
    let Some(Closed::Badly { detail, .. }) = said.closed else { panic!("{:?}", said.closed) };
    assert_eq!(detail, "it rained");
    assert_eq!(claude::Qwen.tell(out), ["(ended badly: it rained)"]);
}

#[test]
fn the_answer_of_aider_is_its_last_message() {
    let out = "Aider v0.86.2\nModel: x\nRepo-map: disabled\n\nfirst\nTokens: 9 sent, 1 received.\n\
               \nlast\nwords\nTokens: 9 sent, 1 received.\nApplied edit to a.txt\n";
    assert_eq!(heard(&aider::Aider, out, "").answer.as_deref(), Some("last\nwords"));
    assert_eq!(heard(&aider::Aider, "no tokens, no message\n", "").answer, None);
}
