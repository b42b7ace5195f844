//! What an agent said about itself, as plain data.
//!
//! An adapter reads an agent's output into a [`Said`]; the engine bills and journals from it, and
//! [`judge`](crate::judge) weighs it against exit code and evidence.
//!
//! Invariant: everything here can be made again by reading the output from its first byte, so
//! nothing of it needs to be saved. Amounts are running totals; only what the journal does not have
//! yet is billed.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    evidence::{Cause, Usd},
    time::Timestamp,
};

/// Tokens and money.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    /// Without those that came from, or went into, a cache.
    pub input_tokens: u64,
    pub output_tokens: u64,
    #[serde(default)]
    pub cache_read_tokens: u64,
    #[serde(default)]
    pub cache_write_tokens: u64,
    /// `None` = unknown, which is not the same as free.
    pub usd: Option<Usd>,
}

impl Spent {
    pub const NOTHING: Self = Self {
        input_tokens: 0,
        output_tokens: 0,
        cache_read_tokens: 0,
        cache_write_tokens: 0,
        usd: None,
    };

    pub fn of_usd(usd: Usd) -> Self {
        Self { usd: Some(usd), ..Self::NOTHING }
    }

    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let usd = match (self.usd, other.usd) {
            (Some(one), Some(other)) => Some(one.plus(other)),
            (one, other) => one.or(other),
        };
        Self { usd, ..self.each(other, u64::saturating_add) }
    }

    /// What this total has that `billed` does not have yet. A total that went down owes nothing.
    #[must_use]
    pub fn beyond(self, billed: Self) -> Self {
        let unbilled = |usd: Usd| Usd(usd.0.saturating_sub(billed.usd.unwrap_or_default().0));
        // A price of zero is worth one record, so that it is known to be free.
        let usd = self.usd.map(unbilled).filter(|usd| usd.0 > 0 || billed.usd.is_none());
        Self { usd, ..self.each(billed, u64::saturating_sub) }
    }

    pub fn is_nothing(&self) -> bool {
        *self == Self::NOTHING
    }

    /// All that went in, from caches and into them too.
    pub fn tokens_in(&self) -> u64 {
        let Self { input_tokens, cache_read_tokens, cache_write_tokens, .. } = *self;
        input_tokens.saturating_add(cache_read_tokens).saturating_add(cache_write_tokens)
    }

    /// With the price of its tokens, where the program does not tell one.
    #[must_use]
    pub fn priced(self, price: Option<Price>) -> Self {
        Self { usd: self.usd.or_else(|| price.map(|price| price.of(self))), ..self }
    }

    fn each(self, other: Self, of: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            input_tokens: of(self.input_tokens, other.input_tokens),
            output_tokens: of(self.output_tokens, other.output_tokens),
            cache_read_tokens: of(self.cache_read_tokens, other.cache_read_tokens),
            cache_write_tokens: of(self.cache_write_tokens, other.cache_write_tokens),
            usd: self.usd,
        }
    }
}

/// What a million tokens cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Price {
    pub input: Usd,
    pub output: Usd,
    pub cache_read: Usd,
    pub cache_write: Usd,
}

impl Price {
    fn of(self, spent: Spent) -> Usd {
        let parts = [
            (self.input, spent.input_tokens),
            (self.output, spent.output_tokens),
            (self.cache_read, spent.cache_read_tokens),
            (self.cache_write, spent.cache_write_tokens),
        ];
        let total: u128 = parts.iter().map(|(usd, it)| u128::from(usd.0) * u128::from(*it)).sum();
        Usd(u64::try_from(total / 1_000_000).unwrap_or(u64::MAX))
    }
}

/// Where an agent's counters begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Counting {
    /// With the attempt.
    #[default]
    Attempt,
    /// With the session: an attempt that continues one reports what earlier attempts spent too.
    Session,
}

/// What an agent has said so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Said {
    /// Its program always says how it ended; without that word, it did not get to its end.
    pub must_close: bool,
    pub session: Option<String>,
    /// The running total, counted from where `counting` says.
    pub spent: Spent,
    pub counting: Counting,
    /// The final answer, as text.
    pub answer: Option<String>,
    /// The message that it writes, where the program tells it in pieces and says when it is whole.
    pub draft: String,
    /// The structured result, where the agent gives one.
    pub result: Option<Value>,
    /// The last word about how it ended.
    pub closed: Option<Closed>,
    pub limit: Option<Limit>,
    /// Tools that were refused to it.
    pub denied: Vec<String>,
    /// The tools of calls that have not ended, by the id of the call.
    pub calls: BTreeMap<String, String>,
    /// It began a turn and has not said how that ended, though its program says so even when the
    /// turn fails.
    pub mid_turn: bool,
    /// `None` = its program does not report what it changes.
    pub touched: Option<Touched>,
}

impl Said {
    /// What is known before the first byte.
    pub fn nothing_yet(must_close: bool) -> Self {
        Self { must_close, ..Self::default() }
    }

    /// A tool was refused to it.
    pub fn deny(&mut self, tool: &str) {
        if !self.denied.iter().any(|it| it == tool) {
            self.denied.push(tool.to_owned());
        }
    }

    /// From here on the program reports each file that it changes.
    pub fn reports_files(&mut self) {
        self.touched.get_or_insert_with(|| Touched::Files(BTreeSet::new()));
    }

    /// It changed a file, or was about to.
    pub fn touch(&mut self, path: &str) {
        if let Some(Touched::Files(files)) = &mut self.touched {
            files.insert(path.to_owned());
        }
    }

    /// It used a tool that can change any file.
    pub fn touch_anything(&mut self) {
        self.touched = self.touched.take().map(|_| Touched::Anything);
    }
}

/// The files that an agent reports to have changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Touched {
    /// These, as it names them, and no others.
    Files(BTreeSet<String>),
    /// It used a shell, say.
    Anything,
}

impl Touched {
    /// Whether a changed path can be its work. A path that it names may be absolute, or begin at
    /// the directory that it works in.
    pub fn accounts_for(&self, path: &str) -> bool {
        let ends_in = |one: &str, other: &str| {
            one.strip_suffix(other).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
        };
        match self {
            Self::Anything => true,
            Self::Files(files) => files.iter().any(|it| {
                let it = it.trim_start_matches("./");
                ends_in(it, path) || ends_in(path, it)
            }),
        }
    }
}

/// How an agent said that it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Closed {
    Well,
    Badly { cause: Cause, detail: String },
}

/// A provider's limit that an agent met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    pub provider: String,
    /// Never a secret.
    pub account: Option<String>,
    /// `None` = the provider did not say.
    pub resets_at: Option<Timestamp>,
    /// The words that may say when, until they are understood.
    pub words: Option<String>,
    pub kind: LimitKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitKind {
    /// Too many requests at a time.
    Rate,
    /// What the account may use in a window of time is used up.
    Usage,
}

impl LimitKind {
    /// The kind of limit that a cause speaks of.
    pub fn of(cause: Cause) -> Option<Self> {
        [Self::Rate, Self::Usage].into_iter().find(|kind| kind.cause() == cause)
    }

    pub const fn cause(self) -> Cause {
        match self {
            Self::Rate => Cause::RateLimited,
            Self::Usage => Cause::UsageLimit,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spent(tokens: u64, usd: Option<u64>) -> Spent {
        Spent {
            input_tokens: tokens,
            output_tokens: tokens * 2,
            cache_read_tokens: tokens * 3,
            cache_write_tokens: tokens * 4,
            usd: usd.map(Usd),
        }
    }

    #[test]
    fn only_what_is_not_billed_yet_is_owed() {
        for (total, billed, owed) in [
            (spent(7, Some(9)), spent(0, None), spent(7, Some(9))),
            (spent(7, Some(9)), spent(3, Some(4)), spent(4, Some(5))),
            (spent(7, Some(9)), spent(7, Some(9)), spent(0, None)),
            (spent(7, None), spent(3, Some(4)), spent(4, None)),
            (spent(3, Some(1)), spent(7, Some(9)), spent(0, None)),
            (spent(0, Some(0)), spent(0, None), spent(0, Some(0))),
        ] {
            assert_eq!(total.beyond(billed), owed, "{total:?} - {billed:?}");
        }
        assert!(spent(0, None).is_nothing() && !spent(0, Some(0)).is_nothing());
    }

    #[test]
    fn billing_a_total_in_any_parts_comes_to_the_total() {
        let totals = [spent(1, None), spent(4, Some(0)), spent(4, Some(10)), spent(9, Some(11))];
        let mut billed = Spent::NOTHING;
        for total in totals {
            billed = billed.plus(total.beyond(billed));
            assert_eq!(billed.beyond(total), Spent::NOTHING);
            assert_eq!(billed, total);
        }
    }

    #[test]
    fn tokens_have_a_price_only_where_the_program_tells_none() {
        let price = Price { input: Usd(3_000_000), output: Usd(15_000_000), ..Price::default() };
        let used = Spent { input_tokens: 1_000, output_tokens: 200, ..Spent::NOTHING };
        assert_eq!(used.priced(None).usd, None);
        assert_eq!(used.priced(Some(price)).usd, Some(Usd(6_000)));
        assert_eq!(Spent { usd: Some(Usd(1)), ..used }.priced(Some(price)).usd, Some(Usd(1)));
    }

    #[test]
    fn a_path_is_accounted_for_however_the_agent_names_it() {
        let mut said = Said::default();
        said.touch("before.txt");
        assert_eq!(said.touched, None, "a program that does not report is not held to it");
        said.reports_files();
        said.touch("/p/project/src/a.rs");
        said.touch("./b.rs");
        let accounts = |said: &Said, path| said.touched.as_ref().unwrap().accounts_for(path);
        for path in ["src/a.rs", "b.rs", "below/b.rs"] {
            assert!(accounts(&said, path), "{path}");
        }
        for path in ["c.rs", "xsrc/a.rs", "ab.rs", "before.txt"] {
            assert!(!accounts(&said, path), "{path}");
        }
        said.touch_anything();
        said.reports_files();
        assert!(accounts(&said, "c.rs"), "a shell can have done it");
    }

    #[test]
    fn money_that_is_unknown_is_not_free() {
        assert_eq!(spent(1, None).plus(spent(1, None)).usd, None);
        assert_eq!(spent(1, None).plus(spent(1, Some(2))).usd, Some(Usd(2)));
        assert_eq!(Spent::NOTHING, Spent::default());
    }
}
