//! The engine's end of the connection: start or find the supervisor, ask, and listen.
//!
//! Invariant: no code here waits for a child. The engine may die at any line, and its attempts
//! continue.

use crate::world::open;
use std::{
    ffi::OsString,
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    net::Shutdown,
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::Duration,
};

use onward_core::{
    address::Address,
    launch::{Launch, Seal},
};

use super::{
    ears::Ears,
    place::{Place, Whereabouts},
    wire::{self, Alive, Hello, PROTOCOL, Refusal, Report, Request, Stop},
};

/// A supervisor may be leaving just as we come; then another one is started.
const TRIES_MAX: u32 = 3;
const ANSWER_WITHIN: Duration = Duration::from_secs(30);

#[derive(Clone, Debug)]
pub struct HandsConfig {
    pub place: Place,
    /// Higher than that of every engine before.
    pub epoch: u32,
    /// The environment that children inherit.
    pub env: Vec<(OsString, OsString)>,
    /// The command that calls [`supervise`](super::supervise) for the same place.
    pub exec: Vec<OsString>,
}

/// What the supervisor had when we came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// Attempts that go on; their seals will be reported.
    pub alive: Vec<Alive>,
    /// How much of the log was written before: [`read_seals`](super::seals::read_seals) up to here
    /// and the events from here on together tell everything once.
    pub log_bytes: u64,
    /// This supervisor is new, and its predecessor may have left orphans.
    pub is_new: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandsEvent {
    Spawned(Alive),
    Sealed(Seal),
    /// It waited for a slot, and was never spawned.
    Withdrawn {
        step: Address,
        attempt: u32,
    },
    /// The connection is over: the supervisor is gone, or a newer engine took our place. `why` if
    /// it could not go on and said so.
    Gone {
        why: Option<String>,
    },
}

#[derive(Debug, thiserror::Error)]
pub enum HandsError {
    #[error("an engine with epoch {epoch} has taken this run over")]
    TakenOver { epoch: u32 },
    #[error("the running supervisor speaks protocol {theirs}, this engine {PROTOCOL}")]
    OtherVersion { theirs: u32 },
    #[error("the supervisor found belongs to run `{run}`")]
    OtherRun { run: String },
    #[error("the supervisor did not start: {}", reason(said, *status))]
    DidNotStart { status: ExitStatus, said: String, complaints: PathBuf },
    #[error("the supervisor does not answer")]
    NoAnswer { source: io::Error },
    #[error("the supervisor is gone")]
    Gone { source: io::Error },
    #[error("cannot {what} `{}`", path.display())]
    Io { what: &'static str, path: PathBuf, source: io::Error },
}

impl HandsError {
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::TakenOver { .. } => Some("leave the run to the other one".into()),
            Self::OtherVersion { .. } => {
                Some("let its attempts end, or continue with the version that started it".into())
            }
            Self::DidNotStart { complaints, .. } => Some(format!("see `{}`", complaints.display())),
            Self::Gone { .. } => Some("resume the run".into()),
            Self::OtherRun { .. } | Self::NoAnswer { .. } | Self::Io { .. } => None,
        }
    }
}

fn reason(said: &str, status: ExitStatus) -> String {
    if said.is_empty() { status.to_string() } else { said.to_owned() }
}

/// An open connection. Dropping it leaves all attempts alone.
#[derive(Debug)]
pub struct Hands {
    stream: UnixStream,
    /// Until the engine takes its ears.
    reader: Option<BufReader<UnixStream>>,
    message: Vec<u8>,
}

impl Hands {
    /// Finds the supervisor of this run, or starts one.
    pub fn connect_or_start(config: &HandsConfig) -> Result<(Self, Welcome), HandsError> {
        if let Some(found) = connect(config)? {
            // One that holds nothing need not be kept with limits that no longer hold.
            let is_outdated = found.welcome.alive.is_empty() && has_other_limit(found.pid);
            if !is_outdated {
                return Ok((found.hands, found.welcome));
            }
            found.hands.retire()?;
        }
        let mut tries = 1;
        loop {
            let (mut child, said) = start(config)?;
            if let Some(mut found) = connect(config)? {
                // Another one may have been faster than ours, which then has left already.
                found.welcome.is_new = found.pid.cast_unsigned() == child.id();
                thread::spawn(move || child.wait());
                return Ok((found.hands, found.welcome));
            }
            // It has no engine and so no children: if it is not dead yet, it soon will be.
            let status = child.wait().map_err(|source| HandsError::Gone { source })?;
            if tries == TRIES_MAX {
                let complaints = config.place.complaints();
                return Err(HandsError::DidNotStart { status, said, complaints });
            }
            tries += 1;
        }
    }

    /// Starts all of these, in their order.
    pub fn spawn(&mut self, launches: &[Launch]) -> Result<(), HandsError> {
        self.queue(launches, None)
    }

    /// Starts these in their order, each as soon as fewer than `slots` attempts are under way. What
    /// waits when this connection ends never starts. `None` = all at once.
    pub fn queue(&mut self, launches: &[Launch], slots: Option<u32>) -> Result<(), HandsError> {
        self.ask(&Request::Spawn { launches: launches.to_vec(), slots })
    }

    /// Takes back all that waits for a slot; each is reported as withdrawn.
    pub fn withdraw(&mut self) -> Result<(), HandsError> {
        self.ask(&Request::Withdraw)
    }

    /// Ends one attempt and all its descendants; sealed as stopped. One that is over stays so.
    pub fn stop(&mut self, step: &Address, attempt: u32, how: Stop) -> Result<(), HandsError> {
        self.ask(&Request::Stop { step: step.clone(), attempt, how })
    }

    pub fn stop_all(&mut self, how: Stop) -> Result<(), HandsError> {
        self.ask(&Request::StopAll { how })
    }

    /// The supervisor leaves as soon as no child remains.
    pub fn shutdown(&mut self) -> Result<(), HandsError> {
        self.ask(&Request::Shutdown)
    }

    /// The listening end. `None` when it was taken already.
    pub fn ears(&mut self) -> Option<Ears> {
        let reader = self.reader.take()?;
        let heard = reader.buffer().to_vec();
        Some(Ears::new(reader.into_inner(), &heard))
    }

    /// Sends it away, and returns when it is gone.
    fn retire(mut self) -> Result<(), HandsError> {
        self.shutdown()?;
        let Some(mut reader) = self.reader.take() else { return Ok(()) };
        let bounded = self.stream.set_read_timeout(Some(ANSWER_WITHIN));
        let heard = bounded.and_then(|()| reader.read_to_end(&mut Vec::new()));
        heard.map(drop).map_err(|source| HandsError::NoAnswer { source })
    }

    fn ask(&mut self, request: &Request) -> Result<(), HandsError> {
        self.message.clear();
        wire::encode(request, &mut self.message);
        self.stream.write_all(&self.message).map_err(|source| HandsError::Gone { source })
    }
}

impl Drop for Hands {
    fn drop(&mut self) {
        // The ears hold the same socket; this ends them too.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

/// Whether files of another process may be larger or must be smaller than ours: an engine that was
/// started under `ulimit -f` leaves such a supervisor.
fn has_other_limit(pid: i32) -> bool {
    let line = |of: &str| {
        let limits = open::text_named(Path::new(&format!("/proc/{of}/limits")), 1 << 16).ok()?;
        limits.lines().find(|it| it.starts_with("Max file size")).map(str::to_owned)
    };
    line("self") != line(&pid.to_string())
}

struct Found {
    hands: Hands,
    welcome: Welcome,
    pid: i32,
}

/// `None` when there is no supervisor, or it is about to end.
fn connect(config: &HandsConfig) -> Result<Option<Found>, HandsError> {
    let Some(here) = Whereabouts::read(&config.place) else { return Ok(None) };
    let Ok(stream) = UnixStream::connect(&here.socket) else { return Ok(None) };
    match greet(config, stream) {
        Ok((hands, Report::Welcome { alive, log_bytes })) => {
            let welcome = Welcome { alive, log_bytes, is_new: false };
            Ok(Some(Found { hands, welcome, pid: here.pid }))
        }
        Ok((_, Report::Refused(refusal))) => Err(refused(refusal)),
        Ok((
            _,
            Report::Spawned(_)
            | Report::Sealed(_)
            | Report::Withdrawn { .. }
            | Report::GaveUp { .. },
        )) => Err(HandsError::NoAnswer { source: io::ErrorKind::InvalidData.into() }),
        Err(source) if matches!(source.kind(), io::ErrorKind::WouldBlock) => {
            Err(HandsError::NoAnswer { source })
        }
        Err(_) => Ok(None),
    }
}

fn greet(config: &HandsConfig, mut stream: UnixStream) -> io::Result<(Hands, Report)> {
    let HandsConfig { place, epoch, env, .. } = config;
    let (run, env) = (place.run.clone(), env.clone());
    let dirs = Some((place.run_dir.clone().into(), place.project_dir.clone().into()));
    let hello = Request::Hello(Hello { version: PROTOCOL, epoch: *epoch, run, env, dirs });
    let mut message = Vec::new();
    wire::encode(&hello, &mut message);
    stream.set_read_timeout(Some(ANSWER_WITHIN))?;
    stream.write_all(&message)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut line = Vec::new();
    reader.read_until(b'\n', &mut line)?;
    let report = wire::decode(&line).ok_or(io::ErrorKind::UnexpectedEof)?;
    stream.set_read_timeout(None)?;
    Ok((Hands { stream, reader: Some(reader), message }, report))
}

fn refused(refusal: Refusal) -> HandsError {
    match refusal {
        Refusal::Epoch { epoch } => HandsError::TakenOver { epoch },
        Refusal::Version { version } => HandsError::OtherVersion { theirs: version },
        Refusal::Run { run } => HandsError::OtherRun { run: run.to_string() },
    }
}

/// Returns when the supervisor listens, or is dead: either closes its standard output. What it
/// said there is why it could not start, which a full disk would not keep.
fn start(config: &HandsConfig) -> Result<(Child, String), HandsError> {
    let io_error = |what, path| move |source| HandsError::Io { what, path, source };
    let complaints = config.place.complaints();
    let log = open::at(&complaints, open::To::Append);
    let log = log.map_err(io_error("open", complaints))?;
    let (program, args) = config
        .exec
        .split_first()
        .ok_or_else(|| io_error("start", PathBuf::new())(io::ErrorKind::InvalidInput.into()))?;
    let mut child = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn()
        .map_err(io_error("start", program.into()))?;
    let mut said = Vec::new();
    if let Some(mut stdout) = child.stdout.take() {
        let until_closed = stdout.read_to_end(&mut said);
        until_closed.map_err(io_error("wait for", program.into()))?;
    }
    Ok((child, String::from_utf8_lossy(&said).trim_end().to_owned()))
}
