//! The one place that asks what time it is.

use std::time::{SystemTime, UNIX_EPOCH};

use onward_core::time::Timestamp;

/// The time on the wall, in microseconds.
#[expect(clippy::disallowed_methods, reason = "this is where time enters")]
pub fn wall_clock() -> Timestamp {
    file_time(SystemTime::now())
}

/// A file's time, as a moment.
pub fn file_time(time: SystemTime) -> Timestamp {
    let micros = |span: std::time::Duration| i64::try_from(span.as_micros()).unwrap_or(i64::MAX);
    Timestamp::from_micros(match time.duration_since(UNIX_EPOCH) {
        Ok(since) => micros(since),
        Err(before) => -micros(before.duration()),
    })
}
