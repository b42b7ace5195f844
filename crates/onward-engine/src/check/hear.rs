//! What an agent says: its output, read from where the last look ended.
//!
//! Invariant: a step without an agent that is understood costs nothing here. What was read is kept
//! nowhere but in memory: another engine reads from the first byte again and comes to the same
//! [`Said`].

use onward_core::{
    address::Address,
    event::AttemptStarted,
    launch::out_name,
    run::{Run, Worker},
    said::{Said, Touched},
    worktree::WorktreePlace,
};
use onward_dialects::kit::name::checked;

use crate::{
    agents::{Spoken, Stream},
    check::collect::STDOUT_BYTES_MAX,
    world::{At, Stop, World},
};

/// What is read at a time.
const CHUNK_BYTES: usize = 1 << 20;
/// A longer line is passed over.
const LINE_BYTES_MAX: usize = 16 << 20;
/// What is read of the standard error of an attempt; programs put their reason first.
const ERR_BYTES_MAX: usize = 64 << 10;

/// Listens to one attempt.
#[derive(Debug)]
pub struct Ear {
    pub attempt: u32,
    /// The agent's name, and its program (`use`).
    pub agent: String,
    pub program: String,
    adapter: Spoken,
    /// How much of standard output was read.
    offset: u64,
    /// The part of the last line that is there already.
    begun: Vec<u8>,
    /// In the middle of a line that is too long.
    skipping: bool,
    pub said: Said,
}

impl Ear {
    /// For the attempt that a step is at; `None` where there is nothing to understand.
    pub fn of<W: World>(world: &W, run: &Run, step: &Address) -> Option<Self> {
        let attempt = run.state.step(step)?.attempts;
        let Worker { name, program } = run.worker_at(run.graph.find(step)?)?;
        let adapter = world.adapter(name, program);
        let said = Said::nothing_yet(adapter.card().closes);
        let (agent, program) = (name.to_owned(), program.to_owned());
        let (offset, begun, skipping) = (0, Vec::new(), false);
        Some(Self { attempt, agent, program, adapter, offset, begun, skipping, said })
    }

    /// Something is worth knowing before the attempt ends.
    pub fn is_live(&self) -> bool {
        self.adapter.card().closes
    }

    /// Takes in every whole line that has come since.
    pub fn listen<W: World>(&mut self, world: &mut W, step: &Address) -> Result<(), Stop> {
        let name = out_name(step, self.attempt, "out");
        loop {
            let bytes = world.read_from(At::Run(&name), self.offset, CHUNK_BYTES)?;
            self.offset += bytes.len() as u64;
            self.take(&bytes);
            if bytes.len() < CHUNK_BYTES {
                return Ok(());
            }
        }
    }

    /// Takes in all there is: the attempt is over.
    pub fn hear_out<W: World>(mut self, world: &mut W, step: &Address) -> Result<Said, Stop> {
        self.listen(world, step)?;
        let last = std::mem::take(&mut self.begun);
        self.read(Stream::Out, &last);
        let name = out_name(step, self.attempt, "err");
        let errors = world.read_from(At::Run(&name), 0, ERR_BYTES_MAX)?;
        self.read(Stream::Err, &errors);
        Ok(self.said)
    }

    /// The name of a session becomes an argument and a part of a path: one that could mean
    /// something else there is no name.
    fn read(&mut self, stream: Stream, bytes: &[u8]) {
        self.adapter.read(stream, bytes, &mut self.said);
        let is_name = |it: &String| checked(it).is_ok() && !it.starts_with('-');
        self.said.session.take_if(|it| !is_name(it));
    }

    fn take(&mut self, bytes: &[u8]) {
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let (mut lines, rest) = bytes.split_at(whole);
        if self.skipping && !lines.is_empty() {
            let end = lines.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            lines = &lines[end..];
            self.skipping = false;
        }
        if !lines.is_empty() {
            self.begun.extend_from_slice(lines);
            let mut begun = std::mem::take(&mut self.begun);
            self.read(Stream::Out, &begun);
            begun.clear();
            self.begun = begun;
        }
        if !self.skipping {
            self.begun.extend_from_slice(rest);
        }
        if self.begun.len() > LINE_BYTES_MAX {
            self.begun = Vec::new();
            self.skipping = true;
        }
    }
}

/// The session of the attempt that a step is at: as the journal has it, or as the agent told it to
/// no one, because its driver was gone before it looked. A program tells it at its beginning.
pub fn session<W: World>(
    world: &mut W,
    run: &Run,
    step: &Address,
    journaled: Option<&str>,
) -> Result<Option<String>, Stop> {
    if let Some(session) = journaled {
        return Ok(Some(session.to_owned()));
    }
    let Some(mut ear) = Ear::of(world, run, step).filter(Ear::is_live) else { return Ok(None) };
    let name = out_name(step, ear.attempt, "out");
    ear.take(&world.read_from(At::Run(&name), 0, CHUNK_BYTES)?);
    Ok(ear.said.session)
}

/// The files that the agent of a step's last attempt reports to have changed, where that tells its
/// work from a person's: it reports them, and began with the tree as it was saved.
pub fn touched<W: World>(
    world: &mut W,
    run: &Run,
    step: &Address,
    started: &AttemptStarted,
) -> Result<Option<Touched>, Stop> {
    if started.continues || WorktreePlace::at(&started.cwd).is_some() {
        return Ok(None);
    }
    let Some(ear) = Ear::of(world, run, step) else { return Ok(None) };
    Ok(ear.hear_out(world, step)?.touched)
}

/// The beginning of an agent's answer: as much as a template can see.
pub fn answer(said: &Said) -> Option<String> {
    let answer = said.answer.as_deref()?;
    let end = answer.floor_char_boundary(STDOUT_BYTES_MAX);
    Some(answer[..end].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::lines::Lines;

    fn ear() -> Ear {
        let said = Said::nothing_yet(true);
        let (offset, begun, skipping) = (0, Vec::new(), false);
        let (agent, program) = ("agent".to_owned(), "agent".to_owned());
        let adapter = Spoken::Known(&Lines);
        Ear { attempt: 1, agent, program, adapter, offset, begun, skipping, said }
    }

    #[test]
    fn lines_are_understood_wherever_they_are_cut() {
        let text =
            b"{\"session\":\"s\"}\ntalk\n{\"spent\":{\"input_tokens\":3}}\n{\"answer\":\"a\"}\n";
        let mut whole = ear();
        whole.take(text);
        assert_eq!(whole.said.spent.input_tokens, 3);
        for first in 0..text.len() {
            for second in first..text.len() {
                let mut cut = ear();
                cut.take(&text[..first]);
                cut.take(&text[first..second]);
                cut.take(&text[second..]);
                assert_eq!(cut.said, whole.said, "cut at {first} and {second}");
            }
        }
    }

    #[test]
    fn a_line_without_end_is_passed_over() {
        let mut ear = ear();
        for _ in 0..=LINE_BYTES_MAX / CHUNK_BYTES {
            ear.take(&vec![b'x'; CHUNK_BYTES]);
        }
        assert!(ear.skipping && ear.begun.is_empty());
        for name in ["../evil", "--danger", "", "a/b", "a\\u0000b"] {
            ear.take(format!("xx\n{{\"session\":\"{name}\"}}\n").as_bytes());
            assert_eq!(ear.said.session, None, "{name}");
        }
        ear.take(b"xx\n{\"session\":\"s\"}\n");
        assert_eq!(ear.said.session.as_deref(), Some("s"));
    }

    #[test]
    fn an_answer_is_cut_between_letters() {
        let long = "ü".repeat(STDOUT_BYTES_MAX);
        let said = Said { answer: Some(format!("a{long}")), ..Said::default() };
        assert_eq!(answer(&said).unwrap().len(), STDOUT_BYTES_MAX - 1);
    }
}
