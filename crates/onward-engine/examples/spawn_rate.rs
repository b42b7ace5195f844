//! How many commands a second go through the supervisor, beside a bare loop that only spawns.
//!
//! `cargo run --release -p onward-engine --example spawn_rate [commands] [parallel] [rounds]`

use std::{
    collections::BTreeMap,
    ffi::OsString,
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
};

use onward_core::{
    address::Address,
    launch::{Launch, Program},
};
use onward_engine::world::supervisor::{
    Hands, HandsConfig, HandsEvent, Place, SuperviseConfig, seals::read_seals, supervise,
};
use rustix::{
    event::{PollFd, PollFlags},
    process::WaitOptions,
    time::{ClockId, clock_gettime},
};

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [role, dir] = &args[..]
        && role == "supervise"
    {
        return Ok(supervise(&SuperviseConfig::new(place(Path::new(dir))?))?);
    }
    let number = |index: usize, default| args.get(index).map_or(Ok(default), |it| it.parse());
    let (commands, parallel, rounds) = (number(0, 1000)?, number(1, 2)?, number(2, 5)?);
    let mut out = std::io::stdout();
    writeln!(out, "{commands} x /bin/true, {parallel} at a time")?;
    // Turn by turn, so that a busy machine is busy for both.
    let (mut rates, mut costs) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let bare = measure(commands, || bare_loop(commands, parallel))?;
        let hands = measure(commands, || through_hands(commands, parallel))?;
        writeln!(out, "bare  {bare}   hands {hands}")?;
        rates.push(hands.rate / bare.rate);
        costs.push(hands.cpu_ms / bare.cpu_ms);
    }
    let (rate, cost) = (median(rates), median(costs));
    writeln!(out, "median of hands to bare: rate {rate:.3}, processor time {cost:.3}")?;
    Ok(())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

struct Measure {
    /// Commands a second.
    rate: f64,
    /// Processor time of all that took part, for each command.
    cpu_ms: f64,
}

impl std::fmt::Display for Measure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:6.0}/s {:6.3} ms", self.rate, self.cpu_ms)
    }
}

fn measure(commands: u32, run: impl FnOnce() -> Result<(), Failure>) -> Result<Measure, Failure> {
    let (start, cpu_start) = (awake_us(), cpu_ms()?);
    run()?;
    let span_us = u32::try_from(awake_us() - start)?;
    let rate = f64::from(commands) * 1e6 / f64::from(span_us);
    Ok(Measure { rate, cpu_ms: f64::from(cpu_ms()? - cpu_start) / f64::from(commands) })
}

fn awake_us() -> i64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec * 1_000_000 + now.tv_nsec / 1000
}

/// Ours, and that of every child that was waited for; in steps of ten.
fn cpu_ms() -> Result<u32, Failure> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks = fields.skip(11).take(4).map(str::parse::<u32>).sum::<Result<u32, _>>()?;
    Ok(ticks * 10)
}

/// The unavoidable: `posix_spawn`, and wait for whichever ends.
fn bare_loop(commands: u32, parallel: u32) -> Result<(), Failure> {
    let mut running = 0;
    let mut left = commands;
    while left > 0 || running > 0 {
        while left > 0 && running < parallel {
            let null = Stdio::null;
            Command::new("/bin/true").stdin(null()).stdout(null()).stderr(null()).spawn()?;
            left -= 1;
            running += 1;
        }
        rustix::process::wait(WaitOptions::empty())?;
        running -= 1;
    }
    Ok(())
}

/// Each end is reported over the socket before the next command is asked for.
fn through_hands(commands: u32, parallel: u32) -> Result<(), Failure> {
    let dir = tempfile::tempdir()?;
    let place = place(dir.path())?;
    std::fs::create_dir(&place.run_dir)?;
    let exec: Vec<OsString> =
        vec![std::env::current_exe()?.into(), "supervise".into(), dir.path().into()];
    let env = std::env::vars_os().collect();
    let config = HandsConfig { place: place.clone(), epoch: 1, env, exec };
    let (mut hands, _) = Hands::connect_or_start(&config)?;
    let mut ears = hands.ears().ok_or("the supervisor has no voice")?;
    let mut launches = (0..commands).map(launch);
    let first: Vec<Launch> = launches.by_ref().take(parallel as usize).collect();
    hands.spawn(&first)?;
    let mut sealed = 0;
    while sealed < commands {
        rustix::event::poll(&mut [PollFd::new(&ears, PollFlags::IN)], None)?;
        for event in ears.take() {
            match event {
                HandsEvent::Sealed(_) => {
                    sealed += 1;
                    if let Some(next) = launches.next() {
                        hands.spawn(&[next])?;
                    }
                }
                HandsEvent::Spawned(_) | HandsEvent::Withdrawn { .. } => {}
                HandsEvent::Gone { .. } => return Err("the supervisor is gone".into()),
            }
        }
    }
    hands.shutdown()?;
    // Its processor time is counted only when it has been waited for.
    while rustix::process::wait(WaitOptions::empty()).is_ok() {}
    let seals = read_seals(&place.seals(), None)?;
    let expected = usize::try_from(commands)?;
    if seals.seals().count() == expected { Ok(()) } else { Err("a seal is missing".into()) }
}

fn launch(number: u32) -> Launch {
    Launch {
        step: Address::from_text(&format!("step[{number}]")),
        attempt: 1,
        program: Program::Argv(vec!["/bin/true".into()]),
        cwd: String::new(),
        env: BTreeMap::new(),
        check: None,
        timeout_ms: None,
        idle_ms: None,
        sync_seal: false,
        snapshot: None,
        stop: None,
        of: None,
        outputs: Vec::new(),
    }
}

fn place(dir: &Path) -> Result<Place, Failure> {
    Ok(Place {
        run: "spawn-rate".parse()?,
        run_dir: dir.join("run"),
        project_dir: dir.to_owned(),
        socket_dir: dir.join("s"),
    })
}
