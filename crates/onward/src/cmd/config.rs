//! `onward config`: what is set, where it was set, and the file to set more.

use std::{path::Path, process::ExitCode};

use onward_engine::world::open;
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    cmd::Context,
    diagnostic::printable,
    error::Error,
    session::{Driving, Session, word},
    shapes::Place,
    style::{self, DIM},
    width,
};

/// Show the configuration and where each value comes from
///
/// Nearer wins: a flag, then an `ONWARD_` variable, then `.onward/config.toml` from here up to the
/// root of the project, then `$XDG_CONFIG_HOME/onward/config.toml`, then the default.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "Examples:\n  onward config\n  onward config edit")]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    what: Option<ConfigCommand>,
}

#[derive(clap::Subcommand, Clone, Copy, Debug)]
enum ConfigCommand {
    /// Every value with its origin (the default)
    #[command(after_help = "Example:\n  onward config show")]
    Show {
        /// Accepted for clarity: the origin is always shown
        #[arg(long)]
        origin: bool,
    },
    /// Print the path of this project's configuration file
    #[command(after_help = "Example:\n  cat \"$(onward config path)\"")]
    Path,
    /// Open this project's configuration file in `$VISUAL` or `$EDITOR`
    #[command(after_help = "Example:\n  EDITOR=nano onward config edit")]
    Edit,
}

/// `onward config --json`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Shown {
    schema: String,
    /// The file of this project, whether it exists or not.
    path: String,
    values: Vec<Line>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
struct Line {
    name: String,
    value: String,
    origin: String,
}

/// What a new file says: everything is a comment, so that nothing changes by itself.
pub(crate) const TEMPLATE: &str = "\
# Settings of onward for this project; see `onward config` for what is in force.

# How many archives `onward gc` leaves.
# keep = 5

# Who answers at a resume (autopilot, interactive or preflight), and how many seconds running steps
# get after the first Ctrl-C.
# [defaults]
# mode = \"interactive\"
# grace_seconds = 10

# Run when a gate opens and when a run parks, fails or ends; JSON comes on its standard input.
# [notify]
# command = [\"notify-send\", \"onward\"]

# An agent: any command. `{prompt}` is replaced; without it the prompt comes on standard input.
# [agents.helper]
# command = [\"my-agent\", \"--print\", \"{prompt}\"]
";

pub(crate) fn run(cx: &mut Context, args: &ConfigArgs) -> Result<ExitCode, Error> {
    // A broken file must not keep a person from opening it.
    let here = std::path::absolute(&cx.global.cwd)?;
    let project = onward_engine::locate::Project::locate(&here)
        .map_err(|source| Error::CannotRead { path: here, source })?;
    let path = project.root().join(".onward/config.toml");
    match args.what {
        None | Some(ConfigCommand::Show { .. }) => {
            show(cx, &Session::new(cx, &Driving::default())?, &path)
        }
        Some(ConfigCommand::Edit) => edit(cx, &path),
        Some(ConfigCommand::Path) => {
            let path = path.display().to_string();
            if cx.global.json {
                return cx.print_json(&Place { schema: "onward.path/1".to_owned(), path });
            }
            writeln!(cx.out, "{path}")?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn show(cx: &mut Context, session: &Session, path: &Path) -> Result<ExitCode, Error> {
    let listed = session.config.listed();
    if cx.global.json {
        let values = listed.into_iter().map(|(name, value, origin)| Line {
            name,
            value,
            origin: origin.to_string(),
        });
        return cx.print_json(&Shown {
            schema: "onward.config/1".to_owned(),
            path: path.display().to_string(),
            values: values.collect(),
        });
    }
    let root = format!("{}/", session.project.root().display());
    let rows = listed.into_iter().map(|(name, value, origin)| {
        // The project's own file goes by its name in the project.
        let origin = origin.to_string();
        let origin = origin.strip_prefix(&root).unwrap_or(&origin);
        [printable(&name), printable(&value), printable(origin)]
    });
    for line in table(&rows.collect::<Vec<_>>(), style::columns()) {
        writeln!(cx.out, "{line}")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Name, value and origin in columns. Where a row does not fit, its origin stands below the value.
fn table(rows: &[[String; 3]], width: Option<usize>) -> Vec<String> {
    let names = rows.iter().map(|[name, ..]| width::of(name)).max().unwrap_or(0);
    let width = width.unwrap_or(COLUMNS_MAX).max(names + 2);
    let fits =
        |value: &str, origin: &str| names + 2 + width::of(value) + 2 + width::of(origin) <= width;
    let short = rows.iter().filter(|[_, value, origin]| fits(value, origin));
    let longest = short.clone().map(|[_, _, origin]| width::of(origin)).max().unwrap_or(0);
    // So wide that the origins of all rows that fit stand below each other.
    let room = width.saturating_sub(names + 2 + 2 + longest);
    let values = short.map(|[_, value, _]| width::of(value)).filter(|it| *it <= room).max();
    let values = values.unwrap_or(0);
    let below = " ".repeat(names + 2);
    let row = |[name, value, origin]: &[String; 3]| {
        let name = format!("{name}{}", " ".repeat(names - width::of(name)));
        let origin = format!("{DIM}{origin}{DIM:#}");
        if width::of(value) <= values {
            let pad = " ".repeat(values - width::of(value));
            return format!("{name}  {value}{pad}  {origin}");
        }
        let value = style::wrap(value, Some(width), names + 2, names + 2);
        format!("{name}  {value}\n{below}{origin}")
    };
    rows.iter().map(row).collect()
}

/// Where no terminal says how wide it is.
const COLUMNS_MAX: usize = 120;

/// Makes the file if there is none, with everything in it as a comment.
fn edit(cx: &mut Context, path: &Path) -> Result<ExitCode, Error> {
    if !path.exists() {
        let parent = path.parent().unwrap_or(path);
        let made = std::fs::create_dir_all(parent)
            .and_then(|()| open::put(path, TEMPLATE.as_bytes(), open::SHARED));
        made.map_err(|source| Error::CannotMake { path: path.to_owned(), source })?;
    }
    let editor = ["VISUAL", "EDITOR"].into_iter().find_map(std::env::var_os);
    let Some(editor) = editor.filter(|it| !it.is_empty()) else {
        return Err(Error::Usage {
            message: "no editor is set".to_owned(),
            hint: format!("set EDITOR, or open {} yourself", path.display()),
        });
    };
    let line = format!("{} {}", editor.to_string_lossy(), word(&path.display().to_string()));
    let status = std::process::Command::new("sh").arg("-c").arg(line).status()?;
    if !status.success() {
        return Err(Error::Usage {
            message: "the editor failed".to_owned(),
            hint: format!("the file is {}", path.display()),
        });
    }
    // Said at once, and not at the next run.
    Session::new(cx, &Driving::default())?;
    if cx.global.json {
        let (schema, path) = ("onward.path/1".to_owned(), path.display().to_string());
        return cx.print_json(&Place { schema, path });
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_is_too_long_leaves_the_columns_of_the_others_alone() {
        let row = |all: [&str; 3]| all.map(str::to_owned);
        let long = "[\"my-agent\", \"--print\", \"--and-more\"]";
        let rows = [row(["keep", "5", "default"]), row(["agents.x", long, "config.toml"])];
        let shown = table(&rows, Some(40)).join("\n");
        let plain = crate::ink::printed(&shown, false);
        let lines = [
            "keep      5  default",
            "agents.x  [\"my-agent\", \"--print\",",
            "          \"--and-more\"]",
            "          config.toml",
        ];
        assert_eq!(plain.lines().collect::<Vec<_>>(), lines);
    }
}
