//! Qwen Code: it speaks like Claude Code, but gives an error of the provider as its answer, and
//! ends as if all were well.

use serde_json::json;

use super::{
    Cell::{self, Fenced, Never},
    End, PLAIN_LIMIT, Program, Situation,
    claude::{result, well},
    complained, ended, seen,
};

const INIT: &str = r#"{"type":"system","subtype":"init","session_id":"SESSION"}"#;

/// Nothing was counted, and the error stands behind what the model had said.
fn api_error(before: &str, words: &str) -> String {
    let answer = format!("{before}[API Error: {words}]");
    let message = json!({"type": "assistant", "session_id": "SESSION", "message": {
        "content": [{"type": "text", "text": answer}],
        "usage": {"input_tokens": 0, "output_tokens": 0}}});
    format!("{INIT}\n{message}\n{}", well(&answer))
}

fn failed(words: &str) -> String {
    result(&json!({"subtype": "error_during_execution", "is_error": true,
        "error": {"message": words}}))
}

pub(super) fn program() -> Program {
    let structured = json!({"subtype": "success", "is_error": false, "result": "done",
        "structured_output": {"n": 1}});
    Program {
        name: "qwen",
        transcript: ".qwen/projects/p/chats/SESSION.jsonl",
        well: format!("{}\n", well("done")),
        result: format!("{}\n", result(&structured)),
        cell,
        also: vec![
            ("429 at last", seen(api_error("", "429 slow down"), 0, "rate_limited")),
            ("401 as a failure", seen(failed("[API Error: 401 unauthorized]"), 1, "auth")),
            ("a result without the schema", seen(well("no"), 0, "schema_violation")),
            ("a stream that was cut", seen(INIT, 0, "crash")),
        ],
    }
}

fn cell(situation: Situation) -> Cell {
    match situation {
        Situation::LimitWithReset => Never("it does not say when a limit is lifted"),
        // It asks again and again, and says nothing for many minutes.
        Situation::LimitWithoutReset => ended(INIT, End::Never, "timeout"),
        Situation::LimitInPlainWords => seen(PLAIN_LIMIT, 1, "usage_limit"),
        Situation::Status529 => seen(api_error("", "529 Overloaded"), 0, "overloaded"),
        Situation::Status500 => seen(api_error("", "500 Internal server error"), 0, "server"),
        Situation::Status401 => seen(api_error("", "401 invalid x-api-key"), 0, "auth"),
        Situation::Overflow => {
            let words = "400 Your input exceeds the context window of this model.";
            seen(api_error("", words), 0, "context_overflow")
        }
        Situation::StreamDropped => {
            let words = "Model stream ended without a finish reason.";
            seen(api_error("I be", words), 0, "network")
        }
        Situation::BudgetSpent => Never("it has no cap on money"),
        Situation::TooManyTurns => {
            complained("Reached max session turns for this session.\n", 53, "max_turns")
        }
        Situation::SchemaRefused => {
            let words = "Model produced plain text instead of a call, as required by --json-schema";
            seen(failed(words), 1, "schema_violation")
        }
        Situation::ToolDenied => {
            let end = json!({"subtype": "success", "is_error": false, "result": "I could not.",
                "permission_denials": [{"tool_name": "write_file"}]});
            seen(result(&end), 0, "permission_denied")
        }
        Situation::Interrupt => ended(INIT, End::Signal("INT"), "crash"),
        Situation::Terminate => ended(INIT, End::Signal("TERM"), "crash"),
        Situation::Kill => ended(INIT, End::Signal("KILL"), "crash"),
        Situation::UnknownSession => {
            complained("No saved session found with ID x.\n", 1, "session_missing")
        }
        Situation::UsedSession => {
            complained("Error: Session Id x is already in use.\n", 1, "session_busy")
        }
        Situation::SecondWriter => Fenced,
    }
}
