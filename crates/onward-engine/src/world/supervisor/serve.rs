//! The supervisor process: one thread, one loop, one wait for everything.
//!
//! Invariant: at most one engine is listened to, the last one with the highest epoch ever seen; an
//! older one is dropped, with whatever it said that was not read yet, before the new one is
//! answered. Two engines have the same epoch only when the first wrote nothing, and so spawned
//! nothing: a resume that was refused, say.

use std::{
    fs::File,
    io::{self, Read as _, Write as _},
    os::unix::net::{UnixListener, UnixStream},
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicBool, atomic::Ordering},
};

use rustix::event::{PollFd, PollFlags, Timespec};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};

use super::{
    attempt::Key,
    linux,
    place::{Place, PlaceError, Whereabouts},
    seals::{Log, OpenError, Opened},
    wire::{self, Hello, Inbox, PROTOCOL, Refusal, Report, Request, Stop},
    work::{Work, WorkConfig},
};
use crate::world::spot::Spot;

/// Connections that have not said hello yet.
const GUESTS_MAX: usize = 8;
/// An engine that does not read this much is dropped; the log has it all.
const UNREAD_BYTES_MAX: usize = 64 << 20;
/// The engine that started us is on its way, however busy the machine is.
const FIRST_ENGINE_WITHIN_MS: u64 = 30_000;
const READ_BYTES: usize = 64 << 10;

/// What the hidden subcommand is told.
#[derive(Clone, Debug)]
pub struct SuperviseConfig {
    pub place: Place,
    /// How time-outs, and processes that an attempt leaves behind, are ended.
    pub leftover_stop: Stop,
    /// Without engine and children, it leaves after this long.
    pub linger_ms: u64,
    /// Of each output stream of an attempt; the rest is cut.
    pub output_bytes_max: u64,
}

impl SuperviseConfig {
    pub fn new(place: Place) -> Self {
        let (linger_ms, output_bytes_max) = (5_000, 256 << 20);
        Self { place, leftover_stop: Stop::default(), linger_ms, output_bytes_max }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum SuperviseError {
    #[error("run `{0}` has a supervisor already")]
    AlreadyRunning(String),
    #[error(transparent)]
    Place(#[from] PlaceError),
    #[error("cannot {what} `{}`", path.display())]
    Io { what: &'static str, path: PathBuf, source: io::Error },
    #[error("cannot {what}")]
    Os { what: &'static str, source: io::Error },
}

impl SuperviseError {
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::AlreadyRunning(_) => Some("connect to it"),
            Self::Place(error) => error.hint(),
            Self::Io { .. } => None,
            Self::Os { .. } => Some("start it with `onward run` or `onward resume`, never by hand"),
        }
    }
}

fn os(what: &'static str) -> impl FnOnce(io::Error) -> SuperviseError {
    move |source| SuperviseError::Os { what, source }
}

/// Becomes the supervisor of a run, and returns when it is no longer needed.
///
/// The caller starts this in a process of its own, from its first thread, with standard output
/// connected to the engine that waits for the supervisor to listen: it is closed at that moment.
pub fn supervise(config: &SuperviseConfig) -> Result<(), SuperviseError> {
    let SuperviseConfig { place, leftover_stop, linger_ms, output_bytes_max } = config;
    let (leftover_stop, output_bytes_max) = (*leftover_stop, *output_bytes_max);
    rustix::process::setsid().map_err(|error| os("open a session")(error.into()))?;
    linux::become_subreaper().map_err(os("become a subreaper"))?;
    let signals = Signals::catch().map_err(os("catch signals"))?;
    let us = rustix::process::getpid().as_raw_nonzero().get();
    let Some(us) = linux::process(us).map(|process| process.id) else {
        return Err(os("read /proc")(io::ErrorKind::Unsupported.into()));
    };
    let boot_id = linux::boot_id().map_err(os("read the boot id"))?;
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let (pid, start_time) = (us.pid, us.start_time);
    let at = linux::wall_now();
    let spot = Spot::of(&place.run_dir).map_err(os("look at the run's directory"))?;
    let opened = Opened {
        pid,
        start_time,
        boot_id: boot_id.clone(),
        version: version.clone(),
        at,
        spot: Some(spot),
    };
    let log = open_log(place, opened)?;
    let socket = place.socket()?;
    let listener = listen(&socket).map_err(|source| SuperviseError::Io {
        what: "listen on",
        path: socket.clone(),
        source,
    })?;
    let here =
        Whereabouts { socket: socket.clone(), pid, start_time, boot_id, version, spot: Some(spot) };
    let place_of_work = place.clone();
    let null = File::open("/dev/null").map_err(os("open /dev/null"))?;
    let config = WorkConfig { place: place_of_work, spot, null, leftover_stop, output_bytes_max };
    let work = Work::new(config, log);
    let mut server = Server {
        work,
        listener,
        signals,
        guests: Vec::new(),
        engine: None,
        epoch_max: 0,
        is_leaving: false,
        linger_ms: *linger_ms,
        leave_at: Some(linux::awake_ms() + FIRST_ENGINE_WITHIN_MS),
        buffer: vec![0; READ_BYTES].into_boxed_slice(),
    };
    let path = place.whereabouts();
    here.write(place).map_err(|source| SuperviseError::Io { what: "write", path, source })?;
    let null = File::options().read(true).write(true).open("/dev/null");
    let null = null.map_err(os("open /dev/null"))?;
    rustix::stdio::dup2_stdout(&null).map_err(|error| os("let go of stdout")(error.into()))?;
    let outcome = server.run();
    let place = &server.work.place.clone();
    if let Err(error) = &outcome {
        server.give_up(&place.seals(), error);
    }
    server.work.leave_group();
    // In this order: an engine that finds no file may wait for our lock, soon free.
    let _ = std::fs::remove_file(place.whereabouts());
    let _ = std::fs::remove_file(&socket);
    let complaints = place.complaints();
    if std::fs::metadata(&complaints).is_ok_and(|found| found.len() == 0) {
        let _ = std::fs::remove_file(complaints);
    }
    let path = place.seals();
    outcome.map_err(|source| SuperviseError::Io { what: "keep the log", path, source })
}

fn open_log(place: &Place, opened: Opened) -> Result<Log, SuperviseError> {
    let path = place.seals();
    let boot_id = opened.boot_id.clone();
    // Otherwise one is leaving, or was killed and has left the lock with a child that is not
    // executed yet, or has just come and will say where it is.
    let is_there = || {
        let here = Whereabouts::read(place);
        here.is_some_and(|it| it.boot_id == boot_id && it.identity().is_alive())
    };
    Log::open(&path, is_there, opened).map_err(|error| match error {
        OpenError::Held => SuperviseError::AlreadyRunning(place.run.to_string()),
        OpenError::Io(source) => SuperviseError::Io { what: "open", path, source },
    })
}

/// The lock on the log is ours, so a socket that is there already is left over.
fn listen(socket: &PathBuf) -> io::Result<UnixListener> {
    match std::fs::remove_file(socket) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let listener = UnixListener::bind(socket)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Caught, never ignored: a child would inherit that it is to ignore them.
struct Signals {
    /// Has a byte for each signal that wants to be acted on.
    pipe: UnixStream,
    terminated: Arc<AtomicBool>,
}

impl Signals {
    fn catch() -> io::Result<Self> {
        let (pipe, write) = UnixStream::pair()?;
        pipe.set_nonblocking(true)?;
        let terminated = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(SIGTERM, Arc::clone(&terminated))?;
        signal_hook::low_level::pipe::register(SIGTERM, write.try_clone()?)?;
        signal_hook::low_level::pipe::register(SIGCHLD, write)?;
        for ignored in [SIGINT, SIGHUP] {
            signal_hook::flag::register(ignored, Arc::new(AtomicBool::new(false)))?;
        }
        Ok(Self { pipe, terminated })
    }
}

struct Connection {
    stream: UnixStream,
    inbox: Inbox,
    outbox: Vec<u8>,
}

impl Connection {
    /// `false` when the other end is gone or talks nonsense without end.
    fn fill(&mut self, buffer: &mut [u8]) -> bool {
        match self.stream.read(buffer) {
            Ok(0) => false,
            Ok(count) => self.inbox.push(&buffer[..count]),
            Err(error) => is_later(&error),
        }
    }

    /// Writes what the other end takes now; `false` when it is gone or does not read.
    fn flush(&mut self) -> bool {
        while !self.outbox.is_empty() {
            match self.stream.write(&self.outbox) {
                Ok(count) => drop(self.outbox.drain(..count)),
                Err(error) if is_later(&error) => break,
                Err(_) => return false,
            }
        }
        self.outbox.len() <= UNREAD_BYTES_MAX
    }

    fn interest(&self) -> PollFlags {
        let writes = if self.outbox.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
        PollFlags::IN | writes
    }
}

fn is_later(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

struct Server {
    work: Work,
    listener: UnixListener,
    signals: Signals,
    guests: Vec<Connection>,
    engine: Option<Connection>,
    epoch_max: u32,
    is_leaving: bool,
    linger_ms: u64,
    /// While there is neither engine nor child.
    leave_at: Option<u64>,
    buffer: Box<[u8]>,
}

/// What became ready.
enum Ready {
    Signal,
    Caller,
    Guest(usize),
    Engine,
    Pipe(Key, usize, PollFlags),
}

impl Server {
    fn run(&mut self) -> io::Result<()> {
        loop {
            let now = linux::awake_ms();
            self.work.fire(now)?;
            self.work.fill(now)?;
            self.report(now)?;
            self.work.must_go_on()?;
            if self.may_leave(now) {
                return self.work.sync();
            }
            let ready = self.wait(now)?;
            self.act(ready, linux::awake_ms())?;
        }
    }

    /// A disk that takes no line of the log takes no complaint either; the engine still hears it.
    fn give_up(&mut self, log: &Path, error: &io::Error) {
        let why = format!("cannot keep the log `{}`: {error}", log.display());
        if let Some(engine) = &mut self.engine {
            wire::encode(&Report::GaveUp { why }, &mut engine.outbox);
            engine.flush();
        }
    }

    fn may_leave(&mut self, now: u64) -> bool {
        self.leave_at = if self.engine.is_none() && self.work.is_idle() {
            self.leave_at.or(Some(now + self.linger_ms))
        } else {
            None
        };
        let lingered = self.leave_at.is_some_and(|at| now >= at);
        self.work.is_idle() && (self.is_leaving || lingered)
    }

    /// The one wait.
    fn wait(&self, now: u64) -> io::Result<Vec<Ready>> {
        let deadline = self.work.deadline(now).into_iter().chain(self.leave_at).min();
        let timeout = deadline.map(|at| timespec(at.saturating_sub(now)));
        let mut what = vec![Ready::Signal, Ready::Caller];
        let mut fds = vec![
            PollFd::new(&self.signals.pipe, PollFlags::IN),
            PollFd::new(&self.listener, PollFlags::IN),
        ];
        for (index, guest) in self.guests.iter().enumerate() {
            what.push(Ready::Guest(index));
            fds.push(PollFd::new(&guest.stream, guest.interest()));
        }
        if let Some(engine) = &self.engine {
            what.push(Ready::Engine);
            fds.push(PollFd::new(&engine.stream, engine.interest()));
        }
        for (key, stream, pipe) in self.work.pipes(now) {
            what.push(Ready::Pipe(key.clone(), stream, PollFlags::empty()));
            fds.push(PollFd::from_borrowed_fd(pipe, PollFlags::IN));
        }
        match rustix::event::poll(&mut fds, timeout.as_ref()) {
            Ok(_) => {}
            // A child ended, mostly: looked into at once, instead of after another wait.
            Err(rustix::io::Errno::INTR) => return Ok(vec![Ready::Signal]),
            Err(error) => return Err(error.into()),
        }
        let both = what.into_iter().zip(&fds).filter(|(_, fd)| !fd.revents().is_empty());
        let ready = both.map(|(what, fd)| match what {
            Ready::Pipe(key, stream, _) => Ready::Pipe(key, stream, fd.revents()),
            Ready::Signal | Ready::Caller | Ready::Guest(_) | Ready::Engine => what,
        });
        Ok(ready.collect())
    }

    /// Takes in all that is ready before it draws conclusions from ended children; guests before
    /// the engine, because a newer one drops what the older one still wanted.
    fn act(&mut self, ready: Vec<Ready>, now: u64) -> io::Result<()> {
        let (mut was_signalled, mut was_called, mut is_engine_ready) = (false, false, false);
        let mut gone_guests = Vec::new();
        for ready in ready {
            match ready {
                Ready::Signal => {
                    was_signalled = true;
                    // More than fits wakes us again.
                    let _ = self.signals.pipe.read(&mut self.buffer);
                }
                Ready::Caller => was_called = true,
                Ready::Guest(index) => {
                    if !self.guests[index].fill(&mut self.buffer) {
                        gone_guests.push(index);
                    }
                }
                Ready::Engine => is_engine_ready = true,
                Ready::Pipe(key, stream, flags) => self.work.hear(&key, stream, flags, now)?,
            }
        }
        if was_called {
            self.accept();
        }
        self.hear_guests(&gone_guests)?;
        if is_engine_ready {
            self.hear_engine()?;
        }
        self.obey(now)?;
        if was_signalled {
            self.work.reap(now)?;
            if self.signals.terminated.swap(false, Ordering::Relaxed) {
                self.is_leaving = true;
                self.work.stop_all(Stop::default(), now);
            }
        }
        Ok(())
    }

    /// Reads at once: most engines have said hello by then.
    fn accept(&mut self) {
        if let Ok((stream, _)) = self.listener.accept()
            && stream.set_nonblocking(true).is_ok()
        {
            let (inbox, outbox) = (Inbox::default(), Vec::new());
            let mut guest = Connection { stream, inbox, outbox };
            if guest.fill(&mut self.buffer) {
                self.guests.push(guest);
            }
        }
    }

    fn hear_guests(&mut self, gone: &[usize]) -> io::Result<()> {
        let guests = std::mem::take(&mut self.guests);
        for (index, mut guest) in guests.into_iter().enumerate() {
            match guest.inbox.next_line() {
                Some(line) => self.greet(guest, &line)?,
                None if gone.contains(&index) => {}
                None => self.guests.push(guest),
            }
        }
        // The connection that was silent longest gives way.
        self.guests.drain(..self.guests.len().saturating_sub(GUESTS_MAX));
        Ok(())
    }

    /// The first line of a connection decides what becomes of it.
    fn greet(&mut self, mut guest: Connection, line: &[u8]) -> io::Result<()> {
        let Some(Request::Hello(hello)) = wire::decode(line) else { return Ok(()) };
        if let Some(refusal) = self.refusal(&hello) {
            wire::encode(&Report::Refused(refusal), &mut guest.outbox);
            guest.flush();
            return Ok(());
        }
        self.engine = None;
        self.work.forget_queue();
        self.work.take_reports()?;
        self.work.sync()?;
        self.epoch_max = hello.epoch;
        if let Some((run_dir, project_dir)) = hello.dirs {
            self.work.move_to(run_dir.into(), project_dir.into());
        }
        self.work.meet(hello.env);
        self.work.has_engine = true;
        let (alive, log_bytes) = (self.work.alive(), self.work.log_bytes());
        wire::encode(&Report::Welcome { alive, log_bytes }, &mut guest.outbox);
        self.engine = Some(guest);
        Ok(())
    }

    fn refusal(&self, hello: &Hello) -> Option<Refusal> {
        let run = &self.work.nursery.run;
        if hello.version != PROTOCOL {
            Some(Refusal::Version { version: PROTOCOL })
        } else if hello.run != *run {
            Some(Refusal::Run { run: run.clone() })
        } else if hello.epoch < self.epoch_max {
            Some(Refusal::Epoch { epoch: self.epoch_max })
        } else {
            None
        }
    }

    fn hear_engine(&mut self) -> io::Result<()> {
        let heard = self.engine.as_mut().is_none_or(|engine| engine.fill(&mut self.buffer));
        if heard { Ok(()) } else { self.lose_engine() }
    }

    /// Its last words still count; what it was not told is in the log, and now must stay there.
    fn lose_engine(&mut self) -> io::Result<()> {
        self.obey(linux::awake_ms())?;
        self.engine = None;
        self.work.has_engine = false;
        self.work.forget_queue();
        self.work.sync()
    }

    fn obey(&mut self, now: u64) -> io::Result<()> {
        while let Some(line) = self.engine.as_mut().and_then(|engine| engine.inbox.next_line()) {
            match wire::decode(&line) {
                Some(Request::Spawn { launches, slots }) => match slots {
                    Some(slots) => self.work.queue(launches, slots, now)?,
                    None => launches.into_iter().try_for_each(|it| self.work.spawn(it, now))?,
                },
                Some(Request::Withdraw) => self.work.withdraw(),
                Some(Request::Stop { step, attempt, how }) => {
                    self.work.stop(&(step, attempt), how, now);
                }
                Some(Request::StopAll { how }) => self.work.stop_all(how, now),
                Some(Request::Shutdown) => self.is_leaving = true,
                // Not from an engine of ours: it is not listened to any longer.
                Some(Request::Hello(_)) | None => {
                    self.engine = None;
                    self.work.has_engine = false;
                    self.work.forget_queue();
                }
            }
        }
        Ok(())
    }

    /// Tells the engine what happened, if one is connected.
    fn report(&mut self, now: u64) -> io::Result<()> {
        let is_due = self.work.reports_are_due(now);
        let reports = if is_due { self.work.take_reports()? } else { Vec::new() };
        let Some(engine) = &mut self.engine else { return Ok(()) };
        for report in &reports {
            wire::encode(report, &mut engine.outbox);
        }
        if engine.flush() { Ok(()) } else { self.lose_engine() }
    }
}

fn timespec(ms: u64) -> Timespec {
    let seconds = i64::try_from(ms / 1000).unwrap_or(i64::MAX);
    let nanos = i64::try_from(ms % 1000 * 1_000_000).expect("less than a second");
    Timespec { tv_sec: seconds, tv_nsec: nanos }
}
