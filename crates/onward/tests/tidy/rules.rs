//! The rules: each is a function from one file to what is wrong with it, with the reason above it.
//!
//! Invariant: a rule about words looks at code only, never at comments or literals; a rule about
//! paths looks at every byte of every file.

use std::path::Path;

use crate::{
    code::{all_dependencies, code_of, contains_word, dependencies, forbid, literals},
    matches::{enums_in, takes_anything, tuple_matches},
    rooms::rooms_use_rooms_below,
    words::{messages_are_plain, prose_names_its_actor},
};

/// What a rule finds wrong with one file: nothing, or some sentences.
pub(crate) type Check = fn(path: &str, text: &str) -> Vec<String>;

pub(crate) struct Rule {
    pub(crate) check: Check,
    pub(crate) refuses: &'static [(&'static str, &'static str)],
    pub(crate) accepts: (&'static str, &'static str),
}

pub(crate) const RULES: &[Rule] = &[
    Rule {
        check: a_file_says_what_it_is,
        refuses: &[("a.rs", "use std::fmt;\n"), ("a.rs", "//!\n"), ("a.rs", "")],
        accepts: ("a.rs", "//! A noun.\n"),
    },
    Rule {
        check: a_file_is_short,
        refuses: &[("a.rs", SIX_HUNDRED_AND_ONE_LINES)],
        accepts: ("a.rs", SIX_HUNDRED_AND_ONE_LINES.split_at(1).1),
    },
    Rule {
        check: a_line_is_narrow,
        refuses: &[("a.rs", HUNDRED_AND_ONE_COLUMNS)],
        accepts: ("a.rs", HUNDRED_AND_ONE_COLUMNS.split_at(1).1),
    },
    Rule {
        check: layers_point_down,
        refuses: &[
            ("crates/onward-core/Cargo.toml", "[dependencies]\nonward-dialects.workspace = true"),
            ("crates/onward-dialects/Cargo.toml", "[dependencies]\nonward-engine = { path = '' }"),
            ("crates/onward-engine/Cargo.toml", "[dependencies.onward]\npath = ''"),
            ("crates/onward-engine/Cargo.toml", "[target.'cfg(unix)'.dependencies]\nonward = '1'"),
            ("crates/onward-engine/Cargo.toml", "[build-dependencies]\nonward = '1'"),
            ("crates/onward/Cargo.toml", "[dependencies]\n\"onward-dialects\" = '1'"),
            ("crates/onward-new/Cargo.toml", "[dependencies]\n"),
        ],
        accepts: (
            "crates/onward-engine/Cargo.toml",
            "[package]\nname = 'x'\n[dependencies]\nonward-core.workspace = true # down\n\
             [dev-dependencies]\nonward = '1'",
        ),
    },
    Rule {
        check: libraries_take_no_front_end_crate,
        refuses: &[
            ("crates/onward-engine/Cargo.toml", "[dependencies]\nclap.workspace = true"),
            ("crates/onward-core/Cargo.toml", "[dependencies]\ntokio = '1'"),
        ],
        accepts: ("crates/onward/Cargo.toml", "[dependencies]\nclap.workspace = true"),
    },
    Rule {
        check: core_is_pure,
        refuses: &[
            ("crates/onward-core/src/a.rs", "use std::{fmt, fs};"),
            ("crates/onward-core/src/a.rs", "use std::{\n    env::{self, var},\n};"),
            ("crates/onward-core/src/a.rs", "let x = std::process::id();"),
            ("crates/onward-core/src/a.rs", "use std::time::{Duration, Instant};"),
            ("crates/onward-core/src/a.rs", "fn f(now: SystemTime) {}"),
            ("crates/onward-core/src/a.rs", "std::thread::spawn(f);"),
            ("crates/onward-core/src/a.rs", "use std::{fmt::{self, Write}, net::TcpStream};"),
            ("crates/onward-core/src/a.rs", "let m = HashMap::new();"),
            ("crates/onward-core/src/a.rs", "let m: HashSet<u8>;"),
            ("crates/onward-core/src/a.rs", "let c = '\"'; rand::random() // \""),
            ("crates/onward-core/src/a.rs", "#[tokio::main]"),
        ],
        accepts: (
            "crates/onward-core/src/a.rs",
            "// HashMap\n/* std::fs */ let x = \"std::env \\\" std::fs\"; use std::{fmt, fsx};\n\
             let y: &'static str = r#\"rand:: \" tokio::\"#; let z = operand::f(); crate::time::T",
        ),
    },
    Rule {
        check: dialects_only_read,
        refuses: &[
            ("crates/onward-dialects/src/a.rs", "fs::write(path, text)"),
            ("crates/onward-dialects/src/a.rs", "use std::{fs::{File, OpenOptions}};"),
            ("crates/onward-dialects/src/a.rs", "File::create(path)"),
            ("crates/onward-dialects/src/a.rs", "std::fs::remove_dir_all(path)"),
            ("crates/onward-dialects/src/a.rs", "use std::process::Command;"),
            ("crates/onward-dialects/src/a.rs", "use std::{thread, fmt};"),
            ("crates/onward-dialects/src/a.rs", "use onward_engine::Drive;"),
        ],
        accepts: ("crates/onward-dialects/src/a.rs", "std::fs::read(path)"),
    },
    Rule {
        check: libraries_never_print,
        refuses: &[
            ("crates/onward-engine/src/a.rs", "println!(\"hello\");"),
            ("crates/onward-core/src/a.rs", "eprintln!();"),
            ("crates/onward-dialects/src/a.rs", "print!(\"hello\");"),
            ("crates/onward-engine/src/a.rs", "use anstream::stderr;"),
            ("crates/onward-engine/src/a.rs", "#[derive(clap::Args)]"),
        ],
        accepts: ("crates/onward/src/a.rs", "println!(); use clap::Args;"),
    },
    Rule {
        check: one_opener,
        refuses: &[
            ("crates/onward-engine/src/care/a.rs", "let x = std::fs::read(path);"),
            ("crates/onward-engine/src/a.rs", "File::open(path)"),
            ("crates/onward/src/cmd/a.rs", "use std::fs::OpenOptions;"),
            ("crates/onward/src/cmd/a.rs", "std::fs::write(path, text)"),
        ],
        accepts: (
            "crates/onward-engine/src/care/a.rs",
            "open::read_at(path, 1); fs::read_dir(path); fs::read_link(path)\n\
             #[cfg(test)]\nmod tests {\n    fs::write(path, text);\n}",
        ),
    },
    Rule {
        check: one_printer,
        refuses: &[
            ("crates/onward/src/cmd/a.rs", "write!(std::io::stdout(), \"{text}\")"),
            ("crates/onward/src/cmd/a.rs", "use anstyle::Style;"),
            ("crates/onward/src/watch/a.rs", "use ratatui::crossterm::event;"),
            ("crates/onward/src/a.rs", "anstream::eprintln!(\"x\")"),
        ],
        accepts: ("crates/onward/src/cmd/a.rs", "writeln!(cx.out, \"{text}\")"),
    },
    Rule {
        check: one_maker_of_commands,
        refuses: &[
            ("crates/onward/src/a.rs", "format!(\"onward resume {id}\")"),
            ("crates/onward-engine/src/a.rs", "\"see `x`, then onward repair\""),
            ("crates/onward/src/a.rs", "writeln!(cx.err, \"see `onward plan`\")"),
        ],
        accepts: (
            "crates/onward/src/a.rs",
            "#[command(after_help = \"  onward run x\")] struct A;\n\
             // onward plan\nonward!(\"resume {id}\"); \"see `onward plan`; onward runs it\"",
        ),
    },
    Rule {
        check: rooms_use_rooms_below,
        refuses: &[
            ("crates/onward-engine/src/world/a.rs", "use crate::drive::Driver;"),
            ("crates/onward-engine/src/world/a.rs", "use crate::{\n    load::{self, follow},\n};"),
            ("crates/onward-engine/src/check/a/b.rs", "let x = crate::resume::open(world);"),
            ("crates/onward-engine/src/revert/mod.rs", "use super::check::survey;"),
            ("crates/onward-engine/src/revert/a.rs", "use super::{super::{check, world}, b};"),
            ("crates/onward-engine/src/play/a.rs", "pub use crate::engine::Engine;"),
            ("crates/onward-engine/src/care/a.rs", "crate::play::run();"),
            ("crates/onward-engine/src/cellar/a.rs", "//! A room of its own.\n"),
            ("crates/onward-engine/src/stray.rs", "//! A noun.\n"),
        ],
        accepts: (
            "crates/onward-engine/src/check/survey.rs",
            "// crate::drive\nuse crate::{check::needs, revert, world::{World, drive}};\n\
             use super::{drive::x}; let s = \"crate::drive\"; crate::driver::f();\n\
             #[cfg(test)]\nmod tests {\n    use crate::drive::Driver;\n}",
        ),
    },
    Rule {
        check: async_lives_in_front_ends,
        refuses: &[
            ("crates/onward-engine/src/a.rs", "pub async fn drive() {}"),
            ("crates/onward-engine/tests/a.rs", "let f = async move { 1 };"),
            ("crates/onward-core/src/a.rs", "f().await?"),
        ],
        accepts: ("crates/onward/src/web.rs", "async fn serve() {}"),
    },
    Rule {
        check: nothing_is_put_off,
        refuses: &[
            ("a.rs", "#[allow(dead_code)]"),
            ("a.rs", "#![allow(clippy::all)]"),
            ("a.rs", "fn f() { todo!() }"),
            ("a.rs", "fn f() { unimplemented!() }"),
            ("a.rs", "#[test]\n#[ignore]\nfn f() {}"),
            ("a.rs", "#[ignore = \"slow\"]"),
        ],
        accepts: ("a.rs", "#[expect(dead_code, reason = \"todo!\")]"),
    },
    Rule {
        check: a_match_names_every_variant,
        refuses: &[
            ("a.rs", "match (a, b) {\n    (Role::Leaf, _) => 1,\n    _ => 2,\n}"),
            ("a.rs", "match (a, b) { (Role::Leaf, Some(x)) if x => { f(); } (_, _) => 2 }"),
            ("a.rs", "match (f(a, b), c) { (x, Role::Leaf | Role::Root) => 1, (_, other) => 2 }"),
        ],
        accepts: (
            "a.rs",
            "match (a, b) { (Role::Leaf, _) => 1, (Role::Root, Some(_)) => 2, \
             (Role::Root, None) => match x { 0 => 3, _ => 4 } } \
             match (a, b) { (Some(1), Value::Null) => 1, _ => 2 } \
             match (a.b)(c) { Role::Leaf => 1 } // match (a, b) { (Role::Leaf, 1) => 1, _ => 2 }",
        ),
    },
    Rule {
        check: prose_names_its_actor,
        refuses: &[
            ("crates/onward-core/src/a.rs", "/// Whoever calls this waits."),
            ("crates/onward-core/src/a.rs", "let why = \"somebody's change\";"),
            ("docs/a.md", "Nobody reads it."),
        ],
        accepts: ("crates/onward-core/src/a.rs", "// The driver waits; a person answers. Anewton."),
    },
    Rule {
        check: messages_are_plain,
        refuses: &[
            ("crates/x/src/a.rs", "let why = \"`a` is no phase\";"),
            ("crates/x/src/a.rs", "f(\n    \"the run can go on \\\n    without it\",\n);"),
        ],
        accepts: (
            "crates/x/src/a.rs",
            "// It is no file.\nlet why = \"there is no phase, and this is no longer one\";",
        ),
    },
    Rule {
        check: tests_never_sleep,
        refuses: &[
            ("crates/x/tests/a.rs", "std::thread::sleep(wait);"),
            ("crates/x/src/a/tests.rs", "use std::{io, thread::{self, sleep}};"),
            ("crates/x/src/a.rs", "fn f() {}\n#[cfg(test)]\nmod tests {\n    thread::sleep(x);\n}"),
        ],
        accepts: ("crates/x/src/a.rs", "#[cfg(test)]\nmod tests;\nfn f() { thread::sleep(x) }"),
    },
    Rule {
        check: no_path_of_a_machine,
        refuses: &[
            ("a.md", concat!("see `/wo", "rk/main`")),
            ("a.toml", concat!("dir = '/ro", "ot/.cargo'")),
            ("a.rs", concat!("// file:///ho", "me/ada/x")),
        ],
        accepts: (
            "a.md",
            concat!("/ho", "me/<user>, $DIR/wo", "rk/, ./ro", "ot/, tree/wo", "rk/x"),
        ),
    },
];

const SIX_HUNDRED_AND_ONE_LINES: &str = text_of(&[b'\n'; 601]);
const HUNDRED_AND_ONE_COLUMNS: &str = text_of(&[b'x'; 101]);

const fn text_of(bytes: &[u8]) -> &str {
    match str::from_utf8(bytes) {
        Ok(text) => text,
        Err(_) => panic!("the samples are ASCII"),
    }
}

/// Every crate, and the ones of ours that it may depend on.
pub(crate) const CRATES: &[(&str, &[&str])] = &[
    ("onward-core", &[]),
    ("onward-dialects", &["onward-core"]),
    ("onward-engine", &["onward-core", "onward-dialects"]),
    ("onward", &["onward-core", "onward-engine"]),
];

/// A reader who opens a file should know at once whether it is the one they want.
fn a_file_says_what_it_is(path: &str, text: &str) -> Vec<String> {
    complain_if(is_rust(path) && !text.starts_with("//! "), || {
        "begin with a `//! ` line that says what this file is".to_owned()
    })
}

/// One noun per file: a file that outgrows this has a second noun in it.
fn a_file_is_short(path: &str, text: &str) -> Vec<String> {
    let count = text.lines().count();
    complain_if(is_rust(path) && count > 600, || {
        format!("{count} lines, 600 is the most: cut it where the nouns change")
    })
}

/// Two files side by side; rustfmt leaves long strings and comments alone.
fn a_line_is_narrow(path: &str, text: &str) -> Vec<String> {
    let wide = |line: &&str| is_rust(path) && line.chars().count() > 100;
    let lines = text.lines().zip(1..).filter(|(line, _)| wide(line));
    lines.map(|(_, number)| format!("line {number} is wider than 100 columns")).collect()
}

/// `onward -> engine -> dialects -> core`: what is below can be read and tested without what is
/// above, and a front end that needs a dialect is making a decision that belongs further down.
fn layers_point_down(path: &str, text: &str) -> Vec<String> {
    let Some(name) = crate_of_manifest(path) else { return Vec::new() };
    let Some((_, allowed)) = CRATES.iter().find(|(it, _)| *it == name) else {
        return vec![format!("`{name}` has no layer yet: give it one in `CRATES`")];
    };
    let ours = dependencies(text).into_iter().filter(|it| it.starts_with("onward"));
    let upward = ours.filter(|it| !allowed.contains(&it.as_str()));
    upward.map(|it| format!("`{name}` must not depend on `{it}`")).collect()
}

/// Words, colour, arguments and runtimes belong to the front end.
fn libraries_take_no_front_end_crate(path: &str, text: &str) -> Vec<String> {
    const FRONT: [&str; 7] = ["clap", "anstream", "anstyle", "tokio", "ratatui", "axum", "rand"];
    let Some(name) = crate_of_manifest(path).filter(|it| *it != "onward") else {
        return Vec::new();
    };
    let taken = dependencies(text).into_iter().filter(|it| FRONT.contains(&it.as_str()));
    taken.map(|it| format!("`{name}` must not depend on `{it}`")).collect()
}

/// The same journal must give the same answer on every machine, at every hour, for ever.
fn core_is_pure(path: &str, text: &str) -> Vec<String> {
    const WORDS: [&str; 11] = [
        "std::fs",
        "std::env",
        "std::process",
        "std::thread",
        "std::net",
        "Instant",
        "SystemTime",
        "HashMap",
        "HashSet",
        "rand::",
        "tokio::",
    ];
    if !path.starts_with("crates/onward-core/src/") {
        return Vec::new();
    }
    forbid(&code_of(text), &WORDS, "has no place in core, which is pure")
}

/// Looking at a stranger's run must be safe, whatever it turns out to be.
fn dialects_only_read(path: &str, text: &str) -> Vec<String> {
    const WORDS: [&str; 16] = [
        "fs::write",
        "fs::copy",
        "fs::rename",
        "fs::create_dir",
        "fs::create_dir_all",
        "fs::remove_file",
        "fs::remove_dir",
        "fs::remove_dir_all",
        "fs::hard_link",
        "fs::set_permissions",
        "File::create",
        "File::create_new",
        "OpenOptions",
        "std::process",
        "std::thread",
        "onward_engine",
    ];
    if !path.starts_with("crates/onward-dialects/src/") {
        return Vec::new();
    }
    forbid(&code_of(text), &WORDS, "has no place in a dialect, which only reads")
}

/// Where a file should be there may be a stranger's link, FIFO or device: `world/open` looks first.
fn one_opener(path: &str, text: &str) -> Vec<String> {
    const WORDS: [&str; 9] = [
        "fs::read",
        "fs::read_to_string",
        "fs::write",
        "fs::copy",
        "File::open",
        "File::create",
        "File::create_new",
        "File::options",
        "OpenOptions",
    ];
    /// The opener itself; what reads the kernel's own files and other programs' registries; the
    /// stage of the demos, in a directory of their own.
    const EXEMPT: [&str; 6] = [
        "crates/onward/src/cmd/demo/",
        "crates/onward-engine/src/world/open.rs",
        "crates/onward-engine/src/world/supervisor/linux.rs",
        "crates/onward-engine/src/world/supervisor/serve.rs",
        "crates/onward-engine/src/locate/create.rs",
        "crates/onward-engine/src/agents/",
    ];
    let ours = ["crates/onward-engine/src/", "crates/onward/src/"];
    let is_tests = path.contains("/tests/") || path.ends_with("/tests.rs");
    let is_exempt = EXEMPT.iter().any(|it| path.starts_with(it));
    if is_tests || is_exempt || !ours.iter().any(|it| path.starts_with(it)) {
        return Vec::new();
    }
    let code = code_of(text);
    let product = code.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    forbid(product, &WORDS, "opens a file: `world::open` does, and looks at what it is first")
}

/// What strangers wrote must not speak to the terminal: `ink` is the only way there.
fn one_printer(path: &str, text: &str) -> Vec<String> {
    const WORDS: [&str; 7] =
        ["io::stdout", "io::stderr", "anstream", "anstyle", "crossterm", "println!", "eprintln!"];
    /// The printer and the live line; three that hand a stream on or ask what it is.
    const EXEMPT: [&str; 6] = [
        "ink.rs",
        "screen.rs",
        "prompt.rs",
        "cmd/demo/stage.rs",
        "cmd/init.rs",
        "watch/terminal.rs",
    ];
    let Some(inside) = path.strip_prefix("crates/onward/src/") else { return Vec::new() };
    if EXEMPT.contains(&inside) {
        return Vec::new();
    }
    forbid(&code_of(text), &WORDS, "goes past the printer: use `cx.out`, `cx.err` or the screen")
}

/// A command that is printed says where it works: `command` makes it, or finds it in backticks.
fn one_maker_of_commands(path: &str, text: &str) -> Vec<String> {
    const NAMES: [&str; 28] = [
        "agents", "approve", "archive", "attach", "cancel", "check", "config", "decide", "demo",
        "doctor", "done", "gc", "init", "list", "log", "pause", "plan", "rehearse", "reject",
        "repair", "rescue", "resume", "run", "schema", "status", "undo", "verify", "why",
    ];
    // The demo tells to go to its directory first.
    if !path.starts_with("crates/") || !path.contains("/src/") || path.contains("/cmd/demo/") {
        return Vec::new();
    }
    let code = code_of(text);
    let end = code.find("#[cfg(test)]\nmod tests").unwrap_or(code.len());
    let mut complaints = Vec::new();
    for (at, literal) in literals(&text[..end]) {
        let before = code[..at].rsplit([';', '{', '}']).next().unwrap_or_default();
        if before.contains("#[command") || before.contains("#[arg") {
            continue;
        }
        let is_written = before.contains("write!(") || before.contains("writeln!(");
        for (inside, _) in literal.match_indices("onward ") {
            let word = literal[inside + 7..].split(|c: char| !c.is_ascii_lowercase()).next();
            if !word.is_some_and(|it| NAMES.contains(&it)) {
                continue;
            }
            let line = text[..at].matches('\n').count() + 1;
            if literal[..inside].matches('`').count() % 2 == 0 {
                complaints.push(format!("line {line} has a command: `onward!` makes them"));
            } else if is_written {
                complaints.push(format!("line {line} writes a command: pass it through `in_text`"));
            }
        }
    }
    complaints
}

/// A library that prints cannot serve a dashboard, and its words cannot be tested in one place.
fn libraries_never_print(path: &str, text: &str) -> Vec<String> {
    const WORDS: [&str; 6] = ["println!", "print!", "eprintln!", "eprint!", "anstream", "clap"];
    let library = ["core", "dialects", "engine"];
    if !library.iter().any(|it| path.starts_with(&format!("crates/onward-{it}/src/"))) {
        return Vec::new();
    }
    forbid(&code_of(text), &WORDS, "belongs to a front end: libraries never print")
}

/// The engine is threads feeding one channel, so that the simulator can own every interleaving.
fn async_lives_in_front_ends(path: &str, text: &str) -> Vec<String> {
    const WORDS: [&str; 5] = ["async fn", "async move", "async {", "async |", ".await"];
    if !is_rust(path) || path.starts_with("crates/onward/") {
        return Vec::new();
    }
    forbid(&code_of(text), &WORDS, "is only for front ends whose libraries need it")
}

/// A silenced lint, an unwritten function and a skipped test are all debts without a reminder.
/// `#[expect(…, reason = "…")]` is the one that complains when it is no longer needed.
fn nothing_is_put_off(path: &str, text: &str) -> Vec<String> {
    const WORDS: [&str; 5] = ["#[allow(", "#![allow(", "todo!", "unimplemented!", "#[ignore"];
    if !is_rust(path) {
        return Vec::new();
    }
    forbid(&code_of(text), &WORDS, "puts work off: do it, or use `#[expect]` with a reason")
}

/// A new variant has to break every match that must think about it. Clippy sees to that where an
/// enum is matched alone, and not where it is matched in a tuple.
fn a_match_names_every_variant(path: &str, text: &str) -> Vec<String> {
    /// Enums of other crates: their variants are not ours to name.
    const FOREIGN: [&str; 2] = ["Value", "ErrorKind"];
    if !is_rust(path) {
        return Vec::new();
    }
    let code = code_of(text);
    let mut complaints = Vec::new();
    for found in tuple_matches(&code) {
        let names_ours =
            |pattern: &str| enums_in(pattern).iter().any(|name| !FOREIGN.contains(&name.as_str()));
        if found.patterns.iter().any(|pattern| names_ours(pattern)) {
            let wild = found.patterns.iter().find(|pattern| takes_anything(pattern));
            complaints.extend(wild.map(|pattern| {
                let line = found.line;
                format!("line {line}: `{pattern}` takes variants that do not exist yet")
            }));
        }
    }
    complaints
}

/// A sleep is either too short on a busy machine or too long on every other one.
fn tests_never_sleep(path: &str, text: &str) -> Vec<String> {
    if !is_rust(path) {
        return Vec::new();
    }
    let code = code_of(text);
    let inline = code.find("#[cfg(test)]\nmod tests {").map(|start| &code[start..]);
    let all = path.contains("/tests/") || path.ends_with("/tests.rs");
    let tests = if all { Some(code.as_str()) } else { inline };
    forbid(tests.unwrap_or_default(), &["thread::sleep"], "hides a race: wait for the event itself")
}

/// A path of the author's machine is wrong on every other one. The patterns are written in halves,
/// so that this file does not complain of itself.
fn no_path_of_a_machine(_path: &str, text: &str) -> Vec<String> {
    let homes = [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/")];
    let mut complaints = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        for home in homes {
            let absolute = line.match_indices(home).any(|(at, _)| {
                let before = line[..at].chars().next_back();
                let after = line[at + home.len()..].chars().next();
                let relative = |c: char| c.is_alphanumeric() || "_.-~)]}>*".contains(c);
                !before.is_some_and(relative) && after.is_some_and(|c| c != '<')
            });
            complaints.extend(complain_if(absolute, || {
                format!("line {number} names a path under `{home}` of somebody's machine")
            }));
        }
    }
    complaints
}

/// A document without a link to it is not read, and so not kept true.
pub(crate) fn unmentioned_docs(paths: &[&str], entrances: &str) -> Vec<String> {
    let is_doc = |path: &&&str| path.starts_with("docs/") && ends_in(path, "md");
    let lost = paths.iter().filter(is_doc).filter(|path| !entrances.contains(**path));
    lost.map(|path| format!("{path}: mention it in README.md or ARCHITECTURE.md")).collect()
}

/// What no code uses is still compiled, audited and kept up to date.
pub(crate) fn unused_dependencies(files: &[(String, String)]) -> Vec<String> {
    let mut complaints = Vec::new();
    let of_manifest = |path: &str| crate_of_manifest(path).map(str::to_owned);
    let manifests: Vec<_> =
        files.iter().filter_map(|(path, text)| Some((of_manifest(path)?, text))).collect();
    for (name, manifest) in &manifests {
        let code = files.iter().filter(|(path, _)| path.starts_with(&format!("crates/{name}/")));
        let code: Vec<&String> = code.filter(|it| is_rust(&it.0)).map(|(_, text)| text).collect();
        for dependency in all_dependencies(manifest) {
            let word = dependency.replace('-', "_");
            if !code.iter().any(|text| text.lines().any(|line| contains_word(line, &word))) {
                complaints.push(format!("crates/{name}/Cargo.toml: no code uses `{dependency}`"));
            }
        }
    }
    let taken: Vec<String> =
        manifests.iter().flat_map(|(_, manifest)| all_dependencies(manifest)).collect();
    let workspace = files.iter().filter(|(path, _)| path == "Cargo.toml");
    let listed = workspace.flat_map(|(_, text)| all_dependencies(text));
    let unused = listed.filter(|name| !taken.contains(name));
    complaints.extend(unused.map(|it| format!("Cargo.toml: no crate takes `{it}`")));
    complaints
}

pub(crate) fn is_rust(path: &str) -> bool {
    ends_in(path, "rs")
}

fn ends_in(path: &str, extension: &str) -> bool {
    Path::new(path).extension().is_some_and(|it| it == extension)
}

pub(crate) fn complain_if(wrong: bool, what: impl FnOnce() -> String) -> Vec<String> {
    wrong.then(what).into_iter().collect()
}

fn crate_of_manifest(path: &str) -> Option<&str> {
    path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml")
}
