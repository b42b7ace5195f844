//! Files of another system that nothing was read of, in words.

use onward_core::finding::{Code, Finding};
use onward_dialects::{Unread, Unreadable, kit::code::Odd};

use crate::world::real::site::room;

/// What nothing was read of: the rest is used when a person says so. Where nothing can be written,
/// no word of theirs helps.
pub(super) fn unread(Unread { path, why }: &Unread) -> Finding {
    let (what, hint) = words(*why);
    let message = format!("{path} {what}");
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
pub(super) fn words(why: Unreadable) -> (&'static str, String) {
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
