//! The ways in which the files of a conference are spelled, and which of them were met.
//!
//! Invariant: every spelling says the same as the system's own reference; that it was met is told
//! once, as a remark.

use std::collections::BTreeSet;

use onward_core::time::Timestamp;
use serde_json::Value;

use crate::kit::{
    name::{self, NotAName},
    number::{self, Moment},
};

/// A way of writing that differs from the system's own reference, and is understood all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Spelling {
    TypeForEvent,
    TsForTimestamp,
    TimeForTimestamp,
    MomentWithoutZone,
    OutcomeForStatus,
    RoundNumberInName,
    NumberAsText,
    FieldsWithoutPayload,
    BareKeys,
    TextAfterNumber,
}

/// Those that were met.
pub type Spellings = BTreeSet<Spelling>;

impl Spelling {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TypeForEvent => "`type` for `event`",
            Self::TsForTimestamp => "`ts` for `timestamp`",
            Self::TimeForTimestamp => "`time` for `timestamp`",
            Self::MomentWithoutZone => "a moment without a time zone, read as UTC",
            Self::OutcomeForStatus => "`outcome` for `status`",
            Self::RoundNumberInName => "`round.N.completed` for `round.completed`",
            Self::NumberAsText => "a number as text",
            Self::FieldsWithoutPayload => "fields beside the event instead of in `payload`",
            Self::BareKeys => "bare `key: value` lines in conference.md",
            Self::TextAfterNumber => "text after a number in conference.md",
        }
    }
}

pub(super) fn number_in(value: &Value, met: &mut Spellings) -> Option<f64> {
    let number = number::in_json(value)?;
    if value.is_string() {
        met.insert(Spelling::NumberAsText);
    }
    Some(number)
}

pub(super) fn whole_in(value: &Value, met: &mut Spellings) -> Option<u32> {
    number_in(value, met).and_then(number::whole_of)
}

pub(super) fn at(moment: Option<Moment>, met: &mut Spellings) -> Option<Timestamp> {
    let Moment { at, is_zoneless } = moment?;
    if is_zoneless {
        met.insert(Spelling::MomentWithoutZone);
    }
    Some(at)
}

/// A researcher's letter, however it is written: `A`, `a`, `Researcher A`, `researcher_A`.
pub fn researcher(text: &str) -> Result<String, NotAName> {
    let text = text.trim();
    let lower = text.to_ascii_lowercase();
    let name = match lower.strip_prefix("researcher") {
        Some(rest) if !rest.is_empty() => &text[text.len() - rest.len()..],
        Some(_) | None => text,
    };
    let name = name.trim_matches(|c: char| c.is_whitespace() || matches!(c, '_' | '-' | ':'));
    let is_letter = name.len() == 1 && name.as_bytes()[0].is_ascii_alphabetic();
    let name = name::checked(name)?;
    Ok(if is_letter { name.to_ascii_uppercase() } else { name.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_researcher_has_one_name() {
        for text in ["A", "a", " A ", "Researcher A", "researcher_A", "Researcher A:"] {
            assert_eq!(researcher(text).as_deref(), Ok("A"), "{text}");
        }
        assert_eq!(researcher("Mira").as_deref(), Ok("Mira"));
        assert_eq!(researcher("researcher").as_deref(), Ok("researcher"));
        assert_eq!(researcher("  "), Err(NotAName::Empty));
        assert_eq!(researcher("researcher ../../etc"), Err(NotAName::Separator));
    }
}
