//! Who is at the keyboard, as journals name them.

use std::{
    ffi::{OsStr, OsString},
    path::Path,
};

use onward_engine::world::open;

/// The system's list of its users.
const USERS: &str = "/etc/passwd";

/// The login name, where the environment or the system knows it; else the number.
pub(crate) fn name(env: &[(OsString, OsString)]) -> String {
    let is_name = |name: &OsStr| name == "USER" || name == "LOGNAME";
    let said = env.iter().find(|(name, value)| is_name(name) && !value.is_empty());
    if let Some((_, value)) = said {
        return value.to_string_lossy().into();
    }
    let number = rustix::process::getuid().as_raw();
    let users = open::text_named(Path::new(USERS), open::SMALL_BYTES_MAX).unwrap_or_default();
    listed(&users, number).map_or_else(|| format!("user {number}"), str::to_owned)
}

/// `name:password:number:…`, a user a line.
fn listed(users: &str, number: u32) -> Option<&str> {
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next().filter(|it| !it.is_empty())?;
        (fields.nth(1)?.parse() == Ok(number)).then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_the_name_of_its_line() {
        let users = "root:x:0:0::/root:/bin/sh\n\nhalf\nann:x:1000:1000:::\n";
        assert_eq!(listed(users, 0), Some("root"));
        assert_eq!(listed(users, 1000), Some("ann"));
        assert_eq!(listed(users, 7), None);
    }
}
