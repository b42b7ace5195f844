//! GitHub Copilot CLI: errors have a type and a status; an interrupt is told, and the result says
//! that all is well.

use serde_json::{Value, json};

use super::{
    Cell::{self, Fenced, Never},
    End, PLAIN_LIMIT, Program, Situation, complained, ended, seen,
};

const BEGUN: &str = r#"{"type":"assistant.turn_start","data":{}}"#;

fn result(code: i32) -> Value {
    json!({"type": "result", "sessionId": "SESSION", "exitCode": code})
}

fn well(answer: &str) -> String {
    let message = json!({"type": "assistant.message", "data": {"content": answer}});
    format!("{BEGUN}\n{message}\n{}", result(0))
}

fn failed(data: &Value) -> String {
    let error = json!({"type": "session.error", "data": data});
    format!("{BEGUN}\n{error}\n{}", result(1))
}

fn status(kind: &str, status: u32, words: &str) -> String {
    failed(&json!({"errorType": kind, "statusCode": status, "message": words}))
}

/// The result of a turn that another program broke off.
fn aborted() -> String {
    let abort = json!({"type": "abort", "data": {"reason": "user_initiated"}});
    format!("{BEGUN}\n{abort}\n{}", result(0))
}

pub(super) fn program() -> Program {
    Program {
        name: "copilot",
        transcript: ".copilot/session-state/SESSION/events.jsonl",
        well: format!("{}\n", well("done")),
        result: format!("{}\n", well(r#"{"n":1}"#)),
        cell,
        also: vec![
            ("interrupted, with exit code 0", seen(aborted(), 0, "interrupted")),
            ("a stream that was cut", seen(BEGUN, 0, "crash")),
            ("another lock", complained("the session is locked\n", 1, "session_busy")),
        ],
    }
}

fn cell(situation: Situation) -> Cell {
    match situation {
        Situation::LimitWithReset => {
            let words = "429 Rate limit reached. Please try again in 3600s.";
            seen(status("rate_limit", 429, words), 1, "rate_limited")
        }
        Situation::LimitWithoutReset => {
            seen(status("rate_limit", 429, "slow down"), 1, "rate_limited")
        }
        Situation::LimitInPlainWords => seen(PLAIN_LIMIT, 0, "usage_limit"),
        Situation::Status529 => {
            seen(status("query", 529, "Last error: 529 Overloaded"), 1, "overloaded")
        }
        Situation::Status500 => seen(status("query", 500, "Last error: 500"), 1, "server"),
        Situation::Status401 => {
            seen(status("authentication", 401, "Authentication failed"), 1, "auth")
        }
        Situation::Overflow => {
            let words = "The provider rejected the prompt as too long.";
            seen(failed(&json!({"errorType": "query", "message": words})), 1, "context_overflow")
        }
        Situation::StreamDropped => {
            let words = "Last error: Failed to finalize chat-completions stream";
            seen(failed(&json!({"errorType": "query", "message": words})), 1, "network")
        }
        Situation::BudgetSpent => seen(status("quota", 402, "No credits left"), 1, "budget"),
        Situation::TooManyTurns => Never("it has no cap on turns for one prompt"),
        Situation::SchemaRefused => seen(well("no"), 0, "schema_violation"),
        Situation::ToolDenied => {
            let call = json!({"type": "tool.execution_start",
                "data": {"toolCallId": "t1", "toolName": "create"}});
            let refused = json!({"type": "tool.execution_complete", "data": {"toolCallId": "t1",
                "success": false, "error": {"message": "denied", "code": "denied"}}});
            let out = format!("{call}\n{refused}\n{}", well("I could not."));
            seen(out, 0, "permission_denied")
        }
        Situation::Interrupt => ended(aborted(), End::Signal("INT"), "interrupted"),
        Situation::Terminate => ended(aborted(), End::Signal("TERM"), "interrupted"),
        Situation::Kill => ended(BEGUN, End::Signal("KILL"), "crash"),
        Situation::UnknownSession => {
            complained("Error: No session, task, or name matched 'x'.\n", 1, "session_missing")
        }
        Situation::UsedSession => Never("it goes on in the session of that id"),
        Situation::SecondWriter => Fenced,
    }
}
