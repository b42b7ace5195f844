//! Small commands around the others: `completions`, `man`, `version`, and the hidden `supervise`
//! and `snapshot`.

use std::{ffi::OsString, path::PathBuf, process::ExitCode};

use clap::CommandFactory as _;
use clap_complete::env::{self, EnvCompleter};
use onward_engine::world::{
    open,
    real::{place_from_args, snapshot_from_args},
    supervisor::{SuperviseConfig, supervise as hold},
};

use crate::{
    cli::Cli,
    cmd::Context,
    error::{self, Error},
    shapes::{Place, Program, Text},
};

/// Print what makes a shell complete commands, runs and steps
///
/// For bash: `onward completions bash >> ~/.bashrc`; for zsh the same with `~/.zshrc`; for fish
/// `onward completions fish > ~/.config/fish/completions/onward.fish`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "Example:\n  onward completions bash >> ~/.bashrc")]
pub(crate) struct CompletionsArgs {
    /// Which shell
    shell: Shell,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

pub(crate) fn completions(cx: &mut Context, args: &CompletionsArgs) -> Result<ExitCode, Error> {
    let shell: &dyn EnvCompleter = match args.shell {
        Shell::Bash => &env::Bash,
        Shell::Zsh => &env::Zsh,
        Shell::Fish => &env::Fish,
    };
    let mut text = Vec::new();
    shell.write_registration("COMPLETE", "onward", "onward", "onward", &mut text)?;
    if cx.global.json {
        return cx.print_json(&Text::of(&text));
    }
    cx.out.write_all(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Print the manual page of onward, or of one of its commands
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "Examples:\n  onward man | man -l -\n  onward man resume | man -l -")]
pub(crate) struct ManArgs {
    /// The command; without it onward itself
    #[arg(add = crate::complete::command())]
    command: Option<String>,
    /// Write every page into this directory instead
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    dir: Option<PathBuf>,
}

pub(crate) fn man(cx: &mut Context, args: &ManArgs) -> Result<ExitCode, Error> {
    let mut all = Cli::command();
    all.build();
    if let Some(dir) = &args.dir {
        let dir = cx.path(dir);
        std::fs::create_dir_all(&dir)
            .map_err(|source| Error::CannotMake { path: dir.clone(), source })?;
        for (name, command) in pages(&all, "onward") {
            let path = dir.join(format!("{name}.1"));
            let text = page(&name, command)?;
            open::put(&path, &text, open::SHARED)
                .map_err(|source| Error::CannotMake { path, source })?;
        }
        if cx.global.json {
            let (schema, path) = ("onward.path/1".to_owned(), dir.display().to_string());
            return cx.print_json(&Place { schema, path });
        }
        return Ok(ExitCode::SUCCESS);
    }
    let wanted = args.command.as_deref().map_or("onward".to_owned(), |it| {
        format!("onward-{}", it.trim_start_matches("onward-").replace(' ', "-"))
    });
    let all = pages(&all, "onward");
    let Some((name, command)) = all.iter().find(|(name, _)| *name == wanted) else {
        let given = args.command.as_deref().unwrap_or_default();
        let names = all.iter().filter_map(|(name, _)| name.strip_prefix("onward-"));
        return Err(Error::Usage {
            message: format!("there is no command `{given}`"),
            hint: format!("commands: {}", names.collect::<Vec<_>>().join(", ")),
        });
    };
    let text = page(name, command)?;
    if cx.global.json {
        return cx.print_json(&Text::of(&text));
    }
    cx.out.write_all(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Every command that a person types, by the name of its page.
fn pages<'a>(command: &'a clap::Command, name: &str) -> Vec<(String, &'a clap::Command)> {
    let mut all = vec![(name.to_owned(), command)];
    let is_shown = |it: &&clap::Command| !it.is_hide_set() && it.get_name() != "help";
    for below in command.get_subcommands().filter(is_shown) {
        all.extend(pages(below, &format!("{name}-{}", below.get_name())));
    }
    all
}

fn page(name: &str, command: &clap::Command) -> Result<Vec<u8>, Error> {
    let mut text = Vec::new();
    let titled = command.clone().display_name(name.to_owned());
    let source = format!("onward {}", env!("CARGO_PKG_VERSION"));
    clap_mangen::Man::new(titled).source(source).manual("onward").render(&mut text)?;
    // What stands below the options has a section that is called as in every other manual.
    let text = String::from_utf8_lossy(&text)
        .replace(".SH EXTRA\nExamples:\n", ".SH EXAMPLES\n")
        .replace(".SH EXTRA\nExample:\n", ".SH EXAMPLES\n");
    Ok(text.into_bytes())
}

pub(crate) fn version(cx: &mut Context) -> Result<ExitCode, Error> {
    let this = Program::this();
    if cx.global.json {
        return cx.print_json(&this);
    }
    let Program { version, commit, features, .. } = this;
    let commit = commit.unwrap_or_else(|| "unknown".to_owned());
    writeln!(cx.out, "onward {version} (commit {commit})")?;
    let features = if features.is_empty() { "none".to_owned() } else { features.join(", ") };
    writeln!(cx.out, "features: {features}")?;
    Ok(ExitCode::SUCCESS)
}

/// Holds the children of a run; started by the engine, never by a person
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct SuperviseArgs {
    #[arg(num_args = 4)]
    place: Vec<OsString>,
}

pub(crate) fn supervise(cx: &mut Context, args: &SuperviseArgs) -> Result<ExitCode, Error> {
    let place = place_from_args(&args.place).ok_or_else(|| Error::Usage {
        message: "these are not the arguments of a supervisor".into(),
        hint: "it is started by `onward run` and `onward resume`".into(),
    })?;
    match hold(&SuperviseConfig::new(place)) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error) => {
            // For the engine that waits for us to listen; a full disk keeps no complaint of ours.
            writeln!(cx.out, "{}", error::chain(&error))?;
            Err(error.into())
        }
    }
}

/// Records the tree after an attempt; started by the supervisor, never by a person
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct SnapshotArgs {
    of: String,
}

pub(crate) fn snapshot(cx: &mut Context, args: &SnapshotArgs) -> Result<ExitCode, Error> {
    let env = std::env::vars_os().collect();
    let taken = snapshot_from_args(&args.of, &env).map_err(std::io::Error::other)?;
    writeln!(cx.out, "{}", taken.unwrap_or_default())?;
    Ok(ExitCode::SUCCESS)
}
