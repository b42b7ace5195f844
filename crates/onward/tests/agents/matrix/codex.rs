//! Codex: `turn.failed` has words and no code, and every failure is exit code 1.

use serde_json::json;

use super::{
    Cell::{self, Never},
    End, PLAIN_LIMIT, Program, Sample, Situation, complained, ended, seen,
};

/// A turn has begun.
const BEGUN: &str = "{\"type\":\"thread.started\",\"thread_id\":\"SESSION\"}\n\
                     {\"type\":\"turn.started\"}";

fn well(answer: &str) -> String {
    let message = json!({"type": "item.completed",
        "item": {"type": "agent_message", "text": answer}});
    let end = json!({"type": "turn.completed", "usage": {}});
    format!("{BEGUN}\n{message}\n{end}")
}

fn failed(words: &str) -> String {
    let again = json!({"type": "error", "message": "Reconnecting... 1/1"});
    let end = json!({"type": "turn.failed", "error": {"message": words}});
    format!("{BEGUN}\n{again}\n{end}")
}

pub(super) fn program() -> Program {
    let declined = json!({"type": "item.completed",
        "item": {"type": "command_execution", "status": "declined"}});
    Program {
        name: "codex",
        transcript: ".codex/sessions/2026/11/17/rollout-1-SESSION.jsonl",
        well: format!("{}\n", well("done")),
        result: format!("{}\n", well(r#"{"n":1}"#)),
        cell,
        also: vec![
            ("no key", seen(failed("Missing environment variable: `KEY`."), 1, "auth")),
            ("a stream that was cut", seen(BEGUN, 0, "crash")),
            ("a panic", seen(BEGUN, 101, "failed")),
            (
                "a command declined",
                seen(format!("{declined}\n{}", well("no")), 0, "permission_denied"),
            ),
            (
                "no trusted directory",
                complained("Not inside a trusted directory\n", 1, "permission_denied"),
            ),
        ],
    }
}

fn cell(situation: Situation) -> Cell {
    match situation {
        Situation::LimitWithReset => {
            let words = "You\u{2019}ve hit your usage limit. Try again at 7:19 PM.";
            seen(failed(words), 1, "usage_limit")
        }
        Situation::LimitWithoutReset => {
            seen(failed("last status: 429 Too Many Requests"), 1, "rate_limited")
        }
        Situation::LimitInPlainWords => seen(PLAIN_LIMIT, 0, "usage_limit"),
        Situation::Status529 => seen(failed("unexpected status 529: Overloaded"), 1, "overloaded"),
        Situation::Status500 => {
            seen(failed("We\u{2019}re currently experiencing high demand"), 1, "server")
        }
        Situation::Status401 => seen(failed("unexpected status 401 Unauthorized"), 1, "auth"),
        Situation::Overflow => seen(failed("code: context_length_exceeded"), 1, "context_overflow"),
        Situation::StreamDropped => {
            seen(failed("stream disconnected before completion"), 1, "network")
        }
        Situation::BudgetSpent => Never("it has no cap on money"),
        Situation::TooManyTurns => Never("it has no cap on turns"),
        Situation::SchemaRefused => seen(well("no"), 0, "schema_violation"),
        // The model is told, and standard error.
        Situation::ToolDenied => Cell::Seen(Sample {
            out: well("I could not."),
            err: "ERROR codex_core::tools::router: error=patch rejected: writing is blocked\n",
            end: End::Code(0),
            cause: "permission_denied",
        }),
        // It tidies up, and says no more.
        Situation::Interrupt => seen(BEGUN, 1, "interrupted"),
        Situation::Terminate => ended(BEGUN, End::Signal("TERM"), "crash"),
        Situation::Kill => ended(BEGUN, End::Signal("KILL"), "crash"),
        Situation::UnknownSession => {
            complained("Error: no rollout found for thread id x\n", 1, "session_missing")
        }
        Situation::UsedSession => Never("it chooses the id itself"),
        Situation::SecondWriter => {
            complained("Error: thread x already has an active writer\n", 1, "session_busy")
        }
    }
}
