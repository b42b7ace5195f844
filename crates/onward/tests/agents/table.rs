//! Every situation against every agent program that can be in it: what it is, what becomes of the
//! run, and what the journal says. The programs are played by scripts that print small samples of
//! the shapes that the real ones print.

use serde_json::{Value, json};

use crate::stage::Stage;

/// How the program that plays ends.
enum End {
    Code(i32),
    Signal(&'static str),
}
use End::{Code, Signal};

/// What it prints to standard output and standard error, how it ends, and the cause that is.
type Row = (&'static str, String, &'static str, End, &'static str);

/// One program: its name, where it keeps a session, its answer to a task, its answer with a result.
struct Program {
    name: &'static str,
    transcript: &'static str,
    well: String,
    result: String,
}

/// Plays `sample.*` at the first call and `well` at the others. Its session is the one that it is
/// given, or one of its own for each call.
const PLAYER: &str = r#"#!/bin/sh
echo x >> "$ROOT/calls"
call=$(wc -l < "$ROOT/calls" | tr -d ' ')
id=told-$call
for arg; do
  case $before in --session-id|--resume|-s|resume) id=$arg;; esac
  case $arg in --session-id=*|--resume=*) id=${arg#*=};; esac
  before=$arg
done
file="$HOME/$(sed "s/SESSION8/$(echo $id | cut -c1-8)/; s/SESSION/$id/" "$ROOT/transcript")"
mkdir -p "$(dirname "$file")"; echo x >> "$file"
if [ $call = 1 ]; then
  sed "s/SESSION/$id/g" "$ROOT/sample.out"; cat "$ROOT/sample.err" >&2
  . "$ROOT/sample.end"
fi
sed "s/SESSION/$id/g" "$ROOT/well"
"#;

fn stage(program: &Program, row: &Row, step: &str) -> Stage {
    let (_, out, err, end, _) = row;
    let stage = Stage::empty();
    let root = stage.path("");
    let player = PLAYER.replace("$ROOT", root.to_str().unwrap().trim_end_matches('/'));
    stage.put(&format!("bin/{}", program.name), &player);
    stage.put("transcript", program.transcript);
    stage.put("sample.out", &format!("{out}\n"));
    stage.put("sample.err", err);
    let end = match end {
        Code(code) => format!("exit {code}"),
        Signal(name) => format!("kill -{name} $$; sleep 10"),
    };
    stage.put("sample.end", &format!("{end}\n"));
    let is_schema = step.contains("schema");
    stage.put("well", if is_schema { &program.result } else { &program.well });
    stage.put("s.json", r#"{"type":"object","required":["n"],"properties":{"n":{"const":1}}}"#);
    let name = program.name;
    let retry = "retry: { max: 1, backoff: 1ms }";
    let step = format!("{{ id: work, agent: {name}, prompt: Do it., {retry}{step} }}");
    stage.put("w.yaml", &format!("onward: 1\nname: w\nsteps: [{step}]\n"));
    stage
}

/// Runs it, and holds the run and its journal against what the cause leads to.
#[track_caller]
fn check(program: &Program, row: &Row) {
    let (what, _, _, _, cause) = row;
    let what = format!("{}: {what}", program.name);
    let step = if *cause == "schema_violation" { ", result: { schema: s.json }" } else { "" };
    let stage = stage(program, row, step);
    let goes_on_later = matches!(*cause, "overloaded" | "server" | "network");
    let code = if goes_on_later { interrupted(&stage) } else { stage.onward("run w.yaml --yes").0 };
    let finished = stage.of("attempt.finished");
    let found = &finished[0]["outcome"]["failed"]["cause"];
    assert_eq!(found, cause, "{what}: {}", stage.journal());
    let starts = stage.of("attempt.started");
    let ends = |kind: &str, field: &str| -> Value {
        stage.of(kind).first().map_or(Value::Null, |it| it[field].clone())
    };
    let (paused, ended) = (ends("run.paused", "cause"), ends("run.ended", "status"));
    let limits = stage.of("limit.hit").len();
    let seen = (code, starts.len(), paused, ended, limits);
    let expected = match *cause {
        // Parked: nothing is burned, and the limit is written down.
        "rate_limited" | "usage_limit" => (Some(12), 1, json!("limit"), Value::Null, 1),
        // It would have gone on after a while, besides its tries; it was interrupted meanwhile.
        "overloaded" | "server" | "network" => (Some(130), 1, json!("interrupted"), Value::Null, 0),
        // A person must do something first.
        "auth" | "budget" | "permission_denied" => (Some(11), 1, json!("person"), Value::Null, 0),
        // There is no session in which it could put the result right.
        "schema_violation" if program.name == "aider" => {
            (Some(10), 1, Value::Null, json!("failed"), 0)
        }
        // Another attempt, in a new session or to put the result right, or a plain retry.
        "context_overflow" | "session_missing" | "session_busy" | "schema_violation" | "crash" => {
            (Some(0), 2, Value::Null, json!("completed"), 0)
        }
        // No default retries these.
        "max_turns" | "failed" | "interrupted" => (Some(10), 1, Value::Null, json!("failed"), 0),
        other => panic!("{other} is no cause"),
    };
    assert_eq!(seen, expected, "{what}: {}", stage.journal());
    if let Some(second) = starts.get(1) {
        let repairs = *cause == "schema_violation";
        assert_eq!(second["continues"] == json!(true), repairs, "{what}: {second}");
        if !repairs {
            let brief = format!("Attempt 1 did not finish: {cause}");
            let prompt = stage.run_dir().unwrap().join("out/work.2.prompt");
            let prompt = std::fs::read_to_string(prompt).unwrap();
            assert!(prompt.starts_with("Do it.") && prompt.contains(&brief), "{what}: {prompt}");
            assert!(prompt.chars().count() < 6_500, "{what}");
        }
    }
}

fn check_all(program: &Program, rows: &[Row]) {
    for row in rows {
        check(program, row);
    }
}

/// Ends the run when its first attempt has ended.
fn interrupted(stage: &Stage) -> Option<i32> {
    let mut child = stage.start("run w.yaml --yes");
    onward_engine::care::harness::until("the first attempt to end", || {
        // Half a line at the end is one that is being written.
        Ok(stage.journal().contains("\"attempt.finished\"").then_some(()))
    })
    .unwrap();
    let id = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    child.wait().unwrap().code()
}

/// As a program says it that was not asked for JSON.
const PLAIN_LIMIT: &str = "You've hit your session limit \u{b7} resets 9pm (Europe/Stockholm)";

fn shaped(name: &'static str, transcript: &'static str) -> Program {
    let well = |rest: &str| {
        let fields = format!(r#""subtype":"success","is_error":false,"result":"done"{rest}"#);
        format!("{{\"type\":\"result\",\"session_id\":\"SESSION\",{fields}}}\n")
    };
    let result = well(r#","structured_output":{"n":1}"#);
    Program { name, transcript, well: well(""), result }
}

/// What the two programs that speak alike print in each situation.
fn shaped_rows() -> Vec<Row> {
    let init = r#"{"type":"system","subtype":"init","session_id":"SESSION"}"#;
    let end = |fields: &str| {
        format!("{init}\n{{\"type\":\"result\",\"session_id\":\"SESSION\",{fields}}}")
    };
    let bad = |status: u32, rest: &str| {
        end(&format!(
            "\"is_error\":true,\"terminal_reason\":\"api_error\",\
             \"api_error_status\":{status},{rest}"
        ))
    };
    let reset = "{\"type\":\"rate_limit_event\",\"rate_limit_info\":{\"status\":\"rejected\",\
                 \"resetsAt\":4102444800}}";
    let limit = r#""api_error":"usage_limit_reached","result":"You've hit your 5-hour limit""#;
    let well = r#""subtype":"success","is_error":false,"result":"#;
    vec![
        ("429", bad(429, r#""result":"Request rejected (429)""#), "", Code(1), "rate_limited"),
        ("429 with a reset", format!("{reset}\n{}", bad(429, limit)), "", Code(1), "usage_limit"),
        (
            "a limit as an answer",
            end(&format!("{well}\"You've hit your limit · resets 9pm (UTC)\"")),
            "",
            Code(0),
            "usage_limit",
        ),
        ("529", bad(529, r#""result":"Overloaded""#), "", Code(1), "overloaded"),
        ("500", bad(500, r#""result":"API Error: 500""#), "", Code(1), "server"),
        ("401", bad(401, r#""result":"Invalid API key""#), "", Code(1), "auth"),
        (
            "overflow",
            end(r#""is_error":true,"terminal_reason":"prompt_too_long","result":"too long""#),
            "",
            Code(1),
            "context_overflow",
        ),
        ("the stream dropped", init.to_owned(), "", Code(0), "crash"),
        ("the schema refused", end(&format!("{well}\"no\"")), "", Code(0), "schema_violation"),
        (
            "a tool denied",
            end(&format!("{well}\"no\",\"permission_denials\":[{{\"tool_name\":\"Write\"}}]")),
            "",
            Code(0),
            "permission_denied",
        ),
        (
            "too many turns",
            end(r#""subtype":"error_max_turns","is_error":true,"errors":["too many"]"#),
            "",
            Code(1),
            "max_turns",
        ),
        (
            "its own budget",
            end(r#""subtype":"error_max_budget_usd","is_error":true,"errors":["spent"]"#),
            "",
            Code(1),
            "budget",
        ),
        (
            "SIGINT",
            end(r#""is_error":true,"terminal_reason":"aborted_streaming","result":"""#),
            "",
            Code(0),
            "interrupted",
        ),
        ("SIGTERM", init.to_owned(), "", Code(143), "crash"),
        ("SIGKILL", init.to_owned(), "", Signal("KILL"), "crash"),
        (
            "an unknown session",
            String::new(),
            "No conversation found with session ID: x\n",
            Code(1),
            "session_missing",
        ),
        (
            "a used session",
            String::new(),
            "Error: Session ID x is already in use.\n",
            Code(1),
            "session_busy",
        ),
    ]
}

/// What they say in words: qwen has its own place for them.
fn shaped_words() -> Vec<Row> {
    let own = |words: &str| {
        let error = json!({"message": words});
        let subtype = "error_during_execution";
        json!({"type": "result", "subtype": subtype, "is_error": true, "session_id": "SESSION",
            "error": error})
        .to_string()
    };
    let refused = "Model produced plain text instead of a call, as required by --json-schema";
    vec![
        ("the schema refused, in words", own(refused), "", Code(1), "schema_violation"),
        ("401 in words", own("[API Error: 401 unauthorized]"), "", Code(1), "auth"),
        ("a limit in plain words", PLAIN_LIMIT.to_owned(), "", Code(1), "usage_limit"),
    ]
}

#[test]
fn claude() {
    let program = shaped("claude", ".claude/projects/p/SESSION.jsonl");
    check_all(&program, &shaped_rows());
    check_all(&program, &shaped_words());
}

#[test]
fn qwen() {
    let program = shaped("qwen", ".qwen/projects/p/chats/SESSION.jsonl");
    check_all(&program, &shaped_rows());
    check_all(&program, &shaped_words());
}

#[test]
fn codex() {
    let begun = r#"{"type":"thread.started","thread_id":"SESSION"}"#;
    let well = |text: &str| {
        format!(
            "{begun}\n{{\"type\":\"item.completed\",\"item\":{{\"type\":\"agent_message\",\
             \"text\":\"{text}\"}}}}\n{{\"type\":\"turn.completed\",\"usage\":{{}}}}\n"
        )
    };
    let failed = |words: &str| {
        let error = json!({"type": "turn.failed", "error": {"message": words}});
        format!("{begun}\n{{\"type\":\"error\",\"message\":\"Reconnecting... 1/1\"}}\n{error}")
    };
    let program = Program {
        name: "codex",
        transcript: ".codex/sessions/2026/11/17/rollout-1-SESSION.jsonl",
        well: well("done"),
        result: well(r#"{\"n\":1}"#),
    };
    let rows: Vec<Row> = vec![
        ("429", failed("last status: 429 Too Many Requests"), "", Code(1), "rate_limited"),
        (
            "429 with a reset",
            failed("You\u{2019}ve hit your usage limit. Try again at 7:19 PM."),
            "",
            Code(1),
            "usage_limit",
        ),
        ("a limit in plain words", PLAIN_LIMIT.to_owned(), "", Code(0), "usage_limit"),
        ("529", failed("unexpected status 529: Overloaded"), "", Code(1), "overloaded"),
        ("500", failed("We\u{2019}re currently experiencing high demand"), "", Code(1), "server"),
        ("the stream dropped", failed("stream disconnected"), "", Code(1), "network"),
        ("cut off", begun.to_owned(), "", Code(0), "crash"),
        ("401", failed("unexpected status 401 Unauthorized"), "", Code(1), "auth"),
        ("overflow", failed("code: context_length_exceeded"), "", Code(1), "context_overflow"),
        ("the schema refused", well("no").trim().to_owned(), "", Code(0), "schema_violation"),
        ("SIGTERM", begun.to_owned(), "", Signal("TERM"), "crash"),
        ("SIGKILL", begun.to_owned(), "", Signal("KILL"), "crash"),
        (
            "an unknown session",
            String::new(),
            "Error: no rollout found for thread id x\n",
            Code(1),
            "session_missing",
        ),
        (
            "a second writer",
            String::new(),
            "thread-store conflict: thread x already has an active writer\n",
            Code(1),
            "session_busy",
        ),
    ];
    check_all(&program, &rows);
}

#[test]
fn gemini() {
    let init = r#"{"type":"init","session_id":"SESSION"}"#;
    let well = |text: &str| {
        let message = json!({"type": "message", "role": "assistant", "content": text});
        format!("{init}\n{message}\n{{\"type\":\"result\",\"status\":\"success\"}}\n")
    };
    let failed = |words: &str| {
        let error = json!({"type": "result", "status": "error", "error": {"message": words}});
        format!("{init}\n{error}")
    };
    let program = Program {
        name: "gemini",
        transcript: ".gemini/tmp/p/chats/session-1-SESSION8.jsonl",
        well: well("done"),
        result: well(r#"{"n":1}"#),
    };
    let quota = "Attempt 2 failed: You exceeded your current quota. Retrying after 11259ms...\n";
    let rows: Vec<Row> = vec![
        ("429", init.to_owned(), quota, Code(1), "usage_limit"),
        ("a limit in plain words", PLAIN_LIMIT.to_owned(), "", Code(0), "usage_limit"),
        ("529", failed("the model is overloaded"), "", Code(1), "overloaded"),
        ("500", failed("internal server error"), "", Code(1), "server"),
        ("401", failed("API key not valid"), "", Code(145), "auth"),
        ("too many turns", failed("Reached max session turns"), "", Code(53), "max_turns"),
        ("overflow", failed("input is too long"), "", Code(1), "context_overflow"),
        ("the schema refused", well("no").trim().to_owned(), "", Code(0), "schema_violation"),
        ("SIGINT", init.to_owned(), "", Code(0), "crash"),
        ("SIGTERM", init.to_owned(), "", Signal("TERM"), "crash"),
        ("SIGKILL", init.to_owned(), "", Signal("KILL"), "crash"),
        (
            "an unknown session",
            String::new(),
            "Error resuming session: Invalid session identifier \"x\".\n",
            Code(42),
            "session_missing",
        ),
    ];
    check_all(&program, &rows);
}

#[test]
fn opencode() {
    let text = |text: &str| {
        let text = json!({"type": "text", "sessionID": "SESSION", "part": {"text": text}});
        let end =
            json!({"type": "step_finish", "sessionID": "SESSION", "part": {"reason": "stop"}});
        format!("{text}\n{end}\n")
    };
    let failed = |name: &str, data: Value| {
        json!({"type": "error", "sessionID": "SESSION", "error": {"name": name, "data": data}})
            .to_string()
    };
    let api = |status: u32, words: &str| {
        failed("APIError", json!({"message": words, "statusCode": status}))
    };
    let limited = json!({
        "message": "slow down", "statusCode": 429, "responseHeaders": {"retry-after": "3600"},
    });
    let begun = r#"{"type":"step_start","sessionID":"SESSION","part":{}}"#;
    let refused = json!({"type": "tool_use", "sessionID": "SESSION", "part": {"tool": "bash",
        "state": {"status": "error",
            "error": "The user rejected permission to use this specific tool call."}}});
    let calls = json!({"type": "step_finish", "part": {"reason": "tool-calls"}});
    let program = Program {
        name: "opencode",
        transcript: ".local/share/opencode/opencode.db",
        well: text("done"),
        result: text(r#"{"n":1}"#),
    };
    let rows: Vec<Row> = vec![
        ("429", api(429, "Rate limit"), "", Code(1), "rate_limited"),
        ("429 with a reset", failed("APIError", limited), "", Code(1), "rate_limited"),
        ("a limit in plain words", PLAIN_LIMIT.to_owned(), "", Code(1), "usage_limit"),
        ("529", api(529, "Overloaded"), "", Code(1), "overloaded"),
        ("500", api(500, "no"), "", Code(1), "server"),
        ("401", api(401, "no"), "", Code(1), "auth"),
        (
            "overflow",
            failed("ContextOverflowError", json!({"message": "too much"})),
            "",
            Code(1),
            "context_overflow",
        ),
        ("a tool denied", format!("{refused}\n{calls}"), "", Code(0), "permission_denied"),
        ("the stream dropped", begun.to_owned(), "", Code(0), "crash"),
        ("the schema refused", text("no").trim().to_owned(), "", Code(0), "schema_violation"),
        ("SIGTERM", begun.to_owned(), "", Signal("TERM"), "crash"),
        ("SIGINT", begun.to_owned(), "", Signal("INT"), "crash"),
        ("SIGKILL", begun.to_owned(), "", Signal("KILL"), "crash"),
        ("an unknown session", String::new(), "Session not found\n", Code(1), "session_missing"),
    ];
    check_all(&program, &rows);
}

#[test]
fn copilot() {
    let well = |text: &str| {
        let message = json!({"type": "assistant.message", "data": {"content": text}});
        let end = json!({"type": "result", "sessionId": "SESSION", "exitCode": 0});
        format!("{message}\n{end}\n")
    };
    let failed = |kind: &str, status: u32, words: &str| {
        let data = json!({"errorType": kind, "statusCode": status, "message": words});
        let end = json!({"type": "result", "sessionId": "SESSION", "exitCode": 1});
        format!("{}\n{end}", json!({"type": "session.error", "data": data}))
    };
    let begun = r#"{"type":"session.start","data":{}}"#;
    let program = Program {
        name: "copilot",
        transcript: ".copilot/session-state/SESSION/events.jsonl",
        well: well("done"),
        result: well(r#"{"n":1}"#),
    };
    let rows: Vec<Row> = vec![
        ("429", failed("rate_limit", 429, "slow down"), "", Code(1), "rate_limited"),
        ("a limit in plain words", PLAIN_LIMIT.to_owned(), "", Code(0), "usage_limit"),
        ("529", failed("api", 529, "no"), "", Code(1), "overloaded"),
        ("500", failed("api", 500, "no"), "", Code(1), "server"),
        ("401", failed("api", 401, "no"), "", Code(1), "auth"),
        ("overflow", failed("api", 400, "maximum context length"), "", Code(1), "context_overflow"),
        ("the stream dropped", begun.to_owned(), "", Code(0), "crash"),
        ("the schema refused", well("no").trim().to_owned(), "", Code(0), "schema_violation"),
        ("SIGTERM", begun.to_owned(), "", Signal("TERM"), "crash"),
        ("SIGKILL", begun.to_owned(), "", Signal("KILL"), "crash"),
        ("a second writer", String::new(), "the session is locked\n", Code(1), "session_busy"),
    ];
    check_all(&program, &rows);
}

#[test]
fn aider() {
    let message = |text: &str| {
        format!("Aider v0\nRepo-map: disabled\n\n{text}\nTokens: 1.2k sent, 7 received.\n")
    };
    let program = Program {
        name: "aider",
        transcript: ".aider",
        well: "done\nTokens: 1.2k sent, 7 received.\n".to_owned(),
        result: message("```json\n{\"n\": 1}\n```"),
    };
    let rows: Vec<Row> = vec![
        ("429", "litellm.RateLimitError: too many requests".into(), "", Code(0), "rate_limited"),
        (
            "429 with a reset",
            "The API provider says:\nYou've hit your usage limit, resets 9pm (UTC)".into(),
            "",
            Code(0),
            "usage_limit",
        ),
        ("a limit as an answer", message(PLAIN_LIMIT), "", Code(0), "usage_limit"),
        ("the schema refused", message("no"), "", Code(0), "schema_violation"),
        ("500", "litellm.InternalServerError: server_error".into(), "", Code(0), "server"),
        ("401", "litellm.AuthenticationError: invalid x-api-key".into(), "", Code(0), "auth"),
        (
            "overflow",
            "litellm.ContextWindowExceededError: context window".into(),
            "",
            Code(0),
            "context_overflow",
        ),
        ("SIGTERM", "working".into(), "", Signal("TERM"), "crash"),
        ("SIGKILL", "working".into(), "", Signal("KILL"), "crash"),
    ];
    check_all(&program, &rows);
    let row = ("a result", program.result.clone(), "", Code(0), "");
    stage(&program, &row, ", result: { schema: s.json }").exits("run w.yaml --yes", 0);
}

#[test]
fn a_session_is_found_where_the_user_has_the_program_keep_it() {
    let program = shaped("claude", "../moved/projects/p/SESSION.jsonl");
    let rows = shaped_rows();
    let row = rows.iter().find(|it| it.0 == "the schema refused").unwrap();
    let stage = stage(&program, row, ", result: { schema: s.json }");
    let mut command = stage.command("run w.yaml --yes");
    let status = command.env("CLAUDE_CONFIG_DIR", stage.path("moved")).status().unwrap();
    assert_eq!(status.code(), Some(0), "{}", stage.journal());
    let starts = stage.of("attempt.started");
    assert_eq!(starts[1]["continues"], json!(true), "{}", starts[1]);
}
