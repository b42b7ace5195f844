//! How things look on a screen: colours with a meaning, short local times, text that wraps.
//!
//! Invariant: a colour repeats what a word says, so everything can be read without colours; and
//! full precision is for `--json` and `-v`.

use jiff::tz::TimeZone;
use onward_core::{
    evidence::Cause,
    plan::{RunInfo, Status, Verdict},
    time::Timestamp,
    view::Counts,
};
use onward_engine::world::real::{wall_clock, zone_of_machine};

use crate::{
    diagnostic::printable,
    ink::{self, AnsiColor, Style},
    width,
};

pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
pub(crate) const BAD: Style = AnsiColor::Red.on_default();
pub(crate) const WARN: Style = AnsiColor::Yellow.on_default();
pub(crate) const BUSY: Style = AnsiColor::Cyan.on_default();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const STRONG: Style = Style::new().bold();

pub(crate) fn of_status(status: Status) -> Style {
    match status {
        Status::Completed => GOOD,
        Status::Running => BUSY,
        Status::Fresh | Status::Interrupted | Status::Parked | Status::OverBudget => WARN,
        Status::Waiting => WARN.bold(),
        Status::Failed => BAD,
        Status::Cancelled => DIM,
    }
}

pub(crate) fn of_verdict(verdict: Verdict) -> Style {
    match verdict {
        Verdict::Keep | Verdict::Adopt => GOOD,
        Verdict::Skip => DIM,
        Verdict::Verify | Verdict::Reattach | Verdict::Continue => BUSY,
        Verdict::Rerun => WARN,
        Verdict::Run => Style::new(),
        Verdict::Ask => BAD.bold(),
    }
}

/// The state of a step, as `status --json` spells it.
pub(crate) fn of_state(state: &str) -> Style {
    match state {
        "done" => GOOD,
        "running" => BUSY,
        "failed" => BAD,
        "waiting" => WARN.bold(),
        "lost" | "stale" | "parked" => WARN,
        _ => DIM,
    }
}

/// What a run is called: one that lies in the very directory that was named, by that.
pub(crate) fn name_of(run: &RunInfo) -> &str {
    let in_place = run.id == "." || run.id.is_empty();
    let dir = run.dir.trim_end_matches('/').rsplit('/').next().filter(|_| in_place);
    dir.filter(|it| !it.is_empty()).unwrap_or(&run.id)
}

/// Where standard output is a terminal its width, else what `COLUMNS` says; `None` = do not wrap.
pub(crate) fn columns() -> Option<usize> {
    let of_terminal = crate::screen::columns_of_output();
    let told = || std::env::var_os("COLUMNS")?.to_str()?.parse().ok();
    of_terminal.or_else(told).filter(|it| *it >= 20)
}

/// The same for standard error.
pub(crate) fn columns_of_errors() -> Option<usize> {
    crate::screen::columns_of_errors().filter(|it| *it >= 20)
}

/// Words in lines of at most `width` columns; the first begins at `at`, the others at `indent`. A
/// word is never broken, nor is what stands in backticks: it is copied as a whole. Our colours take
/// no room.
pub(crate) fn wrap(text: &str, width: Option<usize>, at: usize, indent: usize) -> String {
    wrap_by(text, width, at, indent, |word| width::of(&ink::printed(word, false)))
}

/// A column that begins behind half of the width leaves no room: its text goes to the next row, at
/// so many columns.
const NEXT_ROW: usize = 8;

/// The same, with how many columns a word takes. A line is not broken where its rest would begin no
/// further left.
pub(crate) fn wrap_by(
    text: &str,
    width: Option<usize>,
    at: usize,
    indent: usize,
    columns_of: impl Fn(&str) -> usize,
) -> String {
    let Some(width) = width else { return text.to_owned() };
    let words = text.trim_start_matches(' ');
    let lead = text.len() - words.len();
    let all: usize = pieces(words).map(|word| columns_of(word) + 1).sum();
    let fits = at + lead + all <= width + 1;
    let is_cramped = !fits && at > NEXT_ROW && indent > width / 2;
    let indent = if is_cramped { NEXT_ROW } else { indent };
    // What stands before the first word leaves no room for it.
    let is_full = |length: usize| at > indent && at + lead + length > width;
    let (mut lines, mut line, mut column) = (Vec::new(), " ".repeat(lead), at + lead);
    for (number, word) in pieces(words).enumerate() {
        let length = columns_of(word);
        let is_first = number == 0 && (is_cramped || is_full(length));
        if is_first || number > 0 && column > indent && column + 1 + length > width {
            lines.push(std::mem::take(&mut line));
            column = indent;
        } else if number > 0 {
            line.push(' ');
            column += 1;
        }
        line.push_str(word);
        column += length;
    }
    lines.push(line);
    lines.join(&format!("\n{}", " ".repeat(indent)))
}

/// What stands between two places at which a line may be broken.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let now = rest?;
        let (mut is_quoted, mut end) = (false, None);
        for (at, c) in now.char_indices() {
            match c {
                // One that nothing closes is a letter like any other.
                '`' => is_quoted = !is_quoted && now[at + 1..].contains('`'),
                ' ' if !is_quoted => {
                    end = Some(at);
                    break;
                }
                _ => {}
            }
        }
        rest = end.map(|end| &now[end + 1..]);
        Some(&now[..end.unwrap_or(now.len())])
    })
}

/// The same with a command behind it, which is never broken: it is copied as a whole.
pub(crate) fn wrap_with(
    text: &str,
    command: &str,
    width: Option<usize>,
    at: usize,
    indent: usize,
) -> String {
    let text = wrap(text, width, at, indent);
    let plain = ink::printed(&text, false);
    let at = if plain.contains('\n') { 0 } else { at };
    let used = at + plain.lines().last().map_or(0, width::of) + 1 + width::of(command);
    if width.is_none_or(|width| used <= width) {
        format!("{text} {command}")
    } else {
        format!("{text}\n{}{command}", " ".repeat(indent))
    }
}

/// A text of several lines as it was written, for the terminal: the first begins at `at`, each
/// later one at `indent`.
pub(crate) fn paragraph(text: &str, at: usize, indent: usize) -> String {
    let width = columns_of_errors();
    let lines = text.trim_end().lines().enumerate().map(|(number, line)| {
        wrap(&printable(line), width, if number == 0 { at } else { indent }, indent)
    });
    lines.collect::<Vec<_>>().join(&format!("\n{}", " ".repeat(indent)))
}

/// At most so many columns, with a sign where something was cut.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if width::of(text) <= width {
        return text.to_owned();
    }
    let (mut short, mut room) = (String::new(), width);
    for letter in text.chars() {
        // The sign needs a column, too.
        let Some(rest) = room.checked_sub(width::of_char(letter)).filter(|it| *it > 0) else {
            break;
        };
        short.push(letter);
        room = rest;
    }
    if room > 0 {
        short.push('…');
    }
    short
}

/// `8 s`, `5 min`, `2 h`, `3 d`: one unit, for ages.
pub(crate) fn span(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min", seconds / 60),
        3_600..86_400 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

pub(crate) fn ago(seconds: u64) -> String {
    if seconds < 5 { "just now".to_owned() } else { format!("{} ago", span(seconds)) }
}

/// `950`, `12.3k`, `1.2M`.
pub(crate) fn thousands(number: u64) -> String {
    match number {
        0..1_000 => number.to_string(),
        1_000..1_000_000 => format!("{}.{}k", number / 1_000, number % 1_000 / 100),
        1_000_000.. => format!("{}.{}M", number / 1_000_000, number % 1_000_000 / 100_000),
    }
}

/// `2/7`; `2/7+` where lists or loops may open more.
pub(crate) fn fraction(counts: Counts) -> String {
    let Counts { done, total, more } = counts;
    let more = if more { "+" } else { "" };
    format!("{done}/{total}{more}")
}

/// How long something took: `0.4 s`, `12 s`, `3 min 05 s`, `2 h 10 min`.
pub(crate) fn took(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0..10 => format!("{}.{} s", seconds, ms / 100 % 10),
        10..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} min", seconds / 3_600, seconds / 60 % 60),
    }
}

/// The time of day where the reader is: `14:02`; another day with its date, another year with that.
pub(crate) fn clock(at: Timestamp, now: Timestamp) -> String {
    let (Some(at), Some(now)) = (local(at), local(now)) else { return at.to_string() };
    let form = match (at.date() == now.date(), at.year() == now.year()) {
        (true, _) => "%H:%M",
        (false, true) => "%-d %b %H:%M",
        (false, false) => "%-d %b %Y %H:%M",
    };
    at.strftime(form).to_string()
}

/// The same with seconds, for lines that come as things happen.
pub(crate) fn seconds(at: Timestamp) -> String {
    local(at).map_or_else(|| at.to_string(), |it| it.strftime("%H:%M:%S").to_string())
}

fn local(at: Timestamp) -> Option<jiff::Zoned> {
    let at = jiff::Timestamp::from_microsecond(at.as_micros()).ok()?;
    let is_named = std::env::var_os("TZ").is_some();
    Some(at.to_zoned(if is_named { TimeZone::system() } else { zone_of_machine() }))
}

/// A moment in a report, short where it can be read as one.
pub(crate) fn moment(text: &str, now: Timestamp) -> String {
    text.parse().map_or_else(|_| text.to_owned(), |at| clock(at, now))
}

/// The same for every moment in a text.
pub(crate) fn local_times(text: &str, now: Timestamp) -> String {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || "-:._".contains(letter);
    let (mut all, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(start) = rest.find(is_part) {
        all.push_str(&rest[..start]);
        rest = &rest[start..];
        let end = rest.find(|letter| !is_part(letter)).unwrap_or(rest.len());
        all.push_str(&moment(&rest[..end], now));
        rest = &rest[end..];
    }
    all + rest
}

/// `$2.25`; a sum that two digits would make nothing of has as many as it needs.
pub(crate) fn usd(dollars: f64) -> String {
    if dollars <= 0.0 || dollars >= 0.01 {
        return format!("${dollars:.2}");
    }
    format!("${}", format!("{dollars:.6}").trim_end_matches('0'))
}

/// How an attempt failed, in words; `took` where that is known.
pub(crate) fn failure(cause: Cause, detail: &str, took_ms: Option<u64>) -> String {
    match cause {
        Cause::Timeout => match took_ms {
            Some(ms) if detail.starts_with("timed out") => {
                detail.replacen("timed out", &format!("timed out after {}", took(ms)), 1)
            }
            Some(_) | None => detail.to_owned(),
        },
        Cause::Interrupted | Cause::Failed => detail.to_owned(),
        Cause::RateLimited | Cause::UsageLimit => {
            local_times(&format!("{}: {detail}", cause.in_words()), wall_clock())
        }
        Cause::Crash
        | Cause::Overloaded
        | Cause::Server
        | Cause::Network
        | Cause::Unproved
        | Cause::SchemaViolation
        | Cause::ContextOverflow
        | Cause::Auth
        | Cause::Budget
        | Cause::MaxTurns
        | Cause::PermissionDenied
        | Cause::SessionMissing
        | Cause::SessionBusy => format!("{}: {detail}", cause.in_words()),
    }
}

/// `waits until 14:02: usage limit`, for a step that met a limit.
pub(crate) fn parked(cause: Cause, until: Option<Timestamp>, now: Timestamp) -> String {
    let cause = cause.in_words();
    match until {
        Some(until) => format!("waits until {}: {cause}", clock(until, now)),
        None => format!("waits: {cause}, and the provider does not say until when"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_wraps_between_words_and_an_address_never_breaks() {
        let text = "keep round[1]/research[Alexandra]/iterate as it is";
        let shown = "keep\n  round[1]/research[Alexandra]/iterate\n  as it is";
        assert_eq!(wrap(text, Some(24), 0, 2), shown);
        assert_eq!(wrap(text, None, 0, 2), text);
        assert_eq!(wrap("  one two", Some(7), 0, 4), "  one\n    two");
        let coloured = format!("{GOOD}keep{GOOD:#} it as it is");
        assert_eq!(wrap(&coloured, Some(10), 0, 2), format!("{GOOD}keep{GOOD:#} it as\n  it is"));
    }

    #[test]
    fn a_column_without_room_goes_to_the_next_row() {
        let text = "stopped by the user, and runs again";
        assert_eq!(wrap(text, Some(40), 5, 5), text);
        let shown = "\n        stopped by the user, and runs\n        again";
        assert_eq!(wrap(text, Some(40), 30, 30), shown);
        assert_eq!(wrap("short", Some(40), 35, 35), "short");
        // What begins further left is broken before its first word, if that does not fit.
        assert_eq!(wrap("stopped by it", Some(40), 36, 4), "\n    stopped by it");
    }

    #[test]
    fn a_command_stays_whole() {
        let shown = |width| wrap_with("a b; back with:", "onward undo r 1", width, 0, 2);
        assert_eq!(shown(None), "a b; back with: onward undo r 1");
        assert_eq!(shown(Some(31)), "a b; back with: onward undo r 1");
        assert_eq!(shown(Some(30)), "a b; back with:\n  onward undo r 1");
        assert_eq!(shown(Some(10)), "a b; back\n  with:\n  onward undo r 1");
    }

    #[test]
    fn what_stands_in_backticks_stays_whole() {
        let text = "say `onward run --again r`, or `x y`";
        assert_eq!(wrap(text, Some(22), 0, 2), "say\n  `onward run --again r`,\n  or `x y`");
        assert_eq!(wrap("it`s a word", Some(8), 0, 2), "it`s a\n  word");
    }

    #[test]
    fn spans_are_short() {
        assert_eq!([0, 59, 60, 7_300, 90_000].map(span), ["0 s", "59 s", "1 min", "2 h", "1 d"]);
        assert_eq!([3, 400].map(ago), ["just now", "6 min ago"]);
        let all = [450, 12_000, 185_000, 7_800_000].map(took);
        assert_eq!(all, ["0.4 s", "12 s", "3 min 05 s", "2 h 10 min"]);
    }

    #[test]
    fn a_small_sum_is_not_nothing() {
        assert_eq!([0.0, 0.0004, 0.01, 2.256].map(usd), ["$0.00", "$0.0004", "$0.01", "$2.26"]);
    }

    #[test]
    fn a_moment_in_a_text_is_short_and_local() {
        let now: Timestamp = "2026-11-17T04:54:23.174584Z".parse().unwrap();
        let text = local_times("process 1 since 2026-11-17T04:54:23.174584Z (v1.2-x)", now);
        assert_eq!(text, format!("process 1 since {} (v1.2-x)", clock(now, now)));
    }

    #[test]
    fn a_failure_says_what_happened_and_a_time_out_how_long_it_took() {
        assert_eq!(failure(Cause::Failed, "exit 3", Some(9)), "exit 3");
        assert_eq!(failure(Cause::Timeout, "timed out", Some(5000)), "timed out after 5.0 s");
        let said = failure(Cause::SchemaViolation, "n is no number", None);
        assert_eq!(said, "schema violation: n is no number");
    }

    #[test]
    fn what_is_too_long_is_cut_with_a_sign() {
        assert_eq!((cut("abc", 3), cut("abcd", 3)), ("abc".to_owned(), "ab…".to_owned()));
        assert_eq!(cut("abc", 0), "");
        assert_eq!(
            [2, 3, 4, 5, 6].map(|it| cut("漢字漢", it)),
            ["…", "漢…", "漢…", "漢字…", "漢字漢"]
        );
    }
}
