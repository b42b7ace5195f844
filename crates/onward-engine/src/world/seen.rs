//! The other system's files as one command first read them: looked at often, read once.

use std::sync::{Arc, OnceLock};

use onward_dialects::{
    Files,
    seam::{Card, Site},
};

use super::{Stop, World};

/// Clones share what was read; a new one has read nothing.
#[derive(Clone, Debug, Default)]
pub struct Seen(Arc<OnceLock<Files>>);

impl Seen {
    /// As they were read before, or as they are now.
    pub(crate) fn files<W: World>(
        &self,
        world: &mut W,
        site: &Site,
        card: &'static Card,
    ) -> Result<Files, Stop> {
        if let Some(files) = self.0.get() {
            return Ok(files.clone());
        }
        let files = world.foreign(site, card)?;
        Ok(self.0.get_or_init(|| files).clone())
    }

    pub(crate) fn of(files: Files) -> Self {
        Self(Arc::new(OnceLock::from(files)))
    }
}
