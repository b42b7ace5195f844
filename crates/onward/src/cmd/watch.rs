//! `onward watch`: a run on a whole screen.

use std::{
    io::{IsTerminal as _, stdin},
    process::ExitCode,
};

use crate::{
    cmd::Context,
    command::onward,
    error::Error,
    session::{Driving, Session, id_of},
    watch::{Left, watch},
};

/// Watch a run on a whole screen: steps as a tree, the selected one beside it
///
/// Shows a run that is driven and one that is over alike. Gates are answered with `a`; `?` shows
/// the other keys. Quitting does not stop the run.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "Examples:\n  onward watch\n  onward watch release-20261115-k3fq")]
pub(crate) struct WatchArgs {
    /// Which run; without it the last active one
    #[arg(add = crate::complete::run())]
    run: Option<String>,
}

pub(crate) fn run(cx: &mut Context, args: &WatchArgs) -> Result<ExitCode, Error> {
    if cx.global.json {
        return Err(Error::Usage {
            message: "`onward watch` draws on a terminal and prints no JSON".to_owned(),
            hint: "`onward attach --json` follows the run, `onward status --json` shows it once"
                .to_owned(),
        });
    }
    if !stdin().is_terminal() || !rustix::termios::isatty(rustix::stdio::stdout()) {
        return Err(Error::Usage {
            message: "`onward watch` needs a terminal".to_owned(),
            hint: "`onward attach` follows the run, `onward status` shows it once".to_owned(),
        });
    }
    let session = Session::new(cx, &Driving::default())?;
    let dir = session.named_or_last(cx, args.run.as_deref())?;
    let (left, status, live) = watch(&session, &dir)?;
    match left {
        Left::Quit => {
            let run = live.run();
            super::closing::words(cx, &dir, run, status, run.state.opened_at)?;
            Ok(ExitCode::SUCCESS)
        }
        Left::Stream => {
            let back = onward!("watch {}", id_of(&dir));
            writeln!(cx.err, "Ctrl-C leaves the stream; back to the screen: {back}")?;
            super::log::follow(cx, &session, &dir)
        }
    }
}
