//! What the error text of an agent program means.
//!
//! Programs without codes for their errors have words; the words are a table, and the first row
//! that fits decides. A status of HTTP, where there is one, is surer than words.
//!
//! Invariant: only text that a program gave as its *error* or as its whole last word is looked at.
//! What an agent writes in the course of its work may well speak of limits.

use onward_core::{
    evidence::Cause,
    said::{Closed, Limit, LimitKind, Said},
};

/// Phrases in lower case, with plain apostrophes.
#[rustfmt::skip]
const TABLE: [(Cause, &[&str]); 13] = [
    (Cause::SessionBusy, &["is already in use", "already has an active writer",
        "session is locked", "already exists. use --resume"]),
    (Cause::SessionMissing, &["no conversation found", "no rollout found", "session not found",
        "no deferred tool marker", "invalid session identifier", "no previous sessions found",
        "error resuming session", "no saved session found", "no session, task, or name matched"]),
    (Cause::SchemaViolation, &["as required by --json-schema"]),
    (Cause::ContextOverflow, &["prompt is too long", "context window", "context_length_exceeded",
        "maximum context length", "contextoverflow", "input is too long", "prompt as too long"]),
    (Cause::UsageLimit, &["usage limit", "usage_limit", "hit your limit", "limit reached|",
        "exceeded your current quota", "quota exceeded", "quota will reset", "out of credits"]),
    (Cause::Budget, &["credit balance is too low", "insufficient_quota", "budget"]),
    (Cause::Auth, &["not logged in", "invalid api key", "invalid x-api-key", "unauthorized",
        "authentication", "please run /login", "missing environment variable", "api key not",
        "no api key", "permission_error", "token has expired", "not able to authenticate",
        "invalid auth method", "please set an auth method"]),
    (Cause::RateLimited, &["rate limit", "rate_limit", "too many requests", "(429)"]),
    (Cause::Overloaded, &["overloaded", "at capacity", "529"]),
    (Cause::Server, &["internal server error", "server_error", "bad gateway",
        "service unavailable", "gateway timeout", "experiencing high demand", "api error: 5"]),
    (Cause::Network, &["stream disconnected", "connection error", "connection refused",
        "econnrefused", "econnreset", "enotfound", "etimedout", "fetch failed", "socket hang up",
        "error sending request", "network", "stream closed before", "stream ended without",
        "failed to finalize"]),
    (Cause::MaxTurns, &["max session turns", "maximum session turns", "max_turns"]),
    (Cause::PermissionDenied, &["permission denied by", "not inside a trusted directory",
        "folder is not trusted"]),
];

/// What an error is about; `None` = the words say nothing that onward knows.
pub fn cause_of(status: Option<u64>, text: &str) -> Option<Cause> {
    let text = plain(text);
    let says = |cause: Cause| {
        let row = TABLE.iter().find(|(it, _)| *it == cause);
        row.is_some_and(|(_, phrases)| phrases.iter().any(|phrase| text.contains(phrase)))
    };
    if opens_with_limit(&text) {
        return Some(Cause::UsageLimit);
    }
    match status {
        Some(429) if says(Cause::UsageLimit) => return Some(Cause::UsageLimit),
        Some(429) => return Some(Cause::RateLimited),
        Some(529) => return Some(Cause::Overloaded),
        Some(401 | 403) => return Some(Cause::Auth),
        Some(402) => return Some(Cause::Budget),
        Some(500..=599) => return Some(Cause::Server),
        Some(_) | None => {}
    }
    TABLE.iter().map(|(cause, _)| *cause).find(|cause| says(*cause))
}

/// The whole of a text is the notice of a limit: some programs print it as their answer, and end
/// as if all were well.
pub fn is_limit_notice(text: &str) -> bool {
    let text = text.trim();
    text.len() <= NOTICE_BYTES_MAX && !text.contains('\n') && opens_with_limit(&plain(text))
}

/// Words for an end that the program did not choose.
const INTERRUPTED: &str = "another program interrupted it in the middle of its turn";

/// Notes that another program interrupted it. What it says itself then is about its own insides.
pub fn end_interrupted(said: &mut Said) {
    let detail = INTERRUPTED.to_owned();
    said.closed = Some(Closed::Badly { cause: Cause::Interrupted, detail });
}

/// `[API Error: 401 no such key]` at the end of a message: the words in it, and the status of HTTP
/// that they begin with. Some programs give it as their answer, and end as if all were well.
pub fn api_error(text: &str) -> Option<(Option<u64>, &str)> {
    let (_, words) = text.trim_end().strip_suffix(']')?.rsplit_once("[API Error: ")?;
    let status = words.split(' ').next().filter(|it| it.len() == 3).and_then(|it| it.parse().ok());
    Some((status, words))
}

/// Longer text is work, not a notice.
const NOTICE_BYTES_MAX: usize = 400;

/// `You've hit your 5-hour limit`, `Claude usage limit reached`, `You have reached your limit`.
fn opens_with_limit(text: &str) -> bool {
    let mut rest = text.trim_start();
    for opening in ["error: ", "api error: ", "claude ai ", "claude ", "codex ", "gemini "] {
        rest = rest.strip_prefix(opening).unwrap_or(rest);
    }
    let opens = |opening: &str| {
        let after = rest.strip_prefix(opening);
        after.is_some_and(|after| after.chars().take(40).collect::<String>().contains("limit"))
    };
    opens("you've hit your ")
        || opens("you have hit your ")
        || opens("you've reached your ")
        || opens("you have reached your ")
        || rest.starts_with("usage limit reached")
        || rest.starts_with("5-hour limit reached")
        || rest.starts_with("weekly limit reached")
}

/// Lower case, with plain apostrophes.
fn plain(text: &str) -> String {
    text.replace('\u{2019}', "'").to_lowercase()
}

/// Notes a bad end. A limit is noted with the words that may have its reset.
pub fn end_badly(said: &mut Said, provider: &str, status: Option<u64>, text: &str) {
    let cause = cause_of(status, text).unwrap_or(Cause::Failed);
    end_with(said, provider, cause, text);
}

/// The same, where the cause is known.
pub fn end_with(said: &mut Said, provider: &str, cause: Cause, text: &str) {
    if let Some(kind) = LimitKind::of(cause) {
        let known = said.limit.take();
        let resets_at = known.as_ref().and_then(|limit| limit.resets_at);
        let account = known.and_then(|limit| limit.account);
        let words = Some(text.to_owned()).filter(|_| resets_at.is_none());
        said.limit = Some(Limit { provider: provider.to_owned(), account, resets_at, words, kind });
    }
    said.closed = Some(Closed::Badly { cause, detail: shortened(text) });
}

/// As much as a person reads, without what colours a terminal.
pub fn shortened(text: &str) -> String {
    const CHARS_MAX: usize = 300;
    let line = without_colours(text).trim().replace('\n', " ");
    if line.chars().count() <= CHARS_MAX {
        return line;
    }
    let start: String = line.chars().take(CHARS_MAX).collect();
    format!("{start}…")
}

/// Some programs colour their errors even where no terminal is.
fn without_colours(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let first = parts.next().unwrap_or_default().to_owned();
    let is_end = |letter: char| ('\u{40}'..='\u{7e}').contains(&letter);
    parts.fold(first, |whole, part| {
        whole + part.find(is_end).and_then(|end| part.get(end + 1..)).unwrap_or_default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_for_people_have_no_colours_and_an_end() {
        let coloured = "\u{1b}[91m\u{1b}[1mError: \u{1b}[0mSession not found\n";
        assert_eq!(shortened(coloured), "Error: Session not found");
        assert_eq!(shortened("plain [text] \u{1b}[9"), "plain [text]");
        assert_eq!(shortened(&"é".repeat(301)).chars().count(), 301);
    }

    #[test]
    fn words_and_status_name_one_cause() {
        for (status, text, cause) in [
            (Some(429), "Request rejected (429)", Some(Cause::RateLimited)),
            (Some(429), "You've hit your 5-hour limit · resets 7pm (UTC)", Some(Cause::UsageLimit)),
            (
                None,
                "You\u{2019}ve hit your usage limit. Try again at 7:19 PM.",
                Some(Cause::UsageLimit),
            ),
            (None, "last status: 429 Too Many Requests", Some(Cause::RateLimited)),
            (None, "unexpected status 529 <unknown>: Overloaded", Some(Cause::Overloaded)),
            (Some(529), "", Some(Cause::Overloaded)),
            (Some(503), "", Some(Cause::Server)),
            (None, "We\u{2019}re currently experiencing high demand", Some(Cause::Server)),
            (None, "unexpected status 401 Unauthorized", Some(Cause::Auth)),
            (None, "Not logged in · Please run /login", Some(Cause::Auth)),
            (None, "Missing environment variable: `KEY`.", Some(Cause::Auth)),
            (Some(400), "Prompt is too long", Some(Cause::ContextOverflow)),
            (None, "code: context_length_exceeded", Some(Cause::ContextOverflow)),
            (None, "stream disconnected before completion", Some(Cause::Network)),
            (None, "No conversation found with session ID: x", Some(Cause::SessionMissing)),
            (None, "Error: Session ID x is already in use.", Some(Cause::SessionBusy)),
            (None, "thread x already has an active writer", Some(Cause::SessionBusy)),
            (None, "Reached max session turns for this session", Some(Cause::MaxTurns)),
            (None, "it rained", None),
        ] {
            assert_eq!(cause_of(status, text), cause, "{status:?} {text}");
        }
    }

    #[test]
    fn only_a_text_that_is_nothing_but_the_notice_is_one() {
        for notice in [
            "You've hit your limit · resets 9pm (Europe/Stockholm)",
            "You've hit your weekly limit · resets Nov 20, 9am (UTC)\n",
            "Claude AI usage limit reached|1794772478",
        ] {
            assert!(is_limit_notice(notice), "{notice}");
        }
        for work in [
            "The handler prints \"You've hit your limit\" now.",
            "You've hit your limit\nand here is the rest of the page",
            "You've hit your stride",
            "",
        ] {
            assert!(!is_limit_notice(work), "{work}");
        }
    }
}
