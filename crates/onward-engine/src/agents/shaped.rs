//! The stream of JSON lines that Claude Code began and others took over: `system`, `assistant`,
//! `user`, and at the end `result`.
//!
//! A `result` of `subtype: success` may be none: `is_error` counts, then `terminal_reason`, then
//! the status of the API and the words. There can be several of them, as work in the
//! background ends after the turn: the last one counts.

use onward_core::{
    evidence::{Cause, Usd},
    said::{Closed, Counting, Limit, LimitKind, Said, Spent},
    time::Timestamp,
};
use serde_json::Value;

use super::{
    events::{self, text},
    notice,
};

/// Takes in lines of the stream.
pub(super) fn read(provider: &str, lines: &[u8], said: &mut Said) {
    events::each(provider, lines, said, |event, said| {
        let events = event.as_array().map_or(std::slice::from_ref(event), Vec::as_slice);
        for event in events {
            take(provider, event, said);
        }
    });
}

/// What such a program says on standard error alone, when it does not start.
pub(super) fn read_errors(provider: &str, errors: &[u8], said: &mut Said) {
    let text = String::from_utf8_lossy(errors);
    let lines = || text.lines().take_while(|line| !is_help(line)).map(str::trim);
    let all = lines().collect::<Vec<_>>().join("\n");
    let Some(cause) = notice::cause_of(None, &all).filter(|_| said.closed.is_none()) else {
        return;
    };
    let its = lines().find(|line| notice::cause_of(None, line) == Some(cause));
    notice::end_with(said, provider, cause, its.unwrap_or(&all));
}

/// From here on a program explains its options, which have words for everything.
fn is_help(line: &str) -> bool {
    line.to_lowercase().starts_with("usage:")
}

fn take(provider: &str, event: &Value, said: &mut Said) {
    if let Some(session) = text(event, "/session_id").filter(|it| !it.is_empty()) {
        said.session = Some(session.to_owned());
    }
    match (text(event, "/type"), text(event, "/subtype")) {
        (Some("system"), Some("permission_denied")) => deny(event, said),
        (Some("system"), Some("init")) if event.get("tools").is_some() => said.reports_files(),
        (Some("assistant"), _) => take_message(provider, event, said),
        (Some("rate_limit_event"), _) => take_limit(provider, event, said),
        (Some("result"), subtype) => take_result(provider, event, subtype, said),
        _ => {}
    }
}

fn take_message(provider: &str, event: &Value, said: &mut Said) {
    parts(event).for_each(|part| take_tool(part, said));
    // A model that gave no answer has counted nothing; one that speaks of such errors has.
    let counted = events::count(event, "/message/usage/output_tokens");
    let words = parts(event).filter_map(|part| text(part, "/text")).last();
    if let Some((status, words)) = words.and_then(notice::api_error).filter(|_| counted == 0) {
        notice::end_badly(said, provider, status, words);
    }
}

fn take_limit(provider: &str, event: &Value, said: &mut Said) {
    if text(event, "/rate_limit_info/status") != Some("rejected") {
        return;
    }
    let seconds = event.pointer("/rate_limit_info/resetsAt").and_then(Value::as_i64);
    // Beyond the year 9999 no moment can be written down.
    let seconds = seconds.filter(|it| (0..253_402_300_800).contains(it));
    said.limit = Some(Limit {
        provider: provider.to_owned(),
        account: None,
        resets_at: seconds.map(|it| Timestamp::from_micros(it * 1_000_000)),
        words: None,
        kind: LimitKind::Usage,
    });
}

fn take_result(provider: &str, event: &Value, subtype: Option<&str>, said: &mut Said) {
    (said.spent, said.counting) = (spent(event), Counting::Session);
    let denials = event.get("permission_denials").and_then(Value::as_array);
    denials.into_iter().flatten().for_each(|it| deny(it, said));
    let answer = text(event, "/result");
    let errors = event.get("errors").and_then(Value::as_array).into_iter().flatten();
    let errors: Vec<&str> = errors.filter_map(Value::as_str).collect();
    let own = || text(event, "/error/message").map_or_else(|| errors.join("; "), str::to_owned);
    let words = answer.map_or_else(own, str::to_owned);
    let is_error =
        event.get("is_error").and_then(Value::as_bool).unwrap_or(subtype != Some("success"));
    let ended_badly = matches!(said.closed, Some(Closed::Badly { .. }));
    if !is_error && ended_badly && notice::api_error(&words).is_some() {
        // Its last message was the error.
        return;
    }
    if !is_error && !notice::is_limit_notice(&words) {
        said.result = event.get("structured_output").filter(|it| !it.is_null()).cloned();
        said.answer = Some(words);
        said.closed = Some(Closed::Well);
        return;
    }
    (said.answer, said.result) = (None, None);
    let status = event.get("api_error_status").and_then(Value::as_u64);
    let cause = cause(event, subtype, status, &words);
    if cause == Cause::Interrupted {
        return notice::end_interrupted(said);
    }
    notice::end_with(said, provider, cause, &words);
}

fn cause(event: &Value, subtype: Option<&str>, status: Option<u64>, words: &str) -> Cause {
    match subtype {
        Some("error_max_turns") => return Cause::MaxTurns,
        Some("error_max_budget_usd") => return Cause::Budget,
        Some("error_max_structured_output_retries") => return Cause::SchemaViolation,
        Some(_) | None => {}
    }
    if text(event, "/api_error") == Some("usage_limit_reached") {
        return Cause::UsageLimit;
    }
    match text(event, "/terminal_reason") {
        Some("max_turns") => Cause::MaxTurns,
        Some("budget_exhausted") => Cause::Budget,
        Some("prompt_too_long") => Cause::ContextOverflow,
        Some("aborted_streaming" | "aborted_tools") => Cause::Interrupted,
        Some("structured_output_retry_exhausted") => Cause::SchemaViolation,
        Some("blocking_limit") => Cause::UsageLimit,
        Some(_) | None => notice::cause_of(status, words).unwrap_or(Cause::Failed),
    }
}

/// By model where that is given: `usage` leaves out what helpers of the agent spent.
fn spent(event: &Value) -> Spent {
    let count = |of: &Value, name: &str| of.get(name).and_then(Value::as_u64).unwrap_or(0);
    let usd = event.get("total_cost_usd").and_then(Value::as_f64).and_then(Usd::from_dollars);
    let models = event.get("modelUsage").and_then(Value::as_object);
    if let Some(models) = models.filter(|it| !it.is_empty()) {
        let of = |model: &Value| Spent {
            input_tokens: count(model, "inputTokens"),
            output_tokens: count(model, "outputTokens"),
            cache_read_tokens: count(model, "cacheReadInputTokens"),
            cache_write_tokens: count(model, "cacheCreationInputTokens"),
            usd: None,
        };
        let all = models.values().map(of).fold(Spent::NOTHING, Spent::plus);
        return Spent { usd, ..all };
    }
    let Some(usage) = event.get("usage") else { return Spent { usd, ..Spent::NOTHING } };
    Spent {
        input_tokens: count(usage, "input_tokens"),
        output_tokens: count(usage, "output_tokens"),
        cache_read_tokens: count(usage, "cache_read_input_tokens"),
        cache_write_tokens: count(usage, "cache_creation_input_tokens"),
        usd,
    }
}

/// Each call of a tool is told before the tool does anything. One that is not known here may do
/// whatever a shell can.
fn take_tool(part: &Value, said: &mut Said) {
    const HARMLESS: [&str; 15] = [
        "Glob",
        "Grep",
        "LS",
        "NotebookRead",
        "Read",
        "ReportFindings",
        "StructuredOutput",
        "TaskCreate",
        "TaskGet",
        "TaskList",
        "TaskUpdate",
        "TodoWrite",
        "ToolSearch",
        "WebFetch",
        "WebSearch",
    ];
    if text(part, "/type") != Some("tool_use") {
        return;
    }
    let path = || text(part, "/input/file_path").or_else(|| text(part, "/input/notebook_path"));
    match (text(part, "/name"), path()) {
        (Some("Edit" | "MultiEdit" | "NotebookEdit" | "Write"), Some(path)) => said.touch(path),
        (Some(name), _) if HARMLESS.contains(&name) => {}
        (Some(_) | None, _) => said.touch_anything(),
    }
}

fn parts(event: &Value) -> impl Iterator<Item = &Value> {
    event.pointer("/message/content").and_then(Value::as_array).into_iter().flatten()
}

fn deny(event: &Value, said: &mut Said) {
    if let Some(tool) = text(event, "/tool_name") {
        said.deny(tool);
    }
}

/// One line in words: what it says, the tools it calls, how it ended.
pub(super) fn tell(line: &str) -> Vec<String> {
    events::told(line, |event| match (text(event, "/type"), text(event, "/subtype")) {
        (Some("assistant"), _) => parts(event).flat_map(part).collect(),
        (Some("system"), Some("api_retry")) => {
            let error = text(event, "/error").unwrap_or("an error");
            let wait = events::count(event, "/retry_delay_ms");
            vec![format!("(tries again in {} s: {error})", wait.div_ceil(1000))]
        }
        (Some("system"), Some("permission_denied")) => {
            vec![format!("(denied: {})", text(event, "/tool_name").unwrap_or("a tool"))]
        }
        (Some("result"), _) if event.get("is_error") == Some(&Value::Bool(true)) => {
            let places = ["/result", "/error/message", "/errors/0"];
            let words = places.into_iter().find_map(|at| text(event, at));
            vec![events::ended_badly(words)]
        }
        _ => Vec::new(),
    })
}

fn part(part: &Value) -> Vec<String> {
    match text(part, "/type") {
        Some("text") => events::said(part, "/text"),
        Some("tool_use") => vec![events::tool(text(part, "/name"), part.get("input"))],
        Some(_) | None => Vec::new(),
    }
}
