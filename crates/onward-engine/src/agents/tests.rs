//! Every adapter against small samples of what its program prints, situation by situation.

use onward_core::{
    evidence::{Cause, Usd},
    said::{Closed, Counting, Said},
    time::Timestamp,
};

use super::*;

mod handed;
mod touched;

fn heard(adapter: &dyn Adapter, out: &str, err: &str) -> Said {
    let mut said = Said::nothing_yet(adapter.card().closes);
    adapter.read(Stream::Out, out.as_bytes(), &mut said);
    adapter.read(Stream::Err, err.as_bytes(), &mut said);
    said
}

/// How it ended: `well`, `nothing`, or the cause.
fn end(said: &Said) -> &'static str {
    match &said.closed {
        None => "nothing",
        Some(Closed::Well) => "well",
        Some(Closed::Badly { cause, .. }) => cause.as_str(),
    }
}

fn result(fields: &str) -> String {
    format!(
        "{{\"type\":\"result\",\"session_id\":\"s-1\",\"total_cost_usd\":0.5,\"modelUsage\":{{\"m\
          \":{{\"inputTokens\":10,\"outputTokens\":2,\"cacheReadInputTokens\":3,\"cacheC\
          reationInputTokens\":4}}}},{fields}}}"
    )
}

#[test]
#[expect(clippy::too_many_lines, reason = "one row a situation")]
fn claude_is_understood_in_every_situation() {
    let init = r#"{"type":"system","subtype":"init","session_id":"s-1"}"#;
    let bad = |reason: &str, rest: &str| {
        let fields =
            format!(r#""subtype":"success","is_error":true,"terminal_reason":"{reason}",{rest}"#);
        result(&fields)
    };
    for (what, out, err, ended) in [
        ("ok", result(r#""subtype":"success","is_error":false,"result":"hi""#), "", "well"),
        (
            "429",
            bad("api_error", r#""api_error_status":429,"result":"Request rejected (429)""#),
            "",
            "rate_limited",
        ),
        (
            "529",
            bad("api_error", r#""api_error_status":529,"result":"Overloaded""#),
            "",
            "overloaded",
        ),
        (
            "500",
            bad("api_error", r#""api_error_status":500,"result":"API Error: 500""#),
            "",
            "server",
        ),
        (
            "401",
            bad("api_error", r#""api_error_status":401,"result":"Invalid API key""#),
            "",
            "auth",
        ),
        (
            "no key",
            bad(
                "api_error",
                r#""api_error_status":null,"result":"Not logged in · Please run /login""#,
            ),
            "",
            "auth",
        ),
        (
            "overflow",
            bad("prompt_too_long", r#""api_error_status":400,"result":"Prompt is too long""#),
            "",
            "context_overflow",
        ),
        (
            "limit",
            bad(
                "api_error",
                "\"api_error_status\":429,\"api_error\":\"usage_limit_reached\",\"result\":\"You'\
                  ve hit your 5-hour limit · resets 7:54pm (UTC)\"",
            ),
            "",
            "usage_limit",
        ),
        (
            "limit as success",
            result(
                "\"subtype\":\"success\",\"is_error\":false,\"result\":\"You've hit your limit · \
                  resets 9pm (Europe/Stockholm)\"",
            ),
            "",
            "usage_limit",
        ),
        (
            "turns",
            result(
                "\"subtype\":\"error_max_turns\",\"is_error\":true,\"terminal_reason\":\"max_turn\
                  s\",\"errors\":[\"too many\"]",
            ),
            "",
            "max_turns",
        ),
        (
            "budget",
            result(r#""subtype":"error_max_budget_usd","is_error":true,"errors":["spent"]"#),
            "",
            "budget",
        ),
        (
            "interrupt",
            result(
                "\"subtype\":\"error_during_execution\",\"is_error\":true,\"terminal_reason\":\"a\
                  borted_streaming\"",
            ),
            "",
            "interrupted",
        ),
        ("cut short", init.to_owned(), "", "nothing"),
        ("used id", String::new(), "Error: Session ID s-1 is already in use.\n", "session_busy"),
        (
            "unknown id",
            String::new(),
            "No conversation found with session ID: s-1\n",
            "session_missing",
        ),
    ] {
        let said = heard(&claude::Claude, &format!("{out}\n"), err);
        assert_eq!(end(&said), ended, "{what}");
    }
}

#[test]
fn claude_tells_what_it_spent_and_what_was_denied() {
    let said = heard(
        &claude::Claude,
        &result(
            "\"subtype\":\"success\",\"is_error\":false,\"result\":\"hi\",\"structured_output\":{\
              \"n\":1},\"permission_denials\":[{\"tool_name\":\"Write\"},{\"tool_name\":\
              \"Write\"}]",
        ),
        "",
    );
    assert_eq!((said.session.as_deref(), said.answer.as_deref()), (Some("s-1"), Some("hi")));
    assert_eq!((said.spent.input_tokens, said.spent.output_tokens), (10, 2));
    assert_eq!((said.spent.usd, said.counting), (Some(Usd(500_000)), Counting::Session));
    assert_eq!(
        (said.denied, said.result),
        (vec!["Write".to_owned()], Some(serde_json::json!({"n": 1})))
    );
}

#[test]
fn the_last_result_of_several_counts_and_a_limit_event_has_the_moment() {
    let event = "{\"type\":\"rate_limit_event\",\"rate_limit_info\":{\"status\":\"rejected\",\"re\
      setsAt\":1794772478}}";
    let limit = result(
        "\"subtype\":\"success\",\"is_error\":true,\"api_error\":\"usage_limit_reached\",\"result\
          \":\"You've hit your 5-hour limit\"",
    );
    let said = heard(&claude::Claude, &format!("{event}\n{limit}\n"), "");
    let known = said.limit.clone().unwrap();
    assert_eq!(known.resets_at, Some(Timestamp::from_micros(1_794_772_478_000_000)));
    assert_eq!((known.provider.as_str(), end(&said)), ("anthropic", "usage_limit"));
    let warned = event.replace("rejected", "allowed_warning");
    let well = result(r#""subtype":"success","is_error":false,"result":"done""#);
    let said = heard(&claude::Claude, &format!("{warned}\n{limit}\n{well}\n"), "");
    assert_eq!((end(&said), said.answer.as_deref()), ("well", Some("done")));
}

#[test]
fn codex_is_understood_in_every_situation() {
    let failed = |words: &str| {
        let words = serde_json::Value::from(words);
        format!(
            "{{\"type\":\"error\",\"message\":\"Reconnecting... 1/1\"}}\n{{\"type\":\"turn.failed\
              \",\"error\":{{\"message\":{words}}}}}\n"
        )
    };
    for (out, err, ended) in [
        (failed("exceeded retry limit, last status: 429 Too Many Requests"), "", "rate_limited"),
        (failed("unexpected status 529 <unknown status code>: Overloaded"), "", "overloaded"),
        (failed("We\u{2019}re currently experiencing high demand"), "", "server"),
        (failed("unexpected status 401 Unauthorized: no"), "", "auth"),
        (failed("Missing environment variable: `KEY`."), "", "auth"),
        (failed(r#"{"error": {"code": "context_length_exceeded"}}"#), "", "context_overflow"),
        (failed("You\u{2019}ve hit your usage limit. Try again at 7:19 PM."), "", "usage_limit"),
        (failed("stream disconnected before completion"), "", "network"),
        (String::new(), "Error: no rollout found for thread id x", "session_missing"),
        (String::new(), "thread x already has an active writer", "session_busy"),
        (
            String::new(),
            "Not inside a trusted directory and --skip-git-repo-check was not specified.",
            "permission_denied",
        ),
        (
            r#"{"type":"turn.started"}"#.to_owned(),
            "Reading additional input from stdin...\n",
            "nothing",
        ),
    ] {
        let said = heard(&codex::Codex, &out, err);
        assert_eq!(end(&said), ended, "{out} {err}");
    }
    let said = heard(
        &codex::Codex,
        concat!(
            "{\"type\":\"thread.started\",\"thread_id\":\"t-1\"}\n",
            "{\"type\":\"item.completed\",\"item\":{\"type\":\"error\",\"message\":\"no metadata\
              \"}}\n",
            "{\"type\":\"item.completed\",\"item\":{\"type\":\"agent_message\",\"text\":\"one\"}}\
              \n",
            "{\"type\":\"item.completed\",\"item\":{\"type\":\"agent_message\",\"text\":\"two\"}}\
              \n",
            "{\"type\":\"turn.completed\",\"usage\":{\"input_tokens\":100,\"cached_input_tokens\"\
              :60,\"output_tokens\":7}}\n",
        ),
        "",
    );
    assert_eq!(
        (said.session.as_deref(), said.answer.as_deref(), end(&said)),
        (Some("t-1"), Some("two"), "well")
    );
    assert_eq!(
        (said.spent.input_tokens, said.spent.cache_read_tokens, said.spent.usd),
        (40, 60, None)
    );
    assert_eq!(said.counting, Counting::Session);
    let limit = heard(
        &codex::Codex,
        &failed("You\u{2019}ve hit your usage limit. Try again at 7:19 PM."),
        "",
    );
    assert!(limit.limit.unwrap().words.unwrap().contains("7:19"));
}

#[test]
fn gemini_is_understood() {
    let init = r#"{"type":"init","session_id":"g-1"}"#;
    let piece = |text: &str| {
        format!(r#"{{"type":"message","role":"assistant","content":"{text}","delta":true}}"#)
    };
    let stats = r#""stats":{"input_tokens":100,"output_tokens":7,"cached":40}"#;
    let well = format!(
        "{init}\n{}\n{}\n{{\"type\":\"result\",\"status\":\"success\",{stats}}}\n",
        piece("a"),
        piece("b")
    );
    let said = heard(&gemini::Gemini, &well, "Ripgrep is not available.\n");
    assert_eq!(
        (said.session.as_deref(), said.answer.as_deref(), end(&said)),
        (Some("g-1"), Some("ab"), "well")
    );
    assert_eq!(
        (said.spent.input_tokens, said.spent.cache_read_tokens, said.counting),
        (60, 40, Counting::Attempt)
    );
    let error = "{\"type\":\"result\",\"status\":\"error\",\"error\":{\"message\":\"{\\\"type\\\"\
      :\\\"authentication_error\\\"}\"}}";
    assert_eq!(end(&heard(&gemini::Gemini, error, "")), "auth");
    assert_eq!(end(&heard(&gemini::Gemini, init, "")), "nothing");
    let missing = "Error resuming session: Invalid session identifier \"x\".\n";
    assert_eq!(end(&heard(&gemini::Gemini, "", missing)), "session_missing");
    let quota = "Attempt 2 failed: You exceeded your current quota. Retrying after 11259ms...\n";
    let said = heard(&gemini::Gemini, init, quota);
    assert_eq!((said.limit.is_some(), end(&said)), (true, "nothing"));
}

#[test]
fn opencode_is_understood() {
    let finish = |reason: &str| {
        format!(
            "{{\"type\":\"step_finish\",\"sessionID\":\"ses_1\",\"part\":{{\"reason\":\"{reason}\
              \",\"tokens\":{{\"input\":10,\"output\":2,\"reasoning\":1,\"cache\":{{\"re\
              ad\":3,\"write\":4}}}},\"cost\":0.25}}}}"
        )
    };
    let text = r#"{"type":"text","sessionID":"ses_1","part":{"text":"hi"}}"#;
    let said = heard(
        &opencode::OpenCode,
        &format!("{}\n{text}\n{}\n", finish("tool-calls"), finish("stop")),
        "",
    );
    assert_eq!(
        (said.session.as_deref(), said.answer.as_deref(), end(&said)),
        (Some("ses_1"), Some("hi"), "well")
    );
    assert_eq!(
        (said.spent.input_tokens, said.spent.output_tokens, said.spent.usd),
        (20, 6, Some(Usd(500_000)))
    );
    assert_eq!(end(&heard(&opencode::OpenCode, &finish("tool-calls"), "")), "nothing");
    let error = |name: &str, data: &str| {
        format!(r#"{{"type":"error","error":{{"name":"{name}","data":{data}}}}}"#)
    };
    for (out, ended) in [
        (
            error(
                "APIError",
                "{\"message\":\"Rate limit\",\"statusCode\":429,\"responseHeaders\":{\"retry-afte\
                  r\":\"30\"}}",
            ),
            "rate_limited",
        ),
        (error("APIError", r#"{"message":"no","statusCode":401}"#), "auth"),
        (error("APIError", r#"{"message":"no","statusCode":500}"#), "server"),
        (error("ContextOverflowError", r#"{"message":"too much"}"#), "context_overflow"),
    ] {
        assert_eq!(end(&heard(&opencode::OpenCode, &out, "")), ended, "{out}");
    }
    let limited = error(
        "APIError",
        r#"{"message":"no","statusCode":429,"responseHeaders":{"retry-after":"30"}}"#,
    );
    assert!(
        heard(&opencode::OpenCode, &limited, "")
            .limit
            .unwrap()
            .words
            .unwrap()
            .contains("retry after 30s")
    );
    let missing =
        heard(&opencode::OpenCode, "", "\u{1b}[91m\u{1b}[1mError: \u{1b}[0mSession not found\n");
    assert_eq!(end(&missing), "session_missing");
}

#[test]
fn the_help_of_a_program_is_no_error_of_its_own() {
    let help = "Invalid --session-id: \"x\".\n\nUsage: qwen [options]\n\n  --auth  Authentication, \
                as for a rate limit\n";
    assert_eq!(heard(&claude::Qwen, "", help).closed, None);
    let error = "Reading additional input from stdin...\nError: no rollout found for thread x\n";
    let detail = "Error: no rollout found for thread x".to_owned();
    let missing = Closed::Badly { cause: Cause::SessionMissing, detail };
    assert_eq!(heard(&codex::Codex, "", error).closed, Some(missing));
}

#[test]
fn qwen_and_copilot_are_understood() {
    let qwen = "{\"type\":\"result\",\"subtype\":\"success\",\"session_id\":\"q-1\",\"is_error\":\
      false,\"result\":\"hi\",\"usage\":{\"input_tokens\":400,\"output_tokens\":9}}";
    let said = heard(&claude::Qwen, &format!("[{qwen}]\n"), "");
    assert_eq!(
        (said.session.as_deref(), end(&said), said.spent.input_tokens),
        (Some("q-1"), "well", 400)
    );
    assert_eq!((said.spent.usd, said.counting), (None, Counting::Session));
    let message = r#"{"type":"assistant.message","data":{"content":"hi"}}"#;
    let empty = r#"{"type":"assistant.message","data":{"content":""}}"#;
    let ended = |code: i32| {
        format!(r#"{{"type":"result","sessionId":"c-1","exitCode":{code},"usage":{{}}}}"#)
    };
    let said = heard(&copilot::Copilot, &format!("{message}\n{empty}\n{}\n", ended(0)), "");
    assert_eq!(
        (said.session.as_deref(), said.answer.as_deref(), end(&said)),
        (Some("c-1"), Some("hi"), "well")
    );
    let error = "{\"type\":\"session.error\",\"data\":{\"errorType\":\"rate_limit\",\"statusCode\
      \":429,\"message\":\"Last error: 429\"}}";
    assert_eq!(
        end(&heard(&copilot::Copilot, &format!("{error}\n{}\n", ended(1)), "")),
        "rate_limited"
    );
    assert_eq!(end(&heard(&copilot::Copilot, &ended(1), "")), "failed");
}

#[test]
fn aider_exits_with_0_and_its_words_are_all_there_is() {
    let said = heard(&aider::Aider, "Model: x\n\nhello\nTokens: 1.2k sent, 7 received.\n", "");
    assert_eq!((end(&said), said.spent.input_tokens, said.spent.output_tokens), ("well", 1200, 7));
    for (out, ended) in [
        (
            "litellm.AuthenticationError: AuthenticationError: OpenAIException - invalid\nx-api-k\
              ey\n",
            "auth",
        ),
        (
            "litellm.BadRequestError: OpenAIException - Your input exceeds the context window\n",
            "context_overflow",
        ),
        (
            "litellm.RateLimitError: RateLimitError: Rate limit reached\nRetrying in 8.0 seconds.\
              ..\n",
            "rate_limited",
        ),
        (
            "litellm.RateLimitError: Rate limit reached\nhello\nTokens: 5 sent, 7 received.\n",
            "well",
        ),
        ("I would say: litellm.AuthenticationError\n", "nothing"),
    ] {
        assert_eq!(end(&heard(&aider::Aider, out, "")), ended, "{out}");
    }
}

#[test]
fn the_notice_of_a_limit_is_heard_from_any_command_where_it_is_the_last_word() {
    let notice = "You've hit your session limit, resets 9pm (Europe/Stockholm)";
    let json =
        format!(r#"{{"type":"result","subtype":"success","is_error":false,"result":"{notice}"}}"#);
    for out in [notice, &format!("working\n{notice}\n"), &json, &format!("{json}\n\n")] {
        let said = heard(&command::Command, out, "");
        assert_eq!(end(&said), "usage_limit", "{out}");
        assert_eq!(said.limit.unwrap().words.as_deref(), Some(notice));
    }
    assert_eq!(end(&heard(&command::Command, &format!("{notice}\nnever mind\n"), "")), "nothing");
    assert_eq!(end(&heard(&command::Command, "", notice)), "usage_limit");
}

#[test]
fn a_described_program_is_read_by_its_pointers() {
    let reads = generic::Reads {
        session: Some("/id".into()),
        answer: Some("/out/text".into()),
        error: Some("/err".into()),
        input_tokens: Some("/n".into()),
        usd: Some("/usd".into()),
        limits: vec!["come back * later".into()],
        provider: Some("acme".into()),
        ..generic::Reads::default()
    };
    let acme = generic::Generic::new(reads);
    let said = heard(
        &acme,
        "{\"id\":\"x\",\"n\":5}\n{\"n\":6,\"usd\":0.5,\"out\":{\"text\":\"hi\"}}\n",
        "",
    );
    assert_eq!(
        (said.session.as_deref(), said.answer.as_deref(), end(&said)),
        (Some("x"), Some("hi"), "well")
    );
    assert_eq!((said.spent.input_tokens, said.spent.usd), (11, Some(Usd(500_000))));
    assert_eq!(
        end(&heard(&acme, "{\"err\":\"Please come back much later\"}\n", "")),
        "usage_limit"
    );
    let limit = heard(&acme, "", "Come back in an hour or later\n").limit.unwrap();
    assert_eq!(limit.provider, "acme");
    assert_eq!(end(&heard(&acme, "{\"err\":\"401 Unauthorized\"}\n", "")), "auth");
    assert_eq!(end(&heard(&acme, "{\"n\":1}\n", "")), "nothing");
}

const ORDER: Order<'_> = Order {
    command: &[],
    go_on_command: &[],
    prompt: "do it",
    model: Some("big"),
    system: Some("be kind"),
    system_file: Some("/s"),
    session: "new",
    permissions: Permissions::Edit,
    allow: &[],
    schema: Some("{}"),
    schema_file: Some("/j"),
    reads: None,
};

fn line(argv: &[String]) -> String {
    argv.join(" ")
}

#[test]
fn a_session_is_begun_and_continued_with_all_its_flags() {
    for (adapter, start, go_on) in [
        (&claude::Claude as &dyn Adapter, "--session-id new", "--resume old"),
        (&claude::Qwen, "--session-id new", "--resume old"),
        (&gemini::Gemini, "--session-id new", "--resume old"),
        (&copilot::Copilot, "--session-id=new", "--resume=old"),
        (&codex::Codex, "-s workspace-write", "resume old do it"),
        (&opencode::OpenCode, "--title onward new", "-s old"),
    ] {
        let (started, goes_on) =
            (line(&adapter.start(&ORDER)), line(&adapter.go_on("old", &ORDER)));
        assert!(started.contains(start) && !started.contains("old"), "{started}");
        assert!(goes_on.contains(go_on) && goes_on.contains("do it"), "{goes_on}");
        assert!(started.contains("big") && goes_on.contains("big"), "{goes_on}");
        let shared = |argv: &str| argv.split(' ').filter(|it| it.starts_with("--")).count();
        assert!(shared(&goes_on) + 1 >= shared(&started), "{started} / {goes_on}");
    }
    let codex = line(&codex::Codex.go_on("old", &ORDER));
    assert!(codex.find("-s workspace-write") < codex.find("resume"), "{codex}");
}

#[test]
fn each_word_of_permissions_has_flags_of_its_own() {
    let allow = ["Bash(git log:*)".to_owned()];
    for adapter in ADAPTERS.into_iter().filter(|it| it.card().program.is_some()) {
        let with = |permissions| {
            let order = Order { permissions, allow: &allow, ..ORDER };
            let env: Vec<String> =
                adapter.env(&order).into_iter().map(|(_, value)| value).collect();
            format!("{} {}", line(&adapter.start(&order)), env.join(" "))
        };
        let all = Permissions::ALL.map(with);
        assert!(all[0] != all[1] && all[1] != all[2] && all[0] != all[2], "{all:?}");
        let is_full = |text: &str| {
            ["bypass", "danger", "yolo", "--auto", "--allow-all"].iter().any(|it| text.contains(it))
        };
        assert!(!all[..2].iter().any(|it| is_full(it)), "{all:?}");
        assert_eq!(all[1].contains("git log"), adapter.card().names_tools, "{all:?}");
    }
}

#[test]
fn a_prompt_is_never_taken_for_an_option() {
    let order = Order { prompt: "--help", ..ORDER };
    for adapter in ADAPTERS.into_iter().filter(|it| it.card().program.is_some()) {
        assert!(!adapter.start(&order).contains(&"--help".to_owned()), "{adapter:?}");
    }
}

#[test]
fn a_line_is_told_in_words() {
    let tool = "{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"L\
      ook\"},{\"type\":\"tool_use\",\"name\":\"Bash\",\"input\":{\"command\":\"ls\"}}]}}";
    assert_eq!(claude::Claude.tell(tool), ["Look", "> Bash ls"]);
    let command = r#"{"type":"item.started","item":{"type":"command_execution","command":"ls"}}"#;
    assert_eq!(codex::Codex.tell(command), ["> ls"]);
    let piece = r#"{"type":"message","role":"assistant","content":"hi"}"#;
    assert_eq!(gemini::Gemini.tell(piece), ["hi"]);
    let tool = r#"{"type":"tool_use","part":{"tool":"bash","state":{"input":{"command":"ls"}}}}"#;
    assert_eq!(opencode::OpenCode.tell(tool), ["> bash ls"]);
    assert_eq!(claude::Claude.tell(r#"{"type":"user"}"#), Vec::<String>::new());
    assert_eq!(command::Command.tell("plain"), ["plain"]);
}

#[test]
fn an_adapter_is_found_by_the_nearer_name_and_has_one_name_of_its_own() {
    let configured = [("writer", "lines"), ("reader", "command")];
    let configured = configured.map(|(agent, name)| (agent.to_owned(), named(name).unwrap()));
    let configured = Adapters::from(configured);
    let commands: Commands = [("codex".to_owned(), vec!["x".to_owned()])].into();
    let name = |agent, program| adapter_of(agent, program, &configured, &commands).card().name;
    assert_eq!(name("writer", "claude"), "lines");
    assert_eq!(name("reader", "claude"), "command");
    assert_eq!(name("other", "claude"), "claude");
    assert_eq!(name("other", "codex"), "command");
    assert_eq!(name("other", "unheard-of"), "command");
    for adapter in ADAPTERS {
        assert_eq!(named(adapter.card().name).unwrap().card(), adapter.card());
    }
    assert!(named("no such").is_none());
    for program in ADAPTERS.into_iter().filter_map(|it| it.card().program) {
        assert!(onward_core::workflow::ADAPTERS.contains(&program), "`check` does not know it");
    }
}

#[test]
fn bytes_that_are_no_text_do_not_hide_the_end() {
    let end = b"{\"type\":\"result\",\"is_error\":false,\"result\":\"caf\xe9\"}\n";
    let mut said = Said::nothing_yet(true);
    claude::Claude.read(Stream::Out, end, &mut said);
    assert_eq!((said.answer.as_deref(), self::end(&said)), (Some("caf\u{fffd}"), "well"));
}

#[test]
fn no_output_makes_an_adapter_panic() {
    let junk: [&[u8]; 12] = [
        b"",
        b"\n\n",
        b"\0\0\0\n",
        b"{",
        b"{\"spent\":{\"usd\":1e999,\"input_tokens\":-1}}\n",
        b"{\"spent\":[],\"session\":7,\"answer\":{},\"limit\":3,\"error\":[],\"denied\":{}}\n",
        b"{\"limit\":{\"resets_at\":99999999999999999999}}\n",
        b"{\"limit\":{\"resets_at\":\"soon\",\"provider\":null}}\n",
        b"{\"type\":\"rate_limit_event\",\"rate_limit_info\":{\"status\":\"rejected\",\"resetsAt\
          \":1e300}}\n",
        b"{\"type\":7,\"item\":[],\"part\":\"x\",\"data\":null}\n[1,[],{}]\n",
        b"Tokens: k sent, . received.\nTokens: 9.\xff sent, 1 received.\n",
        b"\xff\xfe{\"answer\":\"x\"}\n[[[[\n",
    ];
    for adapter in ADAPTERS {
        let mut said = Said::nothing_yet(adapter.card().closes);
        for bytes in junk {
            adapter.read(Stream::Out, bytes, &mut said);
            adapter.read(Stream::Err, bytes, &mut said);
            adapter.tell(&String::from_utf8_lossy(bytes));
        }
        assert_eq!((said.answer, said.spent.input_tokens), (None, 0), "{adapter:?}");
    }
}
