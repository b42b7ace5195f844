//! What is asked of every declared step of a large run, in a few bits: so that most steps are never
//! looked into.

use crate::workflow::model::{Durability, Kind, Many, Step};

/// A step in two bytes. Each question says the same as the field that it stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Brief(u16);

/// What a step is, without its contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    Run,
    Agent,
    Gate,
    Call,
    Group,
    Sub,
}

/// How often it stands in the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Often {
    Once,
    Each,
    Repeat,
}

const WORD: u16 = 0b111;
const OFTEN: u16 = 0b11;
const OFTEN_AT: u32 = 3;
const WHEN: u16 = 1 << 5;
const READS: u16 = 1 << 6;
const CHECK: u16 = 1 << 7;
const WORKTREE: u16 = 1 << 8;
const EDITS: u16 = 1 << 9;
const SYNCED: u16 = 1 << 10;

impl Brief {
    pub(super) fn of(step: &Step) -> Self {
        let word = match step.kind {
            Kind::Run { .. } => 0,
            Kind::Agent { .. } => 1,
            Kind::Gate(_) => 2,
            Kind::Call { .. } => 3,
            Kind::Group { .. } => 4,
            Kind::Sub { .. } => 5,
        };
        let often = match step.many {
            Many::Once => 0,
            Many::Each(_) => 1,
            Many::Repeat(_) => 2,
        };
        let bits = [
            (WHEN, step.when.is_some()),
            (READS, !step.reads.is_empty()),
            (CHECK, step.check.is_some()),
            (WORKTREE, step.worktree.is_some()),
            (EDITS, step.edits),
            (SYNCED, step.durability == Durability::Full),
        ];
        let bits = bits.into_iter().filter(|(_, is)| *is).fold(0, |all, (bit, _)| all | bit);
        Self(word | often << OFTEN_AT | bits)
    }

    pub(super) fn bits(self) -> u16 {
        self.0
    }

    /// `None` for bits that no step has.
    pub(super) fn from_bits(bits: u32) -> Option<Self> {
        let bits = u16::try_from(bits).ok()?;
        let known = WORD | OFTEN << OFTEN_AT | WHEN | READS | CHECK | WORKTREE | EDITS | SYNCED;
        let fits = bits & !known == 0 && bits & WORD <= 5 && bits >> OFTEN_AT & OFTEN <= 2;
        fits.then_some(Self(bits))
    }

    pub fn word(self) -> Word {
        match self.0 & WORD {
            0 => Word::Run,
            1 => Word::Agent,
            2 => Word::Gate,
            3 => Word::Call,
            4 => Word::Group,
            _ => Word::Sub,
        }
    }

    pub fn often(self) -> Often {
        match self.0 >> OFTEN_AT & OFTEN {
            0 => Often::Once,
            1 => Often::Each,
            _ => Often::Repeat,
        }
    }

    /// Runs or asks by itself, instead of holding other steps.
    pub fn is_leaf(self) -> bool {
        match self.word() {
            Word::Run | Word::Agent | Word::Gate | Word::Call => true,
            Word::Group | Word::Sub => false,
        }
    }

    pub fn is_gate(self) -> bool {
        self.word() == Word::Gate
    }

    pub fn has_when(self) -> bool {
        self.0 & WHEN != 0
    }

    /// It declares what it reads.
    pub fn has_reads(self) -> bool {
        self.0 & READS != 0
    }

    pub fn has_check(self) -> bool {
        self.0 & CHECK != 0
    }

    pub fn has_worktree(self) -> bool {
        self.0 & WORKTREE != 0
    }

    pub fn edits(self) -> bool {
        self.0 & EDITS != 0
    }

    /// Its outputs are on the disk before it counts as done.
    pub fn is_synced(self) -> bool {
        self.0 & SYNCED != 0
    }
}
