//! GitHub Copilot CLI. Its errors have a type and a status; it says nothing of tokens.

use onward_core::{
    evidence::Cause,
    said::{Closed, Said},
    workflow::permissions::Permissions,
};
use serde_json::Value;

use super::{
    Adapter, Card, Cost, Entry, Order, Sessions, Stream,
    events::{self, text, words},
    notice,
    shaped::read_errors,
};

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct Copilot;

const CARD: Card = Card {
    install: Some("npm install -g @github/copilot"),
    sessions: Sessions::Chosen,
    transcript: Some("~/.copilot/session-state/{session}/events.jsonl"),
    cost: Cost::Unknown,
    credentials: &["COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN"],
    moved_by: Some(("COPILOT_HOME", ".copilot")),
    ..Card::usual("copilot", "github")
};

impl Adapter for Copilot {
    fn card(&self) -> &Card {
        &CARD
    }

    fn argv(&self, order: &Order<'_>, entry: Entry<'_>) -> Vec<String> {
        let mut argv = words(&["copilot", "--output-format", "json", "--no-auto-update"]);
        argv.push(entry.flag("--session-id", "--resume").join("="));
        argv.extend(match order.permissions {
            // It takes the directory for temporary files for its own otherwise.
            Permissions::ReadOnly => words(&["--deny-tool=write", "--disallow-temp-dir"]),
            Permissions::Edit => words(&["--allow-tool=write", "--disallow-temp-dir"]),
            Permissions::Full => words(&["--allow-all-tools", "--allow-all-paths"]),
        });
        argv.extend(order.allow.iter().map(|tool| format!("--allow-tool={tool}")));
        argv.extend(order.reads.map(|dir| format!("--add-dir={dir}")));
        argv.extend(order.model.map(|model| format!("--model={model}")));
        argv.extend(["-p".to_owned(), order.whole_prompt()]);
        argv
    }

    fn read(&self, from: Stream, lines: &[u8], said: &mut Said) {
        match from {
            Stream::Out => events::each(CARD.provider, lines, said, take),
            Stream::Err => read_errors(CARD.provider, lines, said),
        }
    }

    fn tell(&self, line: &str) -> Vec<String> {
        events::told(line, |event| match text(event, "/type") {
            Some("assistant.message") => events::said(event, "/data/content"),
            Some("tool.execution_start") => {
                vec![events::tool(text(event, "/data/toolName"), event.pointer("/data/arguments"))]
            }
            Some("session.error") => vec![events::ended_badly(text(event, "/data/message"))],
            Some(_) | None => Vec::new(),
        })
    }
}

fn take(event: &Value, said: &mut Said) {
    match text(event, "/type") {
        Some("assistant.message") => {
            let words = text(event, "/data/content").filter(|it| !it.is_empty());
            said.answer = words.map(str::to_owned).or_else(|| said.answer.take());
        }
        Some("tool.execution_start") => {
            let name = text(event, "/data/toolName");
            if let Some((id, name)) = text(event, "/data/toolCallId").zip(name) {
                said.calls.insert(id.to_owned(), name.to_owned());
            }
        }
        Some("tool.execution_complete") => {
            let tool = text(event, "/data/toolCallId").and_then(|id| said.calls.remove(id));
            if text(event, "/data/error/code") == Some("denied") {
                said.deny(tool.as_deref().unwrap_or("a tool"));
            }
        }
        // Its result says that all is well nevertheless.
        Some("abort") => notice::end_interrupted(said),
        Some("session.error") => {
            let words = text(event, "/data/message").unwrap_or("an error without words");
            let status = event.pointer("/data/statusCode").and_then(Value::as_u64);
            match text(event, "/data/errorType") {
                Some("rate_limit")
                    if notice::cause_of(status, words) != Some(Cause::UsageLimit) =>
                {
                    notice::end_with(said, CARD.provider, Cause::RateLimited, words);
                }
                Some(_) | None => notice::end_badly(said, CARD.provider, status, words),
            }
        }
        Some("result") => {
            if let Some(session) = text(event, "/sessionId") {
                said.session = Some(session.to_owned());
            }
            let code = event.get("exitCode").and_then(Value::as_i64);
            match (&said.closed, code) {
                (Some(Closed::Badly { .. }), _) => {}
                (_, Some(0) | None) => {
                    said.answer.get_or_insert_default();
                    said.closed = Some(Closed::Well);
                }
                (_, Some(code)) => {
                    notice::end_badly(said, CARD.provider, None, &format!("exit code {code}"));
                }
            }
        }
        Some(_) | None => {}
    }
}
