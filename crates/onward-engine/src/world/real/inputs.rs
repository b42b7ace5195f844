//! Everything that can happen to a driver, in one channel: seals, signals, requests.
//!
//! Invariant: no thread is started per step, and nothing here costs anything while steps run.

use std::{
    collections::BTreeSet,
    io,
    path::PathBuf,
    sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    thread::{self, JoinHandle},
    time::Duration,
};

use onward_core::time::Timestamp;
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    iterator::{Handle, Signals},
};

use super::clock::wall_clock;
use crate::{
    world::inbox::{self, Left},
    world::{Input, supervisor::HandsEvent},
};

/// A person does not notice; a machine that looks into an empty directory does not either.
const LOOK_EVERY: Duration = Duration::from_millis(150);
/// The wall clock may be set, and stands for other waits than ours: it is asked again.
const WAIT_MAX: Duration = Duration::from_mins(1);

#[derive(Debug)]
pub(super) enum Heard {
    Input(Input),
    Request(Left),
}

#[derive(Debug)]
pub(super) struct Inputs {
    sender: Sender<Heard>,
    receiver: Receiver<Heard>,
    signals: Option<(Handle, JoinHandle<()>)>,
    inbox: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Inputs {
    pub(super) fn new() -> Self {
        let (sender, receiver) = channel();
        Self { sender, receiver, signals: None, inbox: None }
    }

    /// What the supervisor's listener calls.
    pub(super) fn ear(&self) -> impl FnMut(HandsEvent) + Send + 'static {
        let sender = self.sender.clone();
        move |event| {
            let input = match event {
                HandsEvent::Sealed(seal) => Input::Sealed(seal),
                HandsEvent::Gone { why } => Input::HandsLost { why },
                HandsEvent::Spawned(_) => return,
            };
            // Nobody listens any more: then nobody misses it.
            let _ = sender.send(Heard::Input(input));
        }
    }

    pub(super) fn hear_signals(&mut self) -> io::Result<()> {
        if self.signals.is_some() {
            return Ok(());
        }
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
        let handle = signals.handle();
        let sender = self.sender.clone();
        let thread = thread::spawn(move || {
            for _ in signals.forever() {
                let _ = sender.send(Heard::Input(Input::Interrupted));
            }
        });
        self.signals = Some((handle, thread));
        Ok(())
    }

    pub(super) fn watch_inbox(&mut self, run_dir: PathBuf) {
        if self.inbox.is_some() {
            return;
        }
        let sender = self.sender.clone();
        let (stop, stopped) = channel::<()>();
        let thread = thread::spawn(move || {
            let mut told = BTreeSet::new();
            loop {
                // Unreadable now may be readable later; the driver has other troubles then.
                let waiting = inbox::waiting(&run_dir).unwrap_or_default();
                let paths: BTreeSet<PathBuf> = waiting.iter().map(|it| it.path.clone()).collect();
                for left in waiting.into_iter().filter(|left| !told.contains(&left.path)) {
                    let _ = sender.send(Heard::Request(left));
                }
                told = paths;
                match stopped.recv_timeout(LOOK_EVERY) {
                    Err(RecvTimeoutError::Timeout) => {}
                    Ok(()) | Err(RecvTimeoutError::Disconnected) => return,
                }
            }
        });
        self.inbox = Some((stop, thread));
    }

    /// Everything that has happened; waits for the first, until the moment comes.
    pub(super) fn wait(&self, until: Option<Timestamp>) -> Vec<Heard> {
        let left = until.map(|until| Duration::from_millis(until.ms_since(wall_clock()) + 1));
        let patience = left.unwrap_or(WAIT_MAX).min(WAIT_MAX);
        let first = match self.receiver.try_recv() {
            Ok(first) => Some(first),
            // We hold a sender ourselves, so nobody is ever the last to leave.
            Err(_) => self.receiver.recv_timeout(patience).ok(),
        };
        let mut heard: Vec<Heard> = first.into_iter().collect();
        if !heard.is_empty() {
            heard.extend(self.receiver.try_iter());
        }
        heard
    }
}

impl Drop for Inputs {
    fn drop(&mut self) {
        if let Some((handle, thread)) = self.signals.take() {
            handle.close();
            let _ = thread.join();
        }
        if let Some((stop, thread)) = self.inbox.take() {
            drop(stop);
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::Request;

    #[test]
    fn a_signal_and_a_request_are_heard_and_nothing_is_heard_twice() {
        let dir = tempfile::tempdir().unwrap();
        let mut inputs = Inputs::new();
        inputs.hear_signals().unwrap();
        inputs.watch_inbox(dir.path().to_owned());
        signal_hook::low_level::raise(SIGHUP).unwrap();
        let heard = inputs.wait(None);
        assert!(matches!(heard[..], [Heard::Input(Input::Interrupted)]), "{heard:?}");
        inbox::write_request(dir.path(), &Request::Pause, Timestamp::from_micros(1)).unwrap();
        let heard = inputs.wait(None);
        let [Heard::Request(left)] = &heard[..] else { panic!("{heard:?}") };
        assert_eq!(left.request, Request::Pause);
        // Long enough for the watcher to look again at the request that is still there.
        inbox::write_request(dir.path(), &Request::Cancel, Timestamp::from_micros(2)).unwrap();
        let heard = inputs.wait(None);
        let [Heard::Request(left)] = &heard[..] else { panic!("{heard:?}") };
        assert_eq!(left.request, Request::Cancel);
    }

    #[test]
    fn what_is_ready_comes_at_once_and_together() {
        let inputs = Inputs::new();
        let mut ear = inputs.ear();
        ear(HandsEvent::Gone { why: None });
        ear(HandsEvent::Gone { why: None });
        let past = Timestamp::from_micros(0);
        assert_eq!(inputs.wait(Some(past)).len(), 2);
        assert!(inputs.wait(Some(past)).is_empty());
    }
}
