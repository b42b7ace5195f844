//! The reasons of a row.
//!
//! Nearly every row of a large plan says that a step is as it was left, and when that was. Those
//! are put in words only where they are read.

use std::{
    fmt,
    ops::{Deref, DerefMut},
    sync::OnceLock,
};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Why;
use crate::{state::Phase, time::Timestamp};

/// As good as a list of them.
#[derive(Clone, Default)]
pub struct Whys {
    /// Its step was done then, which is all of it while nothing else was told.
    done_at: Option<Timestamp>,
    #[expect(clippy::box_collection, reason = "a large plan has many of these, and few lists")]
    told: OnceLock<Box<Vec<Why>>>,
}

impl Whys {
    pub(super) fn done_at(moment: Timestamp) -> Self {
        Self { done_at: Some(moment), told: OnceLock::new() }
    }

    /// When its step was done, where no more than that is to be said.
    pub fn only_done_at(&self) -> Option<Timestamp> {
        self.done_at
    }

    fn words(moment: Timestamp) -> Why {
        let text = moment.text();
        let detail = ["at ", std::str::from_utf8(&text).unwrap_or_default()].concat();
        Why::because(Phase::Done.as_str(), detail)
    }
}

impl From<Vec<Why>> for Whys {
    fn from(whys: Vec<Why>) -> Self {
        Self { done_at: None, told: OnceLock::from(Box::new(whys)) }
    }
}

impl Deref for Whys {
    type Target = Vec<Why>;

    fn deref(&self) -> &Vec<Why> {
        self.told.get_or_init(|| Box::new(self.done_at.map(Self::words).into_iter().collect()))
    }
}

impl DerefMut for Whys {
    fn deref_mut(&mut self) -> &mut Vec<Why> {
        let _: &Vec<Why> = &*self;
        self.done_at = None;
        self.told.get_mut().expect("they were told just now")
    }
}

impl<'a> IntoIterator for &'a Whys {
    type Item = &'a Why;
    type IntoIter = std::slice::Iter<'a, Why>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl PartialEq for Whys {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl fmt::Debug for Whys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl Serialize for Whys {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.done_at {
            Some(moment) => [Self::words(moment)].serialize(serializer),
            None => (**self).serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Whys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_in_words_late_says_the_same() {
        let moment = Timestamp::from_micros(1_700_000_000_000_001);
        let late = || Whys::done_at(moment);
        let early = Whys::from(vec![Why::because("done", format!("at {moment}"))]);
        let json = |it: &Whys| serde_json::to_string(it).unwrap();
        assert_eq!((late(), json(&late())), (early.clone(), json(&early)));
        assert_eq!(serde_json::from_str::<Whys>(&json(&late())).unwrap(), early);
        let mut more = late();
        more.push(Why::because("recheck", "x"));
        assert_eq!((more.len(), more.only_done_at()), (2, None));
        assert_eq!(more[..1], early[..]);
        assert_eq!(serde_json::from_str::<Whys>(&json(&more)).unwrap(), more);
    }
}
