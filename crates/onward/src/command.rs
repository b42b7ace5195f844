//! Commands that onward prints: each works when the user pastes it where it was printed.
//!
//! Invariant: there is one maker. A line that is a command is made by `onward!`; a sentence that
//! holds commands has them in backticks and passes `in_text` on its way out. Both say where the
//! command works, if that is not where the user stands: the `--cwd` that was given, or the project
//! of the run that was named.

use std::{
    ffi::OsStr,
    fmt::{self, Write as _},
    path::Path,
    sync::{PoisonError, RwLock},
};

use onward_core::{name, workflow::template::quoted};

use crate::diagnostic::printable;

/// What stands behind `--cwd` in every command, ready for a shell.
static PLACE: RwLock<Option<String>> = RwLock::new(None);

/// `onward!("resume {id}")` is `onward resume {id}`, as it works from where the user stands.
macro_rules! onward {
    ($($words:tt)*) => { $crate::command::made(format_args!($($words)*)) };
}
pub(crate) use onward;

/// What the user said.
pub(crate) fn typed_with(cwd: &Path) {
    if cwd != Path::new(".") {
        set(cwd);
    }
}

/// The same from a command line that is none.
pub(crate) fn typed_in_vain() {
    let mut words = std::env::args_os().map(|it| it.to_string_lossy().into_owned());
    while let Some(word) = words.next() {
        if let Some(cwd) = word.strip_prefix("--cwd=") {
            typed_with(Path::new(cwd));
        } else if word == "--cwd"
            && let Some(cwd) = words.next()
        {
            typed_with(Path::new(&cwd));
        }
    }
}

/// The command turns out to be about a run of this project, and the user works in another one.
pub(crate) fn is_about(root: &Path) {
    set(root);
}

fn set(dir: &Path) {
    let dir = dir.display().to_string();
    // A shell hands it on, and the parser would take it for an option.
    let dir = if dir.starts_with('-') { format!("./{dir}") } else { dir };
    *PLACE.write().unwrap_or_else(PoisonError::into_inner) = Some(word(&dir));
}

/// What another onward that works for this one is given, as the same user reads its words: the
/// project, where commands have to say where they work.
pub(crate) fn of_child(root: &Path) -> Vec<&OsStr> {
    let is_elsewhere = PLACE.read().unwrap_or_else(PoisonError::into_inner).is_some();
    if is_elsewhere { vec![OsStr::new(CWD.trim_end()), root.as_os_str()] } else { Vec::new() }
}

/// See `onward!`.
pub(crate) fn made(words: fmt::Arguments<'_>) -> String {
    match &*PLACE.read().unwrap_or_else(PoisonError::into_inner) {
        Some(place) => format!("{NAME}{CWD}{place} {words}"),
        None => format!("{NAME}{words}"),
    }
}

const NAME: &str = "onward ";
const CWD: &str = "--cwd ";

/// One word of a command that a person can paste into a shell. What a terminal would not show, or
/// is no text at all, `printf` makes of plain characters: every shell has that.
pub(crate) fn word(text: &str) -> String {
    let is_text = !text.chars().any(|it| name::byte_of(it).is_some());
    if is_text && printable(text) == text {
        return quoted(text);
    }
    let mut format = String::new();
    for byte in name::bytes(text).iter() {
        match byte {
            b'%' => format.push_str("%%"),
            b'\\' | b'\'' | b'-' | 0..0x20 | 0x7f.. => {
                let _ = write!(format, "\\{byte:03o}");
            }
            _ => format.push(char::from(*byte)),
        }
    }
    format!("\"$(printf '{format}')\"")
}

/// A path behind an option, where a dash at its beginning is no option.
pub(crate) fn option(name: &str, path: &str) -> String {
    let is_dashed = path.starts_with('-');
    format!("{name}{}{}", if is_dashed { '=' } else { ' ' }, word(path))
}

/// A path as it is typed where the user stands: what lies below that directory, by its short name.
pub(crate) fn path(path: &Path) -> String {
    let here = std::env::current_dir().and_then(|it| it.canonicalize()).ok();
    let short = here.as_ref().and_then(|here| path.strip_prefix(here).ok());
    word(&short.unwrap_or(path).display().to_string())
}

/// A sentence whose commands, in backticks, work from where the user stands.
pub(crate) fn in_text(text: &str) -> String {
    match &*PLACE.read().unwrap_or_else(PoisonError::into_inner) {
        Some(place) => placed(text, place),
        None => text.to_owned(),
    }
}

fn placed(text: &str, place: &str) -> String {
    let parts = text.split('`').enumerate().map(|(number, part)| {
        // What goes to its directory first needs no more.
        let is_command = number % 2 == 1 && !part.starts_with("cd ");
        if is_command { in_command(part, place) } else { part.to_owned() }
    });
    parts.collect::<Vec<_>>().join("`")
}

/// Each of the commands that `&&` joins, unless it says where it works.
fn in_command(command: &str, place: &str) -> String {
    let each = command.split("&& ").map(|one| match one.strip_prefix(NAME) {
        Some(words) if !words.starts_with(CWD) => format!("{NAME}{CWD}{place} {words}"),
        Some(_) | None => one.to_owned(),
    });
    each.collect::<Vec<_>>().join("&& ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_no_terminal_shows_is_made_by_printf() {
        assert_eq!((word("a.txt"), word("a b")), ("a.txt".to_owned(), "'a b'".to_owned()));
        assert_eq!(word("n\nl-%'.txt"), r#""$(printf 'n\012l\055%%\047.txt')""#);
        assert_eq!(word(&name::text(b"b\xff.txt")), r#""$(printf 'b\377.txt')""#);
        assert_eq!(option("--replace", "-d.txt"), "--replace=-d.txt");
    }

    #[test]
    fn commands_in_a_sentence_say_where_they_work_once() {
        let text = "see `onward plan`; or `onward repair r --yes && onward resume r`, onward";
        let there = "see `onward --cwd 'a b' plan`; or `onward --cwd 'a b' repair r --yes && \
                     onward --cwd 'a b' resume r`, onward";
        assert_eq!(placed(text, "'a b'"), there);
        assert_eq!(placed(there, "'a b'"), there);
        let elsewhere = "`cd x && onward resume`, `mv onward x`";
        assert_eq!(placed(elsewhere, "p"), elsewhere);
    }
}
