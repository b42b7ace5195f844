//! Everything that can happen to a driver, in one wait: seals, signals, requests.
//!
//! The end of an attempt wakes the driver itself. What is rare, signals and requests, comes from
//! threads of its own, through a channel with a bell.
//!
//! Invariant: no thread is started per step, and nothing here costs anything while steps run. What
//! is in the channel has rung the bell, or is about to.

use std::{
    collections::BTreeSet,
    io,
    os::fd::OwnedFd,
    path::PathBuf,
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use onward_core::time::Timestamp;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec};
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    iterator::{Handle, Signals},
};

use super::clock::wall_clock;
use crate::{
    world::inbox::{self, Left},
    world::{
        Input,
        supervisor::{Ears, HandsEvent},
    },
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

/// What ended a wait for a moment.
#[derive(Debug)]
pub(crate) enum Waited {
    /// The moment has come.
    Over,
    Asked(Vec<Left>),
    Interrupted,
}

#[derive(Debug)]
pub(super) struct Inputs {
    sender: Sender<Heard>,
    receiver: Receiver<Heard>,
    bell: Option<Arc<OwnedFd>>,
    ears: Option<Ears>,
    signals: Option<(Handle, JoinHandle<()>)>,
    inbox: Option<(Sender<()>, JoinHandle<()>)>,
}

/// How a thread tells the driver.
struct Teller {
    sender: Sender<Heard>,
    bell: Arc<OwnedFd>,
}

impl Teller {
    fn tell(&self, heard: Heard) {
        // A driver that listens no more misses nothing; a bell that is full rings already.
        let _ = self.sender.send(heard);
        let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
    }
}

/// See [`Inputs::rest`].
pub(super) struct Rest<'a> {
    inputs: &'a mut Inputs,
    heard: Vec<Heard>,
}

impl Rest<'_> {
    /// One that cannot be heard ends the program as it always does: nothing was written.
    pub(super) fn hear_signals(&mut self) {
        let _ = self.inputs.hear_signals();
    }

    /// Whether a person interrupts the driver.
    pub(super) fn is_interrupted(&mut self) -> bool {
        let (rung, said) = self.inputs.ready(Duration::ZERO);
        if said {
            self.heard.extend(self.inputs.hear());
        }
        if let Some(bell) = self.inputs.bell.as_ref().filter(|_| rung) {
            let _ = rustix::io::read(bell, &mut [0_u8; 8]);
            self.heard.extend(self.inputs.receiver.try_iter());
        }
        self.heard.iter().any(|it| matches!(it, Heard::Input(Input::Interrupted)))
    }
}

impl Drop for Rest<'_> {
    fn drop(&mut self) {
        if self.heard.is_empty() {
            return;
        }
        if let Ok(teller) = self.inputs.teller() {
            self.heard.drain(..).for_each(|it| teller.tell(it));
        }
    }
}

impl Inputs {
    pub(super) fn new() -> Self {
        let (sender, receiver) = channel();
        Self { sender, receiver, bell: None, ears: None, signals: None, inbox: None }
    }

    fn teller(&mut self) -> io::Result<Teller> {
        let bell = if let Some(bell) = &self.bell {
            Arc::clone(bell)
        } else {
            let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
            Arc::clone(self.bell.insert(Arc::new(rustix::event::eventfd(0, flags)?)))
        };
        Ok(Teller { sender: self.sender.clone(), bell })
    }

    /// From now on these hands are heard, and no others.
    pub(super) fn hear_hands(&mut self, mut ears: Ears) -> io::Result<()> {
        let teller = self.teller()?;
        // The driver has read what came with the welcome: no poll reports it again.
        let early = ears.take();
        let is_over = matches!(early.last(), Some(HandsEvent::Gone { .. }));
        early.into_iter().filter_map(input_of).for_each(|it| teller.tell(it));
        self.ears = (!is_over).then_some(ears);
        Ok(())
    }

    pub(super) fn hear_signals(&mut self) -> io::Result<()> {
        if self.signals.is_some() {
            return Ok(());
        }
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
        let handle = signals.handle();
        let teller = self.teller()?;
        let thread = thread::spawn(move || {
            for signal in signals.forever() {
                // A closed terminal is not a request to stop: the run continues without a screen.
                if signal != SIGHUP {
                    teller.tell(Heard::Input(Input::Interrupted));
                }
            }
        });
        self.signals = Some((handle, thread));
        Ok(())
    }

    pub(super) fn watch_inbox(&mut self, run_dir: PathBuf) -> io::Result<()> {
        if self.inbox.is_some() {
            return Ok(());
        }
        let teller = self.teller()?;
        let (stop, stopped) = channel::<()>();
        let thread = thread::spawn(move || {
            let mut told = BTreeSet::new();
            loop {
                // Unreadable now may be readable later; the driver has other troubles then.
                let waiting = inbox::waiting(&run_dir).unwrap_or_default();
                let paths: BTreeSet<PathBuf> = waiting.iter().map(|it| it.path.clone()).collect();
                for left in waiting.into_iter().filter(|left| !told.contains(&left.path)) {
                    teller.tell(Heard::Request(left));
                }
                told = paths;
                match stopped.recv_timeout(LOOK_EVERY) {
                    Err(RecvTimeoutError::Timeout) => {}
                    Ok(()) | Err(RecvTimeoutError::Disconnected) => return,
                }
            }
        });
        self.inbox = Some((stop, thread));
        Ok(())
    }

    pub(super) fn watches_inbox(&self) -> bool {
        self.inbox.is_some()
    }

    /// Waits for the moment, or for a person; no attempt runs.
    pub(super) fn until(&mut self, moment: Timestamp) -> Waited {
        while wall_clock() < moment {
            let mut asked = Vec::new();
            for heard in self.wait(Some(moment)) {
                match heard {
                    Heard::Input(Input::Interrupted) => return Waited::Interrupted,
                    Heard::Input(
                        Input::Sealed(_)
                        | Input::Withdrawn { .. }
                        | Input::HandsLost { .. }
                        | Input::Asked(_),
                    ) => {}
                    Heard::Request(left) => asked.push(left),
                }
            }
            if !asked.is_empty() {
                return Waited::Asked(asked);
            }
        }
        Waited::Over
    }

    /// For a driver that waits for something else. What it hears meanwhile is heard again.
    pub(super) fn rest(&mut self) -> Rest<'_> {
        Rest { inputs: self, heard: Vec::new() }
    }

    /// Everything that has happened; waits for the first, until the moment comes.
    pub(super) fn wait(&mut self, until: Option<Timestamp>) -> Vec<Heard> {
        loop {
            let left = until.map(|until| Duration::from_millis(until.ms_since(wall_clock()) + 1));
            let (rung, said) = self.ready(left.unwrap_or(WAIT_MAX).min(WAIT_MAX));
            let mut heard = Vec::new();
            if said {
                heard.extend(self.hear());
            }
            if let Some(bell) = self.bell.as_ref().filter(|_| rung) {
                // Before the channel is emptied: what is sent after that rings again.
                let _ = rustix::io::read(bell, &mut [0_u8; 8]);
                heard.extend(self.receiver.try_iter());
            }
            // That an attempt has begun is nothing to wake up for.
            if !heard.is_empty() || !said {
                return heard;
            }
        }
    }

    /// Waits; says whether the bell was rung, and whether the hands said something.
    fn ready(&self, patience: Duration) -> (bool, bool) {
        let sources = [
            self.bell.as_ref().map(|it| PollFd::new(it, PollFlags::IN)),
            self.ears.as_ref().map(|it| PollFd::new(it, PollFlags::IN)),
        ];
        let is_there = sources.each_ref().map(Option::is_some);
        let mut fds: Vec<PollFd<'_>> = sources.into_iter().flatten().collect();
        let patience = Timespec::try_from(patience).ok();
        if rustix::event::poll(&mut fds, patience.as_ref()).is_err() {
            return (false, false);
        }
        let mut ready = fds.iter().map(|it| !it.revents().is_empty());
        let [rung, said] = is_there.map(|it| it && ready.next().unwrap_or(false));
        (rung, said)
    }

    fn hear(&mut self) -> impl Iterator<Item = Heard> {
        let said = self.ears.as_mut().map(Ears::take).unwrap_or_default();
        if matches!(said.last(), Some(HandsEvent::Gone { .. })) {
            self.ears = None;
        }
        said.into_iter().filter_map(input_of)
    }
}

fn input_of(event: HandsEvent) -> Option<Heard> {
    match event {
        HandsEvent::Sealed(seal) => Some(Heard::Input(Input::Sealed(seal))),
        HandsEvent::Withdrawn { step, attempt } => {
            Some(Heard::Input(Input::Withdrawn { step, attempt }))
        }
        HandsEvent::Gone { why } => Some(Heard::Input(Input::HandsLost { why })),
        HandsEvent::Spawned(_) => None,
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
    use std::{io::Write as _, os::unix::net::UnixStream};

    use super::*;
    use crate::world::Request;

    #[test]
    fn a_signal_and_a_request_are_heard_and_nothing_is_heard_twice() {
        let dir = tempfile::tempdir().unwrap();
        let mut inputs = Inputs::new();
        inputs.hear_signals().unwrap();
        inputs.watch_inbox(dir.path().to_owned()).unwrap();
        // A hang-up is heard, so that it does not end the process, and means nothing.
        signal_hook::low_level::raise(SIGHUP).unwrap();
        signal_hook::low_level::raise(SIGTERM).unwrap();
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
        let mut inputs = Inputs::new();
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        inputs.hear_hands(Ears::new(ours, b"")).unwrap();
        inputs.teller().unwrap().tell(Heard::Input(Input::Interrupted));
        theirs.write_all(b"{\"say\":\"gave_up\",\"why\":\"full\"}\n").unwrap();
        let past = Timestamp::from_micros(0);
        assert_eq!(inputs.wait(Some(past)).len(), 2);
        assert!(inputs.wait(Some(past)).is_empty());
    }

    #[test]
    fn what_came_with_the_welcome_is_heard_and_a_beginning_wakes_no_one() {
        let mut inputs = Inputs::new();
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let alive = br#"{"say":"spawned","step":"a","attempt":1,"pid":7,"start_time":9}"#;
        let gone = b"\n{\"say\":\"gave_up\",\"why\":\"full\"}\n";
        inputs.hear_hands(Ears::new(ours, &[&alive[..], gone].concat())).unwrap();
        let heard = inputs.wait(None);
        let why = Some("full".to_owned());
        assert!(
            matches!(&heard[..], [Heard::Input(Input::HandsLost { why: it })] if *it == why),
            "{heard:?}"
        );
    }
}
