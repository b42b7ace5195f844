//! What an agent may do, in one word.

use serde::{Deserialize, Serialize};

crate::listed! {
    /// Each program has flags of its own for it.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Permissions {
        /// Looks, and changes nothing.
        ReadOnly,
        /// Changes files of its tree; no commands but those that are allowed by name.
        #[default]
        Edit,
        /// Everything.
        Full,
    }
}

impl Permissions {
    /// The word in the workflow.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            Self::Edit => "edit",
            Self::Full => "full",
        }
    }

    /// The permissions that a word names.
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.as_str() == word)
    }
}
