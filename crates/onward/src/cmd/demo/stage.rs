//! Where a demo plays: a temporary directory with this very program at work in it.
//!
//! Invariant: what a demo prints is words, or with `--json` one object and nothing else; with
//! `--quiet` it prints what went wrong.

use std::{
    os::fd::AsFd as _,
    path::PathBuf,
    process::{Command, ExitCode, Stdio},
};

use onward_engine::care::harness::{EngineProcess, until};
use serde_json::Value;

use crate::{
    cmd::Context,
    error::{self, Error},
    session::word,
    shapes::Demo,
};

pub(super) struct Stage {
    this: PathBuf,
    pub(super) dir: PathBuf,
}

/// How a demo came out.
pub(super) struct Told<'a> {
    /// What holds, when nothing is against it.
    pub(super) proved: &'a str,
    pub(super) against: &'a [String],
    /// Fields of the object that `--json` prints, beside those that every demo has.
    pub(super) facts: Value,
    /// Commands that show what is there, one a line.
    pub(super) look: &'a str,
}

/// Whether the user wants words, and neither an object nor silence.
fn speaks(cx: &Context) -> bool {
    !cx.global.json && !cx.global.quiet
}

/// Words of ours.
pub(super) fn say(cx: &mut Context, text: &str) -> Result<(), Error> {
    if speaks(cx) {
        writeln!(cx.out, "{text}")?;
        cx.out.flush()?;
    }
    Ok(())
}

impl Stage {
    pub(super) fn set_up(files: &[(&str, &str)]) -> Result<Self, Error> {
        let this = std::env::current_exe()
            .map_err(|source| Error::CannotRead { path: "onward".into(), source })?;
        let made = tempfile::Builder::new().prefix("onward-demo-").tempdir();
        let path = std::env::temp_dir();
        let dir = made.map_err(|source| Error::CannotMake { path, source })?.keep();
        for (name, text) in files {
            let path = dir.join(name);
            let parent = path.parent().unwrap_or(&dir);
            let written =
                std::fs::create_dir_all(parent).and_then(|()| std::fs::write(&path, text));
            written.map_err(|source| Error::CannotMake { path, source })?;
        }
        Ok(Self { this, dir })
    }

    /// Makes it a git repository whose first commit has these files.
    pub(super) fn commit(&self, files: &[&str]) -> Result<(), Error> {
        let add: Vec<&str> = ["add", "--"].iter().chain(files).copied().collect();
        let (name, mail) = ("user.name=demo", "user.email=demo@localhost");
        let commit = ["-c", name, "-c", mail, "commit", "-qm", "start"];
        for args in [&["init", "--quiet"][..], &add, &commit] {
            let done = Command::new("git").args(args).current_dir(&self.dir).status();
            if !done.is_ok_and(|status| status.success()) {
                return Err(Error::Demo("git does not work here".into()));
            }
        }
        Ok(())
    }

    /// Lets git commit here when the user has no git identity.
    pub(super) fn sign(&self) -> Result<(), Error> {
        for (key, value) in [("user.name", "demo"), ("user.email", "demo@localhost")] {
            let mut set = Command::new("git");
            set.args(["config", key, value]).current_dir(&self.dir);
            if !set.status().is_ok_and(|status| status.success()) {
                return Err(Error::Demo("git does not work here".into()));
            }
        }
        Ok(())
    }

    /// This very program, at work in the demo's directory; its words join ours.
    pub(super) fn command(&self, cx: &Context) -> Result<Command, Error> {
        let mut command = Command::new(&self.this);
        command.current_dir(&self.dir).stdin(Stdio::null());
        command.env_remove("ONWARD_NOW").env_remove("ONWARD_MODE");
        // Task lists of the user's own are no part of it.
        command.env("CLAUDE_CONFIG_DIR", self.dir.join(".onward/claude"));
        if speaks(cx) {
            command.stderr(Stdio::from(std::io::stdout().as_fd().try_clone_to_owned()?));
        } else {
            command.stdout(Stdio::null()).stderr(Stdio::null());
        }
        Ok(command)
    }

    pub(super) fn onward(&self, cx: &Context, args: &[&str]) -> Result<Option<i32>, Error> {
        Ok(self.command(cx)?.args(args).status()?.code())
    }

    /// Starts an engine with these arguments and ends it with SIGKILL as soon as there is
    /// something; gives its process and that.
    pub(super) fn kill_when<T>(
        &self,
        cx: &Context,
        args: &[&str],
        what: &'static str,
        mut there: impl FnMut() -> Option<T>,
    ) -> Result<(u32, T), Error> {
        let mut engine = EngineProcess::start(self.command(cx)?.args(args))?;
        let found = until(what, || Ok(there()))?;
        engine.kill()?;
        Ok((engine.pid(), found))
    }

    /// The plan as a user sees it, and its data.
    pub(super) fn plan(&self, cx: &Context) -> Result<Value, Error> {
        if speaks(cx) {
            self.onward(cx, &["plan"])?;
        }
        let output = self.command(cx)?.args(["plan", "--json"]).stdout(Stdio::piped()).output()?;
        Ok(serde_json::from_slice(&output.stdout).map_err(std::io::Error::other)?)
    }

    /// How this program is called in a command that is pasted: one that was built and not installed
    /// by its path.
    fn name(&self) -> String {
        let this = std::fs::canonicalize(&self.this).ok();
        let dirs = std::env::var_os("PATH").unwrap_or_default();
        let found =
            std::env::split_paths(&dirs).map(|it| it.join("onward")).find(|it| it.is_file());
        let is_found = found.and_then(|it| std::fs::canonicalize(it).ok());
        if this.is_some() && is_found == this {
            return "onward".to_owned();
        }
        word(&self.this.display().to_string())
    }

    pub(super) fn tell(&self, cx: &mut Context, told: &Told<'_>) -> Result<ExitCode, Error> {
        let holds = told.against.is_empty();
        let code = if holds { error::OK } else { error::FAILED };
        let dir = self.dir.display();
        if cx.global.json {
            cx.print_json(&Demo {
                schema: "onward.demo/1".to_owned(),
                dir: dir.to_string(),
                proved: holds,
                against: told.against.to_vec(),
                exit: code,
                facts: told.facts.as_object().cloned().unwrap_or_default(),
            })?;
            return Ok(ExitCode::from(code));
        }
        if holds && cx.global.quiet {
            return Ok(ExitCode::from(code));
        }
        if holds {
            writeln!(cx.out, "\nProved: {}", told.proved)?;
        } else {
            writeln!(cx.out, "\nNOT PROVED:\n  {}", told.against.join("\n  "))?;
        }
        let this = self.name();
        let look = told.look.lines().map(str::trim_start).map(|line| {
            line.strip_prefix("onward ").map_or(line.to_owned(), |rest| format!("{this} {rest}"))
        });
        let look: Vec<String> = look.collect();
        writeln!(cx.out, "\nLook around:\n  cd {dir}\n  {}", look.join("\n  "))?;
        Ok(ExitCode::from(code))
    }
}
