//! Gemini CLI: errors have words alone, and an interrupt leaves no trace.

use serde_json::{Value, json};

use super::{
    Cell::{self, Fenced, Never},
    End, PLAIN_LIMIT, Program, Sample, Situation, complained, ended, seen,
};

const INIT: &str = r#"{"type":"init","session_id":"SESSION"}"#;

fn well(answer: &str) -> String {
    let message = json!({"type": "message", "role": "assistant", "content": answer});
    let end = json!({"type": "result", "status": "success", "stats": {}});
    format!("{INIT}\n{message}\n{end}")
}

fn failed(words: &str) -> String {
    let message = format!("[API Error: {words}]");
    let end = json!({"type": "result", "status": "error", "error": {"message": message}});
    format!("{INIT}\n{end}")
}

/// A tool was called, and this was its error; then it ended well.
fn refused(error: &Value) -> String {
    let call = json!({"type": "tool_use", "tool_name": "run_shell_command", "tool_id": "t1"});
    let answer = json!({"type": "tool_result", "tool_id": "t1", "status": "error", "error": error});
    well("I could not.").replacen(INIT, &format!("{INIT}\n{call}\n{answer}"), 1)
}

pub(super) fn program() -> Program {
    let unknown = refused(&json!({"type": "tool_not_registered", "message": "no such tool"}));
    Program {
        name: "gemini",
        transcript: ".gemini/tmp/p/chats/session-1-SESSION8.jsonl",
        well: format!("{}\n", well("done")),
        result: format!("{}\n", well(r#"{"n":1}"#)),
        cell,
        also: vec![
            ("a tool taken away", seen(unknown, 0, "permission_denied")),
            ("no login", complained("Invalid auth method selected.\n", 41, "auth")),
            (
                "a limit while it tries again",
                Cell::Seen(Sample {
                    out: INIT.to_owned(),
                    err: "Attempt 2 failed: You exceeded your current quota\n",
                    end: End::Never,
                    cause: "usage_limit",
                }),
            ),
        ],
    }
}

fn cell(situation: Situation) -> Cell {
    match situation {
        Situation::LimitWithReset => {
            let words = "You exceeded your current quota\nSuggested retry after 3600s.";
            seen(failed(words), 173, "usage_limit")
        }
        Situation::LimitWithoutReset => {
            seen(failed("You exceeded your current quota"), 173, "usage_limit")
        }
        Situation::LimitInPlainWords => seen(PLAIN_LIMIT, 0, "usage_limit"),
        Situation::Status529 => {
            seen(failed(r#"{"error":{"type":"overloaded_error"}}"#), 1, "overloaded")
        }
        Situation::Status500 => {
            seen(failed(r#"{"error":{"message":"Internal server error"}}"#), 1, "server")
        }
        Situation::Status401 => {
            seen(failed(r#"{"error":{"type":"authentication_error"}}"#), 145, "auth")
        }
        Situation::Overflow => {
            seen(failed("Your input exceeds the context window"), 144, "context_overflow")
        }
        Situation::StreamDropped => {
            let error = json!({"type": "error", "severity": "error",
                "message": "Model stream ended without a finish reason."});
            let end = json!({"type": "result", "status": "error", "stats": {}});
            seen(format!("{INIT}\n{error}\n{end}"), 0, "network")
        }
        Situation::BudgetSpent => Never("it has no cap on money"),
        Situation::TooManyTurns => {
            let end = json!({"type": "result", "status": "error",
                "error": {"message": "Reached max session turns for this session."}});
            seen(format!("{INIT}\n{end}"), 53, "max_turns")
        }
        Situation::SchemaRefused => seen(well("no"), 0, "schema_violation"),
        Situation::ToolDenied => {
            let error = json!({"type": "policy_violation", "message": "denied by policy"});
            seen(refused(&error), 0, "permission_denied")
        }
        // Exit code 0, and nothing said.
        Situation::Interrupt | Situation::Terminate => seen(INIT, 0, "crash"),
        Situation::Kill => ended(INIT, End::Signal("KILL"), "crash"),
        Situation::UnknownSession => complained(
            "Error resuming session: Invalid session identifier \"x\".\n",
            42,
            "session_missing",
        ),
        Situation::UsedSession => complained(
            "Error starting session: Session ID \"x\" already exists. Use --resume to resume it.\n",
            42,
            "session_busy",
        ),
        Situation::SecondWriter => Fenced,
    }
}
