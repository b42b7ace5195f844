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
fn an_agent_that_speaks_of_an_error_has_not_met_it() {
    let out = |tokens: u32| {
        let words = "It prints [API Error: 401 no key]";
        format!(
            "{{\"type\":\"assistant\",\"message\":{{\"content\":[{{\"type\":\"text\",\"text\":\
             \"{words}\"}}],\"usage\":{{\"output_tokens\":{tokens}}}}}}}\n{{\"type\":\"result\",\
             \"is_error\":false,\"result\":\"{words}\"}}\n"
        )
    };
    assert_eq!(end(&heard(&claude::Qwen, &out(9), "")), "well");
    assert_eq!(end(&heard(&claude::Qwen, &out(0), "")), "auth");
}

#[test]
fn a_message_that_comes_in_parts_is_one() {
    let mut said = Said::nothing_yet(true);
    for part in ["Repo-map: disabled\n\nfirst\n", "second\n", "Tokens: 9 sent, 1 received.\n"] {
        aider::Aider.read(Stream::Out, part.as_bytes(), &mut said);
    }
    assert_eq!(said.answer.as_deref(), Some("first\nsecond"));
}

#[test]
fn aider_tells_tokens_and_their_price_in_one_line_or_two() {
    for (line, input, cached, usd) in [
        ("Tokens: 593 sent, 7 received.", 593, 0, None),
        (
            "Tokens: 12k sent, 7 received. Cost: $0.02 message, $1.31 session.",
            12_000,
            0,
            Some(0.02),
        ),
        (
            "Tokens: 5.9k sent, 1k cache write, 3k cache hit, 7 received.\nCost: $0.02 message, \
             $1.31 session.",
            1_900,
            3_000,
            Some(0.02),
        ),
    ] {
        let said = heard(&aider::Aider, &format!("Repo-map: x\n\nhi\n{line}\n"), "");
        let spent = said.spent;
        assert_eq!((spent.input_tokens, spent.cache_read_tokens), (input, cached), "{line}");
        assert_eq!((spent.usd, spent.output_tokens), (usd.and_then(Usd::from_dollars), 7));
        assert_eq!((said.answer.as_deref(), end(&said)), (Some("hi"), "well"), "{line}");
    }
    // In the middle of a message it is part of it.
    let said = heard(&aider::Aider, "hi\nCost: $9 message, $9 session.\n", "");
    assert!(said.spent.is_nothing());
}

#[test]
fn an_answer_after_another_try_is_not_mixed_with_the_error() {
    let out = "litellm.RateLimitError: Rate limit reached for\nx. Try again in 9s.\nRetrying in \
               0.2 seconds...\nhello\nTokens: 5 sent, 7 received.\n";
    let said = heard(&aider::Aider, out, "");
    assert_eq!((said.answer.as_deref(), end(&said)), (Some("hello"), "well"));
}

#[test]
fn the_answer_of_aider_is_its_last_message() {
    let out = "Aider v0.86.2\nModel: x\nRepo-map: disabled\n\nfirst\nTokens: 9 sent, 1 received.\n\
               \nlast\nwords\nTokens: 9 sent, 1 received.\nApplied edit to a.txt\n";
    assert_eq!(heard(&aider::Aider, out, "").answer.as_deref(), Some("last\nwords"));
    assert_eq!(heard(&aider::Aider, "no tokens, no message\n", "").answer, None);
}
