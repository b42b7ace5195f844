//! A workflow as bytes that are read again without parsing: what a large run keeps beside the copy
//! of its text.
//!
//! Invariant: the bytes are our own and nothing else reads them. The caller that keeps them sees to
//! it that they come back unchanged; [`LAYOUT`] is another number whenever anything in here is
//! written differently. What is cut short, or is of another layout, gives `None` and never a panic.

use std::collections::{BTreeMap, BTreeSet};

use indexmap::IndexMap;
use serde_json::Value;

use super::{
    model::{
        Agent, Count, Durability, Each, Gate, Input, InputKind, Items, Kind, Limits, Many,
        OnFailure, PinnedFile, Place, Probe, Refs, Repeat, Retry, Span, Step, Template, Text,
        Workflow, Worktree,
    },
    permissions::Permissions,
};
use crate::{
    evidence::{Cause, Usd},
    id::StepId,
};

/// The number of the layout. A test holds the bytes of a workflow that uses everything.
pub(crate) const LAYOUT: u32 = 1;

/// To bytes and back. `from` is moved on behind what was read.
pub(crate) trait Pack: Sized {
    fn pack(&self, to: &mut Vec<u8>);
    fn unpack(from: &mut &[u8]) -> Option<Self>;
}

/// Takes so many bytes off the front.
pub(crate) fn take<'a>(from: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, rest) = from.split_at_checked(length)?;
    *from = rest;
    Some(taken)
}

/// A text without a copy of it.
pub(crate) fn text<'a>(from: &mut &'a [u8]) -> Option<&'a str> {
    let length = usize::unpack(from)?;
    std::str::from_utf8(take(from, length)?).ok()
}

/// Seven bits a byte, the lowest first.
impl Pack for u64 {
    #[expect(clippy::cast_possible_truncation, reason = "the lowest seven bits are meant")]
    fn pack(&self, to: &mut Vec<u8>) {
        let mut rest = *self;
        while rest >= 0x80 {
            to.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        to.push(rest as u8);
    }

    fn unpack(from: &mut &[u8]) -> Option<Self> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = from.split_first()?;
            *from = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }
}

impl Pack for u32 {
    fn pack(&self, to: &mut Vec<u8>) {
        u64::from(*self).pack(to);
    }

    fn unpack(from: &mut &[u8]) -> Option<Self> {
        u64::unpack(from)?.try_into().ok()
    }
}

impl Pack for usize {
    fn pack(&self, to: &mut Vec<u8>) {
        (*self as u64).pack(to);
    }

    fn unpack(from: &mut &[u8]) -> Option<Self> {
        u64::unpack(from)?.try_into().ok()
    }
}

impl Pack for i32 {
    fn pack(&self, to: &mut Vec<u8>) {
        self.cast_unsigned().pack(to);
    }

    fn unpack(from: &mut &[u8]) -> Option<Self> {
        u32::unpack(from).map(u32::cast_signed)
    }
}

impl Pack for bool {
    fn pack(&self, to: &mut Vec<u8>) {
        to.push(u8::from(*self));
    }

    fn unpack(from: &mut &[u8]) -> Option<Self> {
        match take(from, 1)? {
            [0] => Some(false),
            [1] => Some(true),
            _ => None,
        }
    }
}

impl Pack for String {
    fn pack(&self, to: &mut Vec<u8>) {
        self.len().pack(to);
        to.extend_from_slice(self.as_bytes());
    }

    fn unpack(from: &mut &[u8]) -> Option<Self> {
        text(from).map(str::to_owned)
    }
}

impl Pack for StepId {
    fn pack(&self, to: &mut Vec<u8>) {
        self.as_str().len().pack(to);
        to.extend_from_slice(self.as_str().as_bytes());
    }

    fn unpack(from: &mut &[u8]) -> Option<Self> {
        text(from)?.parse().ok()
    }
}

/// As its JSON text: these are rare and of any shape.
impl Pack for Value {
    fn pack(&self, to: &mut Vec<u8>) {
        self.to_string().pack(to);
    }

    fn unpack(from: &mut &[u8]) -> Option<Self> {
        serde_json::from_str(text(from)?).ok()
    }
}

impl<T: Pack> Pack for Box<T> {
    fn pack(&self, to: &mut Vec<u8>) {
        (**self).pack(to);
    }

    fn unpack(from: &mut &[u8]) -> Option<Self> {
        T::unpack(from).map(Self::new)
    }
}

impl<T: Pack> Pack for Option<T> {
    fn pack(&self, to: &mut Vec<u8>) {
        self.is_some().pack(to);
        if let Some(it) = self {
            it.pack(to);
        }
    }

    fn unpack(from: &mut &[u8]) -> Option<Self> {
        Some(if bool::unpack(from)? { Some(T::unpack(from)?) } else { None })
    }
}

/// A list begins with its length; a length that is a lie ends with the bytes, and nothing is
/// reserved for it.
impl<T: Pack> Pack for Vec<T> {
    fn pack(&self, to: &mut Vec<u8>) {
        self.len().pack(to);
        for it in self {
            it.pack(to);
        }
    }

    fn unpack(from: &mut &[u8]) -> Option<Self> {
        (0..usize::unpack(from)?).map(|_| T::unpack(from)).collect()
    }
}

impl<T: Pack + Ord> Pack for BTreeSet<T> {
    fn pack(&self, to: &mut Vec<u8>) {
        self.len().pack(to);
        for it in self {
            it.pack(to);
        }
    }

    fn unpack(from: &mut &[u8]) -> Option<Self> {
        (0..usize::unpack(from)?).map(|_| T::unpack(from)).collect()
    }
}

impl<V: Pack> Pack for BTreeMap<String, V> {
    fn pack(&self, to: &mut Vec<u8>) {
        self.len().pack(to);
        for (name, value) in self {
            name.pack(to);
            value.pack(to);
        }
    }

    fn unpack(from: &mut &[u8]) -> Option<Self> {
        (0..usize::unpack(from)?).map(|_| Some((Pack::unpack(from)?, V::unpack(from)?))).collect()
    }
}

impl<V: Pack> Pack for IndexMap<String, V> {
    fn pack(&self, to: &mut Vec<u8>) {
        self.len().pack(to);
        for (name, value) in self {
            name.pack(to);
            value.pack(to);
        }
    }

    fn unpack(from: &mut &[u8]) -> Option<Self> {
        (0..usize::unpack(from)?).map(|_| Some((Pack::unpack(from)?, V::unpack(from)?))).collect()
    }
}

/// Field after field, as written here. The compiler misses a field that is left out.
macro_rules! fields {
    ($Name:ident { $($field:ident),+ $(,)? }) => {
        impl Pack for $Name {
            fn pack(&self, to: &mut Vec<u8>) {
                let Self { $($field),+ } = self;
                $($field.pack(to);)+
            }

            fn unpack(from: &mut &[u8]) -> Option<Self> {
                Some(Self { $($field: Pack::unpack(from)?),+ })
            }
        }
    };
}

/// A number, and then the fields of the variant. A field of a tuple is named by its position.
macro_rules! variants {
    ($Name:ident { $($tag:literal: $Variant:ident { $($field:tt: $it:ident),* }),+ $(,)? }) => {
        impl Pack for $Name {
            fn pack(&self, to: &mut Vec<u8>) {
                match self {
                    $(Self::$Variant { $($field: $it),* } => {
                        to.push($tag);
                        $($it.pack(to);)*
                    })+
                }
            }

            fn unpack(from: &mut &[u8]) -> Option<Self> {
                match take(from, 1)?[0] {
                    $($tag => Some(Self::$Variant { $($field: Pack::unpack(from)?),* }),)+
                    _ => None,
                }
            }
        }
    };
}

/// By its place in the list of all.
macro_rules! listed {
    ($Name:ident) => {
        impl Pack for $Name {
            fn pack(&self, to: &mut Vec<u8>) {
                Self::ALL.iter().position(|it| it == self).unwrap_or(Self::ALL.len()).pack(to);
            }

            fn unpack(from: &mut &[u8]) -> Option<Self> {
                Self::ALL.get(usize::unpack(from)?).copied()
            }
        }
    };
}

impl Pack for Usd {
    fn pack(&self, to: &mut Vec<u8>) {
        self.0.pack(to);
    }

    fn unpack(from: &mut &[u8]) -> Option<Self> {
        u64::unpack(from).map(Self)
    }
}

listed!(Cause);
listed!(Permissions);
fields!(Workflow { name, inputs, agents, limits, steps });
fields!(Input { kind, default, description });
fields!(Agent { adapter, model, system, permissions, allow });
fields!(PinnedFile { path, text });
fields!(Limits { parallel, usd, resumes });
fields!(Gate { prompt, shows, options, stop });
fields!(Each { items, name, key, after });
fields!(Repeat { max, until, continue_on_max });
fields!(Probe { command, absent });
fields!(Retry { max, backoff_ms, on });
fields!(Text { source, at, refs });

impl Pack for Template {
    fn pack(&self, to: &mut Vec<u8>) {
        Text::pack(self, to);
    }

    fn unpack(from: &mut &[u8]) -> Option<Self> {
        Text::unpack(from).map(Self::from)
    }
}

fields!(Refs { steps, stdout, names });
fields!(Place { file, line, column });
fields!(Step {
    id,
    at,
    description,
    kind,
    needs,
    many,
    when,
    reads,
    writes,
    check,
    result,
    worktree,
    dir,
    effect_outside,
    probe,
    retry,
    on_failure,
    timeout,
    idle_ms,
    edits,
    durability,
    keep,
    permissions,
    allow,
    env,
});
variants!(InputKind {
    0: String {},
    1: Number {},
    2: Integer {},
    3: Boolean {},
    4: List {},
    5: Object {},
});
variants!(Durability { 0: Full {}, 1: Process {} });
variants!(OnFailure { 0: Fail {}, 1: Continue {} });
variants!(Kind {
    0: Run { command: command },
    1: Agent { agent: agent, prompt: prompt },
    2: Gate { 0: gate },
    3: Call { name: name, with: with },
    4: Group { steps: steps },
    5: Sub { path: path, with: with, workflow: workflow },
});
variants!(Many { 0: Once {}, 1: Each { 0: each }, 2: Repeat { 0: repeat } });
variants!(Items { 0: List { 0: items }, 1: Expression { 0: template } });
variants!(Count { 0: Fixed { 0: count }, 1: Expression { 0: template } });
variants!(Worktree { 0: Own {}, 1: Named { 0: name } });
variants!(Span { 0: Fixed { 0: span_ms }, 1: Expression { 0: template } });

#[cfg(test)]
mod tests;
