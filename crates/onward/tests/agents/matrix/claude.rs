//! Claude Code: a `result` says how it ended, and the exit code does not always agree.

use serde_json::{Value, json};

use super::{
    Cell::{self, Fenced},
    End, PLAIN_LIMIT, Program, Situation, complained, ended, seen,
};

const INIT: &str = r#"{"type":"system","subtype":"init","session_id":"SESSION"}"#;

/// A last line with these fields.
pub(super) fn result(fields: &Value) -> String {
    let mut result = json!({"type": "result", "session_id": "SESSION"});
    result.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    format!("{INIT}\n{result}")
}

pub(super) fn well(answer: &str) -> String {
    result(&json!({"subtype": "success", "is_error": false, "result": answer}))
}

fn api_error(status: u32, words: &str) -> String {
    result(&json!({"subtype": "success", "is_error": true, "terminal_reason": "api_error",
        "api_error_status": status, "result": words}))
}

pub(super) fn program() -> Program {
    let structured = json!({"subtype": "success", "is_error": false, "result": "done",
        "structured_output": {"n": 1}});
    Program {
        name: "claude",
        transcript: ".claude/projects/p/SESSION.jsonl",
        well: format!("{}\n", well("done")),
        result: format!("{}\n", result(&structured)),
        cell,
        also: vec![
            (
                "a limit as its answer",
                seen(well("You've hit your limit · resets 9pm (UTC)"), 0, "usage_limit"),
            ),
            ("no login", seen(api_error(401, "Not logged in"), 1, "auth")),
            ("a stream that was cut", seen(INIT, 0, "crash")),
        ],
    }
}

fn cell(situation: Situation) -> Cell {
    match situation {
        Situation::LimitWithReset => {
            let reset = json!({"type": "rate_limit_event",
                "rate_limit_info": {"status": "rejected", "resetsAt": 4_102_444_800_u64}});
            let end = result(&json!({"is_error": true, "api_error_status": 429,
                "api_error": "usage_limit_reached", "result": "You've hit your 5-hour limit"}));
            seen(format!("{reset}\n{end}"), 1, "usage_limit")
        }
        Situation::LimitWithoutReset => {
            seen(api_error(429, "Request rejected (429)"), 1, "rate_limited")
        }
        Situation::LimitInPlainWords => seen(PLAIN_LIMIT, 1, "usage_limit"),
        Situation::Status529 => seen(api_error(529, "Repeated 529"), 1, "overloaded"),
        Situation::Status500 => seen(api_error(500, "API Error: 500"), 1, "server"),
        Situation::Status401 => seen(api_error(401, "Invalid API key"), 1, "auth"),
        Situation::Overflow => {
            let end = json!({"is_error": true, "terminal_reason": "prompt_too_long",
                "result": "Prompt is too long"});
            seen(result(&end), 1, "context_overflow")
        }
        // It asks once more without a stream; when that fails too, it says so.
        Situation::StreamDropped => {
            let end = json!({"is_error": true, "terminal_reason": "api_error",
                "result": "API Error: Connection error."});
            seen(result(&end), 1, "network")
        }
        Situation::BudgetSpent => {
            let end = json!({"subtype": "error_max_budget_usd", "is_error": true,
                "errors": ["spent"]});
            seen(result(&end), 1, "budget")
        }
        Situation::TooManyTurns => {
            let end = json!({"subtype": "error_max_turns", "is_error": true,
                "errors": ["too many"]});
            seen(result(&end), 1, "max_turns")
        }
        Situation::SchemaRefused => seen(well("no"), 0, "schema_violation"),
        Situation::ToolDenied => {
            let end = json!({"subtype": "success", "is_error": false, "result": "I could not.",
                "permission_denials": [{"tool_name": "Write"}]});
            seen(result(&end), 0, "permission_denied")
        }
        Situation::Interrupt => {
            let end = json!({"is_error": true, "terminal_reason": "aborted_streaming",
                "result": ""});
            seen(result(&end), 0, "interrupted")
        }
        Situation::Terminate => seen(INIT, 143, "crash"),
        Situation::Kill => ended(INIT, End::Signal("KILL"), "crash"),
        Situation::UnknownSession => {
            complained("No conversation found with session ID: x\n", 1, "session_missing")
        }
        Situation::UsedSession => {
            complained("Error: Session ID x is already in use.\n", 1, "session_busy")
        }
        Situation::SecondWriter => Fenced,
    }
}
