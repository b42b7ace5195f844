//! `OpenCode`: errors have a name and a status; nothing is printed before the first step.

use serde_json::{Value, json};

use super::{
    Cell::{self, Fenced, Never},
    End, PLAIN_LIMIT, Program, Situation, complained, ended, seen,
};

const BEGUN: &str = r#"{"type":"step_start","sessionID":"SESSION","part":{}}"#;

fn said(answer: &str, reason: &str) -> String {
    let text = json!({"type": "text", "sessionID": "SESSION", "part": {"text": answer}});
    let end = json!({"type": "step_finish", "sessionID": "SESSION", "part": {"reason": reason}});
    format!("{BEGUN}\n{text}\n{end}")
}

fn failed(name: &str, data: &Value) -> String {
    json!({"type": "error", "sessionID": "SESSION", "error": {"name": name, "data": data}})
        .to_string()
}

fn api_error(status: u32, words: &str) -> String {
    failed("APIError", &json!({"message": words, "statusCode": status}))
}

/// A tool was called, and this was its error.
fn refused(error: &str) -> String {
    let call = json!({"type": "tool_use", "sessionID": "SESSION",
        "part": {"tool": "bash", "state": {"status": "error", "error": error}}});
    format!("{BEGUN}\n{call}\n{}", json!({"type": "step_finish", "part": {"reason": "tool-calls"}}))
}

pub(super) fn program() -> Program {
    let by_rule = refused(
        "The user has specified a rule which prevents you from using this specific tool call.",
    );
    let went_on = format!("{by_rule}\n{}", said("I could not.", "stop"));
    Program {
        name: "opencode",
        transcript: ".local/share/opencode/opencode.db",
        well: format!("{}\n", said("done", "stop")),
        result: format!("{}\n", said(r#"{"n":1}"#, "stop")),
        cell,
        also: vec![
            ("a tool denied by a rule", seen(went_on, 0, "permission_denied")),
            ("killed before its first event", ended("", End::Signal("KILL"), "crash")),
            ("a stream that was cut", seen(BEGUN, 0, "crash")),
            ("half an answer as its last word", seen(said("I be", "unknown"), 0, "crash")),
        ],
    }
}

fn cell(situation: Situation) -> Cell {
    match situation {
        Situation::LimitWithReset => {
            let data = json!({"message": "slow down", "statusCode": 429,
                "responseHeaders": {"retry-after": "3600"}});
            seen(failed("APIError", &data), 1, "rate_limited")
        }
        Situation::LimitWithoutReset => seen(api_error(429, "Rate limit"), 1, "rate_limited"),
        Situation::LimitInPlainWords => seen(PLAIN_LIMIT, 1, "usage_limit"),
        Situation::Status529 => seen(api_error(529, "Overloaded"), 1, "overloaded"),
        Situation::Status500 => seen(api_error(500, "Internal server error"), 1, "server"),
        Situation::Status401 => seen(api_error(401, "invalid x-api-key"), 1, "auth"),
        Situation::Overflow => {
            let data = json!({"message": "too much"});
            seen(failed("ContextOverflowError", &data), 1, "context_overflow")
        }
        // It asks again without an end.
        Situation::StreamDropped => ended(said("I be", "unknown"), End::Never, "timeout"),
        Situation::BudgetSpent => seen(api_error(402, "Insufficient credits"), 1, "budget"),
        Situation::TooManyTurns => Never("it has no cap on turns"),
        Situation::SchemaRefused => seen(said("no", "stop"), 0, "schema_violation"),
        // No one was there to be asked, and that was its end.
        Situation::ToolDenied => {
            let words = "The user rejected permission to use this specific tool call.";
            seen(refused(words), 0, "permission_denied")
        }
        Situation::Interrupt => ended(BEGUN, End::Signal("INT"), "crash"),
        Situation::Terminate => ended(BEGUN, End::Signal("TERM"), "crash"),
        Situation::Kill => ended(BEGUN, End::Signal("KILL"), "crash"),
        Situation::UnknownSession => complained("Session not found\n", 1, "session_missing"),
        Situation::UsedSession => Never("it chooses the id itself"),
        Situation::SecondWriter => Fenced,
    }
}
