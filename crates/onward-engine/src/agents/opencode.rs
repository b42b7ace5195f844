//! `OpenCode`. It counts per step, and its errors have a name and a status.

use onward_core::{
    evidence::{Cause, Usd},
    said::{Closed, Said, Spent},
    workflow::permissions::Permissions,
};
use serde_json::{Map, Value, json};

use super::{
    Adapter, Card, Cost, Entry, Order, Sessions, Stream,
    events::{self, count, options, text, words},
    notice,
    shaped::read_errors,
};

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct OpenCode;

const CARD: Card = Card {
    install: Some("npm install -g opencode-ai"),
    sessions: Sessions::Told,
    // One file has all of them; a session that is not in it says so itself.
    transcript: Some("~/.local/share/opencode/opencode.db"),
    cost: Cost::Usd,
    moved_by: Some(("XDG_DATA_HOME", ".local/share")),
    credentials: &["OPENCODE_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY"],
    ..Card::usual("opencode", "opencode")
};

impl Adapter for OpenCode {
    fn card(&self) -> &Card {
        &CARD
    }

    fn argv(&self, order: &Order<'_>, entry: Entry<'_>) -> Vec<String> {
        let mut argv = words(&["opencode", "run", "--format", "json"]);
        match entry {
            // The title is the one thing by which a session can be found that never said its id.
            Entry::New(id) => argv.extend(words(&["--title", &format!("onward {id}")])),
            Entry::Continued(id) => argv.extend(words(&["-s", id])),
        }
        if order.permissions == Permissions::Full {
            argv.push("--auto".to_owned());
        }
        argv.extend(options(&[("-m", order.model)]));
        argv.push(order.whole_prompt());
        argv
    }

    fn env(&self, order: &Order<'_>) -> Vec<(String, String)> {
        let mut rules = match order.permissions {
            Permissions::ReadOnly => json!({"edit": "deny", "bash": shell(order.allow)}),
            Permissions::Edit => json!({"edit": "allow", "bash": shell(order.allow)}),
            Permissions::Full => return Vec::new(),
        };
        if let Some(dir) = order.reads {
            rules["external_directory"] = json!({ format!("{dir}/**"): "allow" });
        }
        let config = json!({"permission": rules}).to_string();
        vec![("OPENCODE_CONFIG_CONTENT".to_owned(), config)]
    }

    fn read(&self, from: Stream, lines: &[u8], said: &mut Said) {
        match from {
            Stream::Out => events::each(CARD.provider, lines, said, take),
            Stream::Err => read_errors(CARD.provider, lines, said),
        }
    }

    fn tell(&self, line: &str) -> Vec<String> {
        events::told(line, |event| match text(event, "/type") {
            Some("text") => events::said(event, "/part/text"),
            Some("tool_use") => {
                vec![events::tool(text(event, "/part/tool"), event.pointer("/part/state/input"))]
            }
            Some("error") => vec![events::ended_badly(text(event, "/error/data/message"))],
            Some(_) | None => Vec::new(),
        })
    }
}

/// The last rule that fits a command decides.
fn shell(allow: &[String]) -> Value {
    let mut rules = Map::from_iter([("*".to_owned(), json!("deny"))]);
    rules.extend(allow.iter().map(|pattern| (pattern.clone(), json!("allow"))));
    Value::Object(rules)
}

fn take(event: &Value, said: &mut Said) {
    if let Some(session) = text(event, "/sessionID") {
        said.session = Some(session.to_owned());
    }
    match text(event, "/type") {
        Some("text") => said.answer = text(event, "/part/text").map(str::to_owned),
        Some("tool_use") if is_refused(event) => {
            said.deny(text(event, "/part/tool").unwrap_or("a tool"));
        }
        Some("step_finish") => {
            said.spent = said.spent.plus(spent(event));
            match text(event, "/part/reason") {
                // It asks again where the model broke off, and does not end.
                Some("unknown") => said.closed = None,
                // A refusal may be its end.
                Some("tool-calls") if said.denied.is_empty() => said.closed = None,
                Some(_) | None => {
                    said.answer.get_or_insert_default();
                    said.closed = Some(Closed::Well);
                }
            }
        }
        Some("error") => {
            let words = text(event, "/error/data/message").unwrap_or("an error without words");
            let status = event.pointer("/error/data/statusCode").and_then(Value::as_u64);
            if text(event, "/error/name") == Some("ContextOverflowError") {
                notice::end_with(said, CARD.provider, Cause::ContextOverflow, words);
                return;
            }
            let after = event.pointer("/error/data/responseHeaders/retry-after");
            let after = after.map(|it| it.as_str().map_or_else(|| it.to_string(), str::to_owned));
            let words = match after.filter(|it| it.parse::<u64>().is_ok()) {
                Some(seconds) => format!("{words} (retry after {seconds}s)"),
                None => words.to_owned(),
            };
            notice::end_badly(said, CARD.provider, status, &words);
        }
        Some(_) | None => {}
    }
}

/// By a rule, or because there was no one to ask.
fn is_refused(event: &Value) -> bool {
    let words = text(event, "/part/state/error").unwrap_or_default();
    words.contains("rule which prevents you from using this specific tool call")
        || words.contains("rejected permission to use this specific tool call")
}

fn spent(event: &Value) -> Spent {
    let tokens = |name: &str| count(event, &format!("/part/tokens/{name}"));
    Spent {
        input_tokens: tokens("input"),
        output_tokens: tokens("output").saturating_add(tokens("reasoning")),
        cache_read_tokens: tokens("cache/read"),
        cache_write_tokens: tokens("cache/write"),
        usd: event.pointer("/part/cost").and_then(Value::as_f64).and_then(Usd::from_dollars),
    }
}
