//! What the supervisor says, for the engine that waits for it together with other things.
//!
//! Invariant: events come in the order in which they were said, and [`HandsEvent::Gone`] is the
//! last. Nothing here waits.

use std::os::{
    fd::{AsFd, BorrowedFd},
    unix::net::UnixStream,
};

use rustix::{io::Errno, net::RecvFlags};

use super::{
    hands::HandsEvent,
    wire::{self, Inbox, Report},
};

/// Some hundred ends.
const READ_BYTES: usize = 64 << 10;

/// The listening end of a connection.
#[derive(Debug)]
pub struct Ears {
    stream: UnixStream,
    inbox: Inbox,
    buffer: Box<[u8]>,
}

impl Ears {
    /// `heard` came together with the welcome.
    pub(crate) fn new(stream: UnixStream, heard: &[u8]) -> Self {
        let mut inbox = Inbox::default();
        inbox.push(heard);
        Self { stream, inbox, buffer: vec![0; READ_BYTES].into_boxed_slice() }
    }

    /// Everything that was said until now. After [`HandsEvent::Gone`] there is no more.
    pub fn take(&mut self) -> Vec<HandsEvent> {
        let is_open = self.fill();
        let mut events = Vec::new();
        while let Some(line) = self.inbox.next_line() {
            let event = event_of(wire::decode(&line));
            let is_last = matches!(event, HandsEvent::Gone { .. });
            events.push(event);
            if is_last {
                return events;
            }
        }
        if !is_open {
            events.push(HandsEvent::Gone { why: None });
        }
        events
    }

    /// `false` when no more will come.
    fn fill(&mut self) -> bool {
        loop {
            let received = rustix::net::recv(&self.stream, &mut *self.buffer, RecvFlags::DONTWAIT);
            match received {
                Ok((_, 0)) => return false,
                Ok((_, count)) => {
                    if !self.inbox.push(&self.buffer[..count]) {
                        return false;
                    }
                    if count < self.buffer.len() {
                        return true;
                    }
                }
                Err(Errno::AGAIN) => return true,
                Err(Errno::INTR) => {}
                Err(_) => return false,
            }
        }
    }
}

impl AsFd for Ears {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// Gone at the end, and after what an engine of our version is never told.
fn event_of(report: Option<Report>) -> HandsEvent {
    match report {
        Some(Report::Spawned(alive)) => HandsEvent::Spawned(alive),
        Some(Report::Sealed(seal)) => HandsEvent::Sealed(seal),
        Some(Report::Withdrawn { step, attempt }) => HandsEvent::Withdrawn { step, attempt },
        Some(Report::GaveUp { why }) => HandsEvent::Gone { why: Some(why) },
        Some(Report::Welcome { .. } | Report::Refused(_)) | None => HandsEvent::Gone { why: None },
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write as _};

    use super::*;

    #[test]
    fn what_came_with_the_welcome_and_what_comes_in_pieces_is_heard_once() -> io::Result<()> {
        let (ours, mut theirs) = UnixStream::pair()?;
        let alive = r#"{"say":"spawned","step":"a","attempt":1,"pid":7,"start_time":9}"#;
        let mut ears = Ears::new(ours, format!("{alive}\n{{\"say\":").as_bytes());
        assert!(matches!(ears.take()[..], [HandsEvent::Spawned(_)]));
        assert!(ears.take().is_empty(), "nothing waits for the rest");
        theirs.write_all(b"\"gave_up\",\"why\":\"full\"}\nnever read\n")?;
        let gone = HandsEvent::Gone { why: Some("full".into()) };
        assert_eq!(ears.take(), [gone]);
        Ok(())
    }

    #[test]
    fn a_supervisor_that_hangs_up_is_gone_after_its_last_word() -> io::Result<()> {
        let (ours, mut theirs) = UnixStream::pair()?;
        let mut ears = Ears::new(ours, b"");
        let alive =
            "{\"say\":\"spawned\",\"step\":\"a\",\"attempt\":1,\"pid\":7,\"start_time\":9}\n";
        // More than one reading takes.
        let said = alive.repeat(READ_BYTES / alive.len() + 9);
        let writer = std::thread::spawn(move || theirs.write_all(said.as_bytes()));
        let mut heard = 0;
        loop {
            rustix::event::poll(
                &mut [rustix::event::PollFd::new(&ears, rustix::event::PollFlags::IN)],
                None,
            )?;
            let events = ears.take();
            heard += events.iter().filter(|it| matches!(it, HandsEvent::Spawned(_))).count();
            if events.last() == Some(&HandsEvent::Gone { why: None }) {
                break;
            }
        }
        assert!(writer.join().is_ok_and(|written| written.is_ok()));
        assert_eq!(heard, READ_BYTES / alive.len() + 9);
        Ok(())
    }
}
