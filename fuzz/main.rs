//! Finds inputs that make onward panic, hang or take the machine's memory.
//!
//! ```text
//! scripts/fuzz --seconds 120 [--target NAME] [--seed N]     all targets in turn
//! scripts/fuzz --target NAME --input FILE                   one input again
//! ```
//!
//! The parent starts one child after the other. A child goes through a batch of mutated seeds under
//! a bound of memory, and a second thread in it ends it when one input takes too much time. Before
//! each input is tried it is written down, so that the one that killed its child is known.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a tool for people who change onward, not the product"
)]

mod mutate;
mod targets;

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::Duration,
};

use rustix::{
    process::{Resource, Rlimit, getrlimit, setrlimit},
    time::{ClockId, clock_gettime},
};

use mutate::Mutator;
use targets::{TARGETS, Target};

/// What one input may take.
const MEMORY_BYTES_MAX: u64 = 512 << 20;
const WORK_MS_MAX: u64 = 1_000;
/// A wait that never ends takes no work.
const WALL_MS_MAX: u64 = 20_000;
const BATCH: u64 = 400;

struct Asked {
    seconds: u64,
    seed: u64,
    target: Option<String>,
    input: Option<PathBuf>,
    /// A child: its first number, and where it writes down what it tries.
    batch: Option<(u64, PathBuf)>,
}

fn asked() -> Asked {
    let mut asked = Asked { seconds: 120, seed: 1, target: None, input: None, batch: None };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().unwrap_or_else(|| panic!("{word} needs a value"));
        match word.as_str() {
            "--seconds" => asked.seconds = value().parse().unwrap(),
            "--seed" => asked.seed = value().parse().unwrap(),
            "--target" => asked.target = Some(value()),
            "--input" => asked.input = Some(value().into()),
            "--batch" => asked.batch = Some((value().parse().unwrap(), value().into())),
            _ => panic!("what is {word}?"),
        }
    }
    asked
}

fn main() -> ExitCode {
    let asked = asked();
    let is_meant = |it: &&Target| asked.target.as_ref().is_none_or(|name| *name == it.name);
    let targets: Vec<&Target> = TARGETS.iter().filter(is_meant).collect();
    assert!(!targets.is_empty(), "targets: {:?}", TARGETS.map(|it| it.name));
    if let Some(path) = &asked.input {
        let bytes = fs::read(path).unwrap();
        watch();
        begin();
        (targets[0].try_one)(&bytes);
        println!("{} bytes are fine", bytes.len());
        return ExitCode::SUCCESS;
    }
    if let Some((first, current)) = &asked.batch {
        batch(targets[0], *first, current);
        return ExitCode::SUCCESS;
    }
    all(&targets, &asked)
}

/// The parent: batch after batch, each target in turn, until the time is over.
fn all(targets: &[&Target], asked: &Asked) -> ExitCode {
    let until = ms(ClockId::Monotonic) + asked.seconds * 1000;
    let place = PathBuf::from("target/fuzz");
    fs::create_dir_all(&place).unwrap();
    let (mut batches, mut failed) = (0_u64, Vec::new());
    'all: for round in 0.. {
        for target in targets {
            if ms(ClockId::Monotonic) >= until && round > 0 {
                break 'all;
            }
            let first = asked.seed.wrapping_mul(1 << 40).wrapping_add(round * BATCH);
            let current = place.join(format!("{}.current", target.name));
            let mut child = Command::new(std::env::current_exe().unwrap());
            child.args(["--target", target.name, "--batch", &first.to_string()]).arg(&current);
            let status = child.status().unwrap();
            batches += 1;
            if !status.success() {
                let kept = place.join(format!("{}-{first}.failed", target.name));
                fs::rename(&current, &kept).unwrap();
                eprintln!("{}: {status}: {}", target.name, kept.display());
                failed.push((target.name, kept));
            }
        }
    }
    let (inputs, count) = (batches * BATCH, targets.len());
    println!("fuzz: {inputs} inputs over {count} targets, {} failed", failed.len());
    for (name, path) in &failed {
        println!("  again: scripts/fuzz --target {name} --input {}", path.display());
    }
    ExitCode::from(u8::from(!failed.is_empty()))
}

fn batch(target: &Target, first: u64, current: &Path) {
    let seeds = target.seeds();
    watch();
    for number in first..first + BATCH {
        let input = Mutator::new(number).input(&seeds);
        fs::write(current, &input).unwrap();
        begin();
        (target.try_one)(&input);
    }
    let _ = fs::remove_file(current);
}

/// When the present input began: work done until then, and the wall clock.
static WORK: AtomicU64 = AtomicU64::new(0);
static WALL: AtomicU64 = AtomicU64::new(0);

fn ms(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    u64::try_from(now.tv_sec * 1000 + now.tv_nsec / 1_000_000).unwrap()
}

fn begin() {
    WORK.store(ms(ClockId::ProcessCPUTime), Ordering::Relaxed);
    WALL.store(ms(ClockId::Monotonic), Ordering::Relaxed);
}

/// Bounds this process, and ends it when an input takes too long. Work is what is measured: the
/// machine may be busy with something else.
fn watch() {
    let pages: u64 = fs::read_to_string("/proc/self/statm")
        .ok()
        .and_then(|text| text.split(' ').next()?.parse().ok())
        .unwrap_or(0);
    let before = getrlimit(Resource::As);
    // The program itself, and the stack of the thread below, are no input's doing.
    let bound = pages * 4096 + (16 << 20) + MEMORY_BYTES_MAX;
    setrlimit(Resource::As, Rlimit { current: Some(bound), maximum: before.maximum }).unwrap();
    begin();
    thread::spawn(|| {
        loop {
            thread::sleep(Duration::from_millis(50));
            let worked = ms(ClockId::ProcessCPUTime).saturating_sub(WORK.load(Ordering::Relaxed));
            let waited = ms(ClockId::Monotonic).saturating_sub(WALL.load(Ordering::Relaxed));
            if worked > WORK_MS_MAX || waited > WALL_MS_MAX {
                eprintln!("one input took {worked} ms of work, {waited} ms in all");
                std::process::abort();
            }
        }
    });
}
