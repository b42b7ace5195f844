//! Files of another system that nothing was read of, in words.

use onward_core::{
    finding::{Code, Finding},
    told::Change,
};
use onward_dialects::{Files, Unread, Unreadable, kit::code::Odd};

use super::Foreign;
use crate::world::{Stop, real::site::room};

impl Foreign {
    /// What was not read is not replaced: nothing of it would be kept. A log that is too large
    /// still grows.
    pub(super) fn in_the_way<'f>(&self, files: &'f Files, change: &Change) -> Option<&'f Unread> {
        let path = self.path(change.path());
        let is_it = |it: &&Unread| {
            // Behind a link, or below a file, nothing can be written either.
            let is_around = matches!(it.why, Unreadable::Link | Unreadable::NoDirectory);
            let below = path.strip_prefix(&it.path);
            below.is_some_and(|below| below.is_empty() || is_around && below.starts_with('/'))
        };
        let found = files.unread.iter().find(is_it)?;
        let grows = matches!(change, Change::Append { .. });
        (!grows || found.why != Unreadable::TooLarge).then_some(found)
    }

    /// Before the first of the changes is written.
    pub(crate) fn refuse_unread(&self, files: &Files, changes: &[Change]) -> Result<(), Stop> {
        let found = changes.iter().find_map(|it| self.in_the_way(files, it));
        let Some(Unread { path, why }) = found else { return Ok(()) };
        let (what, hint) = words(*why);
        Err(Stop::Unready { what: format!("{path} {what}, and is to change"), hint })
    }
}

/// What nothing was read of: the rest is used when a person says so. Where nothing can be written,
/// or this very file is to change, no word of theirs helps.
pub(super) fn unread(Unread { path, why }: &Unread, is_to_change: bool) -> Finding {
    let (what, hint) = words(*why);
    let message = format!("{path} {what}");
    if is_to_change {
        let message = format!("{message}, and a resume has to write it");
        let finding = Odd::StateUnreadable.finding(message).with_hint(hint);
        return finding.as_a_fact().at_path(path);
    }
    let finding = match why {
        Unreadable::Outside => Finding::new(Code::PrerequisiteMissing, message).with_hint(hint),
        Unreadable::Link
        | Unreadable::TooLarge
        | Unreadable::Forbidden
        | Unreadable::NoFile
        | Unreadable::NoDirectory
        | Unreadable::TooDeep
        | Unreadable::TooMany => {
            let hint = format!("{hint}, or continue without it");
            Odd::StateUnreadable.finding(message).with_hint(hint)
        }
    };
    finding.at_path(path)
}

/// What is the matter, and what helps.
fn words(why: Unreadable) -> (&'static str, String) {
    match why {
        Unreadable::TooLarge => ("is too large to be read", format!("{}; make it smaller", room())),
        Unreadable::Link => (
            "is a link, or lies behind one",
            "onward follows no link in another system's files; put the file itself there"
                .to_owned(),
        ),
        Unreadable::Outside => (
            "leads out of the project",
            "onward writes nothing outside of the project; put the directory itself there"
                .to_owned(),
        ),
        Unreadable::Forbidden => {
            ("may not be read", "give yourself the right to read it".to_owned())
        }
        Unreadable::NoFile => ("is not a file", "put a file there, or move it away".to_owned()),
        Unreadable::NoDirectory => (
            "is a file where a directory belongs",
            "put the directory there, or move the file away".to_owned(),
        ),
        Unreadable::TooDeep => ("lies too deep to be read", "move it further up".to_owned()),
        Unreadable::TooMany => {
            ("has more entries than are looked at", "move some of them away".to_owned())
        }
    }
}
