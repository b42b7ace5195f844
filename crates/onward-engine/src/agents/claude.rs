//! Claude Code, and Qwen Code, which speaks like it.

use onward_core::{said::Said, workflow::permissions::Permissions};

use super::{Adapter, Card, Cost, Entry, Limits, Order, Sessions, Stream, events::words, shaped};

/// `claude`.
#[derive(Clone, Copy, Debug)]
pub struct Claude;

const CLAUDE: Card = Card {
    install: Some("npm install -g @anthropic-ai/claude-code"),
    sessions: Sessions::Chosen,
    // The directory's name is a lossy form of the path; the id is unique by itself.
    transcript: Some("~/.claude/projects/*/{session}.jsonl"),
    takes_schema: true,
    cost: Cost::Usd,
    limits: Limits::Moment,
    credentials: &["CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_API_KEY"],
    account: Some((".claude.json", "/oauthAccount/accountUuid")),
    moved_by: Some(("CLAUDE_CONFIG_DIR", ".claude")),
    ..Card::usual("claude", "anthropic")
};

impl Adapter for Claude {
    fn card(&self) -> &Card {
        &CLAUDE
    }

    fn argv(&self, order: &Order<'_>, entry: Entry<'_>) -> Vec<String> {
        let mut argv = words(&["claude", "-p", "--output-format", "stream-json", "--verbose"]);
        argv.extend(entry.flag("--session-id", "--resume"));
        let mode = match order.permissions {
            Permissions::ReadOnly => "dontAsk",
            Permissions::Edit => "acceptEdits",
            Permissions::Full => "bypassPermissions",
        };
        argv.extend(words(&["--permission-mode", mode]));
        if order.permissions == Permissions::ReadOnly {
            argv.push("--disallowedTools=Write,Edit,NotebookEdit".to_owned());
        }
        if !order.allow.is_empty() {
            argv.push(format!("--allowedTools={}", order.allow.join(",")));
        }
        argv.extend(order.reads.map(|dir| format!("--add-dir={dir}")));
        argv.extend(order.model.map(|model| format!("--model={model}")));
        argv.extend(order.system_file.map(|file| format!("--append-system-prompt-file={file}")));
        argv.extend(order.schema.map(|schema| format!("--json-schema={schema}")));
        argv.push(order.argument());
        argv
    }

    fn env(&self, _: &Order<'_>) -> Vec<(String, String)> {
        // The engine waits between tries, and shows that it does.
        vec![("CLAUDE_CODE_MAX_RETRIES".to_owned(), "2".to_owned())]
    }

    fn read(&self, from: Stream, lines: &[u8], said: &mut Said) {
        match from {
            Stream::Out => shaped::read(CLAUDE.provider, lines, said),
            Stream::Err => shaped::read_errors(CLAUDE.provider, lines, said),
        }
    }

    fn tell(&self, line: &str) -> Vec<String> {
        shaped::tell(line)
    }
}

/// `qwen`.
#[derive(Clone, Copy, Debug)]
pub struct Qwen;

const QWEN: Card = Card {
    install: Some("npm install -g @qwen-code/qwen-code"),
    sessions: Sessions::Chosen,
    transcript: Some("~/.qwen/projects/*/chats/{session}.jsonl"),
    takes_schema: true,
    credentials: &["DASHSCOPE_API_KEY", "OPENAI_API_KEY"],
    ..Card::usual("qwen", "qwen")
};

impl Adapter for Qwen {
    fn card(&self) -> &Card {
        &QWEN
    }

    fn argv(&self, order: &Order<'_>, entry: Entry<'_>) -> Vec<String> {
        let mut argv = vec!["qwen".to_owned(), order.argument()];
        argv.extend(words(&["-o", "stream-json"]));
        argv.extend(entry.flag("--session-id", "--resume"));
        let mode = match order.permissions {
            Permissions::ReadOnly => "plan",
            Permissions::Edit => "auto-edit",
            Permissions::Full => "yolo",
        };
        argv.push(format!("--approval-mode={mode}"));
        argv.extend(order.allow.iter().map(|tool| format!("--allowed-tools={tool}")));
        argv.extend(order.reads.map(|dir| format!("--include-directories={dir}")));
        argv.extend(order.model.map(|model| format!("--model={model}")));
        argv.extend(order.system.map(|system| format!("--append-system-prompt={system}")));
        argv.extend(order.schema.map(|schema| format!("--json-schema={schema}")));
        argv
    }

    fn read(&self, from: Stream, lines: &[u8], said: &mut Said) {
        match from {
            Stream::Out => shaped::read(QWEN.provider, lines, said),
            Stream::Err => shaped::read_errors(QWEN.provider, lines, said),
        }
    }

    fn tell(&self, line: &str) -> Vec<String> {
        shaped::tell(line)
    }
}
