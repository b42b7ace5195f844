//! Resumes in a row that came to nothing, and of what.
//!
//! Invariant: only a resume whose own fresh attempt died counts, and anything finished, committed
//! or paid for ends the row. A driver that was killed, a run that was parked or waits, and an
//! attempt that was only taken up again say nothing.

use serde::{Deserialize, Serialize};

use crate::{evidence::Cause, time::Timestamp};

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Streak {
    /// Resumes in a row that ended like this, the one under way left out.
    count: u32,
    cause: Option<Cause>,
    /// Since the last resume: how an attempt of its own died, and whether anything was gained.
    died: Option<Cause>,
    gained: bool,
    resumed_at: Option<Timestamp>,
}

impl Streak {
    /// How many resumes in a row died of the same cause, counted up to now.
    pub fn in_vain(&self) -> Option<(Cause, u32)> {
        let (count, cause) = self.with_current();
        cause.map(|cause| (cause, count))
    }

    fn with_current(&self) -> (u32, Option<Cause>) {
        match self.died {
            _ if self.gained => (0, None),
            Some(died) if self.cause == Some(died) => (self.count + 1, Some(died)),
            Some(died) => (1, Some(died)),
            None => (self.count, self.cause),
        }
    }

    pub(super) fn resume(&mut self, at: Timestamp) {
        let (count, cause) = self.with_current();
        *self = Self { count, cause, resumed_at: Some(at), ..Self::default() };
    }

    pub(super) fn gain(&mut self) {
        self.gained = true;
    }

    /// An attempt failed. One that began before the resume is not the resume's own.
    pub(super) fn fail(&mut self, started_at: Timestamp, cause: Cause) {
        let own = self.resumed_at.is_some_and(|resumed_at| started_at >= resumed_at);
        if own && cause != Cause::Interrupted && !cause.is_limit() {
            self.died = Some(cause);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `r` resumes, `b` begins, `g` gains, `i` interrupted, `c` crashes, `t` times out.
    #[track_caller]
    fn check(story: &str, expected: Option<(Cause, u32)>) {
        let mut streak = Streak::default();
        let mut began = Timestamp::default();
        for (second, letter) in (1..).zip(story.chars()) {
            let now = Timestamp::from_micros(second * 1_000_000);
            match letter {
                'r' => streak.resume(now),
                'b' => began = now,
                'g' => streak.gain(),
                'i' => streak.fail(began, Cause::Interrupted),
                'c' => streak.fail(began, Cause::Crash),
                't' => streak.fail(began, Cause::Timeout),
                ' ' => {}
                other => panic!("{other}"),
            }
        }
        assert_eq!(streak.in_vain(), expected, "{story}");
    }

    #[test]
    fn resumes_in_vain_are_counted_by_cause() {
        check("bc", None);
        check("bc rbc", Some((Cause::Crash, 1)));
        check("bc rbc rbc rbc", Some((Cause::Crash, 3)));
        check("bc rbc rbc rbt", Some((Cause::Timeout, 1)));
    }

    #[test]
    fn anything_gained_ends_the_row() {
        check("bc rbc rbc rbgc", None);
        check("bc rbc rg rbc", Some((Cause::Crash, 1)));
    }

    #[test]
    fn killed_drivers_and_attempts_taken_up_again_do_not_count() {
        check("bc rbc r r rbc", Some((Cause::Crash, 2)));
        check("bc rbc rbi rbc", Some((Cause::Crash, 2)));
        check("b rc rc rc", None);
    }
}
