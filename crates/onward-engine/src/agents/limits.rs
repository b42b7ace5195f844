//! What a person said about limits and money, as the driver heeds it.

use std::collections::BTreeMap;

use onward_core::said::Price;

use super::quiet::Quiet;

/// What a person said about limits and money.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// Wait in place until a limit is lifted.
    pub wait: bool,
    /// For how many limits the driver waits; then the run is parked. `None` = for all.
    pub windows_max: Option<u32>,
    /// No agent is started then.
    pub quiet: Option<Quiet>,
    /// An agent is not started either where its step would run into the quiet hours.
    pub ends_before_quiet: bool,
    /// The agent that stands in while the limit of another one holds.
    pub stand_ins: BTreeMap<String, String>,
    /// What a million tokens cost, by agent; for programs that do not tell.
    pub prices: BTreeMap<String, Price>,
}

impl Limits {
    pub(crate) fn waits_after(&self, windows: u32) -> bool {
        self.wait && self.windows_max.is_none_or(|max| windows <= max)
    }
}
