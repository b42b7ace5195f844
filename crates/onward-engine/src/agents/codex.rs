//! Codex: `codex exec`.
//!
//! Only `turn.failed` is a failure: an `error` may be a notice of another try, and an item of type
//! `error` a warning. Its counters are totals of the whole thread.

use onward_core::{
    launch::StopSignal,
    said::{Closed, Counting, Said, Spent},
    workflow::permissions::Permissions,
};
use serde_json::Value;

use super::{
    Adapter, Card, Entry, Order, Sessions, Stream,
    events::{self, count, options, text, words},
    notice,
    shaped::read_errors,
};

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct Codex;

const CARD: Card = Card {
    install: Some("npm install -g @openai/codex"),
    sessions: Sessions::Told,
    transcript: Some("~/.codex/sessions/*/*/*/rollout-*-{session}.jsonl"),
    takes_schema: true,
    // With `edit`, its sandbox lets it run any command in its tree.
    names_tools: false,
    credentials: &["CODEX_API_KEY", "OPENAI_API_KEY"],
    account: Some((".codex/auth.json", "/tokens/account_id")),
    moved_by: Some(("CODEX_HOME", ".codex")),
    // After TERM its tools live on.
    stop: StopSignal::Int,
    ..Card::usual("codex", "openai")
};

impl Adapter for Codex {
    fn card(&self) -> &Card {
        &CARD
    }

    fn argv(&self, order: &Order<'_>, entry: Entry<'_>) -> Vec<String> {
        let sandbox = match order.permissions {
            Permissions::ReadOnly => "read-only",
            Permissions::Edit => "workspace-write",
            Permissions::Full => "danger-full-access",
        };
        let mut argv = words(&["codex", "exec", "--json", "--skip-git-repo-check", "-s", sandbox]);
        argv.extend(options(&[("-m", order.model), ("--output-schema", order.schema_file)]));
        if let Some(system) = order.system {
            // A string of JSON is one of TOML too.
            let system = Value::String(system.to_owned());
            argv.extend(words(&["-c", &format!("developer_instructions={system}")]));
        }
        // Behind `resume`, the flags would be a usage error; left out, the sandbox would be
        // read-only.
        match entry {
            Entry::New(_) => {}
            Entry::Continued(session) => argv.extend(words(&["resume", session])),
        }
        argv.push(order.argument());
        argv
    }

    fn read(&self, from: Stream, lines: &[u8], said: &mut Said) {
        match from {
            Stream::Out => events::each(CARD.provider, lines, said, take),
            Stream::Err => {
                String::from_utf8_lossy(lines).lines().for_each(|line| take_refusal(line, said));
                read_errors(CARD.provider, lines, said);
            }
        }
    }

    fn tell(&self, line: &str) -> Vec<String> {
        events::told(line, |event| match (text(event, "/type"), text(event, "/item/type")) {
            (Some("item.completed"), Some("agent_message")) => events::said(event, "/item/text"),
            (Some("item.started"), Some("command_execution")) => {
                let command = text(event, "/item/command").unwrap_or("");
                vec![format!("> {}", notice::shortened(command))]
            }
            (Some("item.completed"), Some("file_change")) => {
                changed(event).map(|path| format!("> changed {path}")).collect()
            }
            (Some("error"), _) => {
                vec![format!("({})", notice::shortened(text(event, "/message").unwrap_or("")))]
            }
            (Some("turn.failed"), _) => vec![events::ended_badly(text(event, "/error/message"))],
            _ => Vec::new(),
        })
    }
}

fn changed(event: &Value) -> impl Iterator<Item = &str> {
    let changes = event.pointer("/item/changes").and_then(Value::as_array);
    changes.into_iter().flatten().filter_map(|it| text(it, "/path"))
}

/// What an item says about files. One that is not known here may be as good as a shell.
fn take_item(event: &Value, said: &mut Said) {
    match text(event, "/item/type") {
        Some("file_change") => changed(event).for_each(|path| said.touch(path)),
        Some("agent_message" | "error" | "reasoning" | "todo_list" | "web_search") => {}
        Some(_) | None => said.touch_anything(),
    }
}

/// A call that the sandbox or its rules refuse is told to the model and to standard error alone. An
/// order that is refused as such (`rm -f style commands`) is not one that a person could permit.
fn take_refusal(line: &str, said: &mut Said) {
    let Some((_, why)) = line.split_once("tools::router: error=") else { return };
    if why.starts_with("patch rejected") {
        said.deny("apply_patch");
    } else if why.contains("approval policy is Never") {
        said.deny("exec_command");
    }
}

fn take(event: &Value, said: &mut Said) {
    match text(event, "/type") {
        Some("turn.started") => {
            said.reports_files();
            said.mid_turn = true;
        }
        Some("item.completed") if text(event, "/item/status") == Some("declined") => {
            said.deny(text(event, "/item/type").unwrap_or("a tool"));
        }
        Some("item.started" | "item.updated" | "item.completed") => take_item(event, said),
        Some(_) | None => {}
    }
    match text(event, "/type") {
        Some("thread.started") => said.session = text(event, "/thread_id").map(str::to_owned),
        Some("item.completed") if text(event, "/item/type") == Some("agent_message") => {
            said.answer = text(event, "/item/text").map(str::to_owned);
        }
        Some("turn.completed") => {
            let usage = |name: &str| count(event, &format!("/usage/{name}"));
            let (read, write) = (usage("cached_input_tokens"), usage("cache_write_input_tokens"));
            said.spent = Spent {
                input_tokens: usage("input_tokens").saturating_sub(read).saturating_sub(write),
                output_tokens: usage("output_tokens"),
                cache_read_tokens: read,
                cache_write_tokens: write,
                usd: None,
            };
            said.counting = Counting::Session;
            let answer = said.answer.get_or_insert_default().clone();
            if notice::is_limit_notice(&answer) {
                notice::end_badly(said, CARD.provider, None, &answer);
            } else {
                said.closed = Some(Closed::Well);
            }
        }
        Some("turn.failed") => {
            let words = text(event, "/error/message").unwrap_or("the turn failed");
            notice::end_badly(said, CARD.provider, None, words);
        }
        Some(_) | None => {}
    }
}
