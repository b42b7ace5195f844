//! The program under test, git beside it, and what they said.

use std::{
    path::Path,
    process::{Command, Output, Stdio},
};

use serde_json::Value;

/// How a command went.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Said {
    pub(crate) fn of(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let code = output.status.code().unwrap_or(-1);
        Self { code, out: text(&output.stdout), err: text(&output.stderr) }
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// An object that is spread over lines.
    #[track_caller]
    pub(crate) fn json_lines(&self) -> Value {
        self.json()
    }

    /// Standard output, standard error and exit code as one text. An object on standard output is
    /// spread over lines, to be read.
    #[must_use]
    pub(crate) fn shown(&self) -> String {
        let Self { code, out, err } = self;
        let out = if out.starts_with('{') {
            assert_eq!(out.lines().count(), 1, "{out}");
            format!("{:#}\n", self.json())
        } else {
            out.clone()
        };
        format!("{out}--- stderr\n{err}--- exit {code}")
    }
}

/// The program in a directory, with nothing of our own environment.
pub(crate) fn bare(dir: &Path, arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onward"));
    command
        .args(arguments.split(' ').filter(|it| !it.is_empty()))
        .current_dir(dir)
        .env_clear()
        .stdin(Stdio::null());
    command
}

/// The same for a person who can also call it by its name.
pub(crate) fn onward(dir: &Path, arguments: &str) -> Command {
    let program = Path::new(env!("CARGO_BIN_EXE_onward"));
    let path = std::env::var_os("PATH").unwrap().into_string().unwrap();
    let path = format!("{}:{path}", program.parent().unwrap().display());
    let mut command = bare(dir, arguments);
    command.env("PATH", path).env("USER", "ann");
    command
}

/// What git says to a person whose settings are their own alone. It must succeed.
#[track_caller]
pub(crate) fn git(dir: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    command.args(arguments).current_dir(dir).env("GIT_CONFIG_GLOBAL", "/dev/null");
    for (name, value) in [("NAME", "ann"), ("EMAIL", "ann@example.com")] {
        command.env(format!("GIT_AUTHOR_{name}"), value);
        command.env(format!("GIT_COMMITTER_{name}"), value);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}
