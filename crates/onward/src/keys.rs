//! Keys that are pressed while a block moves at the bottom of the terminal: they are not shown, so
//! that nothing stands between the rows which are drawn again.
//!
//! Invariant: the terminal is given back as it was found, at every question and at every end: of
//! the block, of the program, by a panic, and when it is stopped. Ctrl-C stays a signal, and what
//! was typed is there for the program that reads next.

use std::{
    sync::{Arc, Mutex, Once, PoisonError},
    thread,
};

use rustix::termios::{LocalModes, OptionalActions, Termios, isatty, tcgetattr, tcsetattr};
use signal_hook::{
    consts::{SIGQUIT, SIGTSTP},
    iterator::Signals,
    low_level::emulate_default_handler,
};

/// How the terminal was, while it does not show keys.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);
static WATCHED: Once = Once::new();
/// Takes what moves off the screen before a stop: the shell writes below it.
static LEAVE: Mutex<Option<Arc<dyn Fn() + Send + Sync>>> = Mutex::new(None);

/// What to do before the program is stopped. It may wait for the screen, so no lock is held
/// meanwhile that a frame waits for.
pub(crate) fn before_a_stop(leave: impl Fn() + Send + Sync + 'static) {
    *LEAVE.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(leave));
}

/// From here on keys are not shown. Cheap enough for every frame, so that a program that was
/// stopped and continues, or one that comes to the foreground, hides them again.
pub(crate) fn hide() {
    let (keyboard, terminal) = (rustix::stdio::stdin(), rustix::stdio::stderr());
    if !(isatty(terminal) && isatty(keyboard) && is_in_front()) {
        return;
    }
    WATCHED.call_once(watch);
    let mut before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner);
    let Ok(now) = tcgetattr(terminal) else { return };
    // One that shows no keys, as its user wants it, is left alone.
    if !now.local_modes.contains(LocalModes::ECHO) {
        return;
    }
    let mut hidden = now.clone();
    hidden.local_modes -= LocalModes::ECHO | LocalModes::ECHONL;
    if tcsetattr(terminal, OptionalActions::Now, &hidden).is_ok() {
        *before = Some(now);
    }
}

/// The terminal as it was.
pub(crate) fn show() {
    give_back(&mut BEFORE.lock().unwrap_or_else(PoisonError::into_inner));
}

fn give_back(before: &mut Option<Termios>) {
    // In the background it belongs to another program.
    if let Some(before) = before.take().filter(|_| is_in_front()) {
        // When it is gone there is nothing to give back.
        let _ = tcsetattr(rustix::stdio::stderr(), OptionalActions::Now, &before);
    }
}

/// One that does not control us is always ours to change.
fn is_in_front() -> bool {
    let in_front = rustix::termios::tcgetpgrp(rustix::stdio::stderr());
    in_front.map_or(true, |group| group == rustix::process::getpgrp())
}

/// Gives the terminal back before a stop (Ctrl-Z), an end by Ctrl-\ and a panic. Ctrl-C and SIGTERM
/// are heard by the driver, which ends the block.
fn watch() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        // A thread that panics with the lock has changed nothing.
        if let Ok(mut before) = BEFORE.try_lock() {
            give_back(&mut before);
        }
        usual(panic);
    }));
    // Where signals cannot be heard, the shell sees to its terminal.
    let Ok(mut signals) = Signals::new([SIGTSTP, SIGQUIT]) else { return };
    thread::spawn(move || {
        for signal in signals.forever() {
            let leave = LEAVE.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if let Some(leave) = leave {
                leave();
            }
            // No frame hides keys between this and the stop; the next one after it does.
            let mut before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner);
            give_back(&mut before);
            let _ = emulate_default_handler(signal);
        }
    });
}
