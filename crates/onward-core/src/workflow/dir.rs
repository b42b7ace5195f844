//! Where a step works, and where its outputs are: below the project, whatever a template makes of
//! it.

/// The path without `.` and doubled slashes, empty for the project itself; or why it is refused.
/// Links are not followed here: the engine sees to those when it starts an attempt.
pub(crate) fn inside_project(path: &str) -> Result<String, String> {
    if path.contains('\0') || path.trim().is_empty() {
        return Err(format!("{path:?} does not name a directory"));
    }
    if path.starts_with('/') {
        return Err(format!("`{path}` is not below the project"));
    }
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => return Err(format!("`{path}` leaves the project")),
            part => parts.push(part),
        }
    }
    Ok(parts.join("/"))
}

/// The same of what a step writes. What is git's or ours is no output: an undo would take a journal
/// back to what it was, and what is in it would run again.
pub(crate) fn output(path: &str) -> Result<String, String> {
    let inside = inside_project(path)?;
    match inside.split('/').next() {
        Some(".git") => Err(format!("`{path}` belongs to git")),
        Some(".onward") => Err(format!("`{path}` is where onward keeps its runs")),
        Some(_) | None => Ok(inside),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_below_the_project_or_refused() {
        for (path, found) in [
            ("a", Ok("a")),
            ("./a//b/", Ok("a/b")),
            (".", Ok("")),
            (".worktrees/x", Ok(".worktrees/x")),
            ("..", Err("leaves")),
            ("a/../b", Err("leaves")),
            ("/etc", Err("not below")),
            ("", Err("does not name")),
            (" ", Err("does not name")),
            ("a\0b", Err("does not name")),
        ] {
            match (inside_project(path), found) {
                (Ok(path), Ok(wanted)) => assert_eq!(path, wanted),
                (Err(why), Err(wanted)) => assert!(why.contains(wanted), "{why}"),
                (found, _) => panic!("{path:?}: {found:?}"),
            }
        }
    }
}
