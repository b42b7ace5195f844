//! How many steps the declarations tell of, before anything was opened.
//!
//! Invariant: `check` and the total of a run that begins are the same number, because both are
//! counted here.

use super::{
    brief::Often,
    defs::{DefId, Defs},
};
use crate::workflow::model::{Count, Items, Many};

/// Steps; groups are not counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Those that are known: the items of a list that is written out, and the first turn of a loop.
    pub known: usize,
    /// The lists and loops that open others.
    pub open: Vec<String>,
}

impl Size {
    /// Of the whole workflow.
    pub fn of(defs: &Defs) -> Self {
        Self::inside(defs, DefId::ROOT, "")
    }

    /// Of one declared step, with all its items.
    pub(crate) fn of_step(defs: &Defs, step: DefId) -> Self {
        let mut size = Self::default();
        size.add(defs, step, "");
        size
    }

    fn inside(defs: &Defs, around: DefId, scope: &str) -> Self {
        let mut size = Self::default();
        for child in defs.get(around).children() {
            size.add(defs, *child, scope);
        }
        size
    }

    fn add(&mut self, defs: &Defs, id: DefId, scope: &str) {
        let brief = defs.brief(id);
        let (times, opens) = match brief.often() {
            Often::Once => (1, false),
            Often::Each | Often::Repeat => often(&defs.step(id).many),
        };
        if brief.is_leaf() {
            self.known = self.known.saturating_add(times);
        }
        let address = || format!("{scope}{}", defs.id(id));
        if !brief.is_leaf() && (times > 0 || opens) {
            let inner = Self::inside(defs, id, &format!("{}/", address()));
            self.known = self.known.saturating_add(inner.known.saturating_mul(times));
            if !opens {
                self.open.extend(inner.open);
            }
        }
        if opens {
            self.open.push(address());
        }
    }
}

/// How often it is known to be there, and whether it may come more often.
fn often(many: &Many) -> (usize, bool) {
    match many {
        Many::Once => (1, false),
        Many::Each(each) => match &each.items {
            Items::List(items) => (items.len(), false),
            Items::Expression(_) => (0, true),
        },
        Many::Repeat(repeat) => (1, !matches!(repeat.max, Count::Fixed(1))),
    }
}
