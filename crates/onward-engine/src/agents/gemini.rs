//! Gemini CLI. It counts per process, and its answer comes in pieces.

use onward_core::{
    evidence::Cause,
    said::{Closed, Said, Spent},
    workflow::permissions::Permissions,
};
use serde_json::Value;

use super::{
    Adapter, Card, Entry, Order, Sessions, Stream,
    events::{self, count, text, words},
    notice,
};

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct Gemini;

const CARD: Card = Card {
    install: Some("npm install -g @google/gemini-cli"),
    sessions: Sessions::Chosen,
    // The name of the file has the beginning of the id alone.
    transcript: Some("~/.gemini/tmp/*/chats/session-*{session8}*"),
    credentials: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
    account: Some((".gemini/google_accounts.json", "/active")),
    ..Card::usual("gemini", "google")
};

impl Adapter for Gemini {
    fn card(&self) -> &Card {
        &CARD
    }

    fn argv(&self, order: &Order<'_>, entry: Entry<'_>) -> Vec<String> {
        let mut argv = words(&["gemini", "-o", "stream-json", "--skip-trust"]);
        argv.extend(entry.flag("--session-id", "--resume"));
        let mode = match order.permissions {
            Permissions::ReadOnly => "default",
            Permissions::Edit => "auto_edit",
            Permissions::Full => "yolo",
        };
        argv.push(format!("--approval-mode={mode}"));
        argv.extend(order.allow.iter().map(|tool| format!("--allowed-tools={tool}")));
        argv.extend(order.reads.map(|dir| format!("--include-directories={dir}")));
        argv.extend(order.model.map(|model| format!("--model={model}")));
        argv.extend(["-p".to_owned(), order.whole_prompt()]);
        argv
    }

    fn read(&self, from: Stream, lines: &[u8], said: &mut Said) {
        match from {
            Stream::Out => events::each(CARD.provider, lines, said, take),
            Stream::Err => {
                String::from_utf8_lossy(lines).lines().for_each(|line| take_error(line, said));
            }
        }
    }

    fn piece(&self, line: &str) -> Option<String> {
        let event: Value = serde_json::from_str(line).ok()?;
        let is_message = text(&event, "/type") == Some("message")
            && text(&event, "/role") == Some("assistant")
            && event.get("delta") == Some(&Value::Bool(true));
        is_message.then(|| text(&event, "/content").unwrap_or_default().to_owned())
    }

    fn tell(&self, line: &str) -> Vec<String> {
        events::told(line, |event| match (text(event, "/type"), text(event, "/role")) {
            (Some("message"), Some("assistant")) => events::said(event, "/content"),
            (Some("tool_use"), _) => {
                vec![events::tool(text(event, "/tool_name"), event.get("parameters"))]
            }
            (Some("error"), _) => {
                vec![format!("({})", notice::shortened(text(event, "/message").unwrap_or("")))]
            }
            (Some("result"), _) if text(event, "/status") == Some("error") => {
                vec![events::ended_badly(text(event, "/error/message"))]
            }
            _ => Vec::new(),
        })
    }
}

/// Its own tools that a person is asked about.
const ASKED_ABOUT: [&str; 4] = ["replace", "run_shell_command", "web_fetch", "write_file"];

fn take(event: &Value, said: &mut Said) {
    match text(event, "/type") {
        Some("init") => said.session = text(event, "/session_id").map(str::to_owned),
        Some("message") if text(event, "/role") == Some("assistant") => {
            let piece = text(event, "/content").unwrap_or("");
            let is_piece = event.get("delta") == Some(&Value::Bool(true));
            match &mut said.answer {
                Some(answer) if is_piece => answer.push_str(piece),
                Some(_) | None => said.answer = Some(piece.to_owned()),
            }
        }
        // What comes after a tool is another message.
        Some("tool_use") => {
            said.answer = None;
            if let Some((id, name)) = text(event, "/tool_id").zip(text(event, "/tool_name")) {
                said.calls.insert(id.to_owned(), name.to_owned());
            }
        }
        Some("tool_result") => {
            let tool = text(event, "/tool_id").and_then(|id| said.calls.remove(id));
            let tool = tool.as_deref().unwrap_or("a tool");
            match text(event, "/error/type") {
                Some("policy_violation") => said.deny(tool),
                // It is taken away from the model where no one can be asked about it.
                Some("tool_not_registered") if ASKED_ABOUT.contains(&tool) => said.deny(tool),
                Some(_) | None => {}
            }
        }
        // What follows says that it ended badly, and not why.
        Some("error") if text(event, "/severity") == Some("error") => {
            let words = text(event, "/message").unwrap_or("an error without words");
            notice::end_badly(said, CARD.provider, None, words);
        }
        Some("result") => {
            said.spent = spent(event.get("stats").unwrap_or(&Value::Null));
            if text(event, "/status") == Some("success") {
                said.closed = Some(Closed::Well);
                said.answer.get_or_insert_default();
            } else if let Some(words) = text(event, "/error/message") {
                notice::end_badly(said, CARD.provider, None, words);
            } else if !matches!(said.closed, Some(Closed::Badly { .. })) {
                notice::end_badly(said, CARD.provider, None, "it ended with an error");
            }
        }
        Some(_) | None => {}
    }
}

fn spent(stats: &Value) -> Spent {
    let cached = count(stats, "/cached");
    Spent {
        input_tokens: count(stats, "/input_tokens").saturating_sub(cached),
        output_tokens: count(stats, "/output_tokens"),
        cache_read_tokens: cached,
        cache_write_tokens: 0,
        usd: None,
    }
}

/// `Attempt 2 failed: …` is a notice of another try; the last word before it is stopped.
fn take_error(line: &str, said: &mut Said) {
    if said.closed.is_some() {
        return;
    }
    let cause = notice::cause_of(None, line);
    match cause {
        Some(Cause::SessionMissing | Cause::SessionBusy) => {
            notice::end_badly(said, CARD.provider, None, line);
        }
        // Before it begins, it says so here alone.
        Some(Cause::Auth) if said.session.is_none() => {
            notice::end_badly(said, CARD.provider, None, line);
        }
        Some(cause) if cause.is_limit() && line.starts_with("Attempt ") => {
            notice::end_with(said, CARD.provider, cause, line);
            said.closed = None;
        }
        Some(_) | None => {}
    }
}
