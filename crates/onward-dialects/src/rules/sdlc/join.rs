//! Two copies of one story, the user's and the one in which agents work, as one.
//!
//! Invariant: what the story asks for is the user's, word for word; what roles may write is the
//! agents'. No row of either log is lost, and no box that was ticked is open again.

use super::sections::{LOG, is_owned, is_tasks, opened};
use crate::kit::markdown::Document;

/// The user's story with what agents wrote into their own sections of the other copy.
pub fn joined(theirs: &str, agents: &str) -> String {
    let (theirs, agents) = (parts(theirs), parts(agents));
    let other = |title: &str| agents.iter().find(|it| it.0 == title).map(|it| it.1);
    let mut all = String::new();
    let added = || {
        let is_new =
            |it: &&(String, &str)| is_owned(&it.0) && !theirs.iter().any(|my| my.0 == it.0);
        agents.iter().filter(is_new).map(|it| it.1)
    };
    let mut is_added = false;
    for (title, text) in &theirs {
        match other(title) {
            Some(other) if title == LOG => {
                added().for_each(|it| put(&mut all, it));
                is_added = true;
                put(&mut all, &logs(text, other));
            }
            Some(other) if is_tasks(title) => put(&mut all, &ticked(text, other)),
            Some(other) if is_owned(title) && is_filled(other) => put(&mut all, other),
            Some(_) | None => put(&mut all, text),
        }
    }
    if !is_added {
        added().for_each(|it| put(&mut all, it));
    }
    all
}

/// The same where both differ from what they began with; `None` where the user and an agent wrote
/// into one section of a role.
pub fn settled(base: &str, theirs: &str, agents: &str) -> Option<String> {
    let of = |text: &str, title: &str| {
        let part = parts(text).into_iter().find(|it| it.0 == title);
        part.map(|it| it.1.trim_end().to_owned()).unwrap_or_default()
    };
    let is_torn = |(title, text): &(String, &str)| {
        let (theirs, base) = (text.trim_end(), of(base, title));
        let agents = of(agents, title);
        is_owned(title) && theirs != base && agents != base && theirs != agents
    };
    (!parts(theirs).iter().any(is_torn)).then(|| joined(theirs, agents))
}

/// The head, and each section with its heading, by its title in lower case.
fn parts(text: &str) -> Vec<(String, &str)> {
    let document = Document::read(text.as_bytes());
    let begin =
        |start: usize| text[..start].trim_end_matches('\n').rfind('\n').map_or(0, |it| it + 1);
    let sections = document.sections();
    let seconds = sections.iter().filter(|it| it.level == 2);
    let places = seconds.map(|it| (it.title.to_lowercase(), begin(it.start)));
    let places: Vec<(String, usize)> = [(String::new(), 0)].into_iter().chain(places).collect();
    let ends = places.iter().skip(1).map(|it| it.1).chain([text.len()]);
    places.iter().zip(ends).map(|((title, at), end)| (title.clone(), &text[*at..end])).collect()
}

/// A part begins on a line of its own.
fn put(all: &mut String, part: &str) {
    if !all.is_empty() && !all.ends_with('\n') {
        all.push('\n');
    }
    all.push_str(part);
}

/// It has more than its heading.
fn is_filled(part: &str) -> bool {
    part.lines().skip(1).any(|it| !it.trim().is_empty())
}

/// The user's rows, then those that the agents added.
fn logs(theirs: &str, agents: &str) -> String {
    if agents.starts_with(theirs.trim_end()) {
        return agents.to_owned();
    }
    let mut all = theirs.trim_end().to_owned();
    let known: Vec<&str> = theirs.lines().map(str::trim_end).collect();
    for line in agents.lines().filter(|it| !it.trim().is_empty() && !known.contains(&it.trim_end()))
    {
        all = format!("{all}\n{line}");
    }
    let end = &theirs[theirs.trim_end().len()..];
    all.push_str(if end.is_empty() { "\n" } else { end });
    all
}

/// The user's tasks, ticked where the agents ticked them.
fn ticked(theirs: &str, agents: &str) -> String {
    let mut done: Vec<&str> = agents.lines().filter(|it| opened(it) != **it).collect();
    let mut line = |text: &str| {
        let at = done.iter().position(|it| opened(it) == text.trim_end_matches(['\n', '\r']));
        let Some(at) = at else { return text.to_owned() };
        let end = &text[text.trim_end_matches(['\n', '\r']).len()..];
        format!("{}{end}", done.remove(at))
    };
    theirs.split_inclusive('\n').map(&mut line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# Story 4.2: x\n\n**Status:** Ready\n\n## Acceptance Criteria\n\n1. It \
        works.\n\n## Tasks\n\n- [ ] a\n- [ ] b\n\n## Dev Notes\n\n## Change Log\n\n| Date | \
        Agent | Change |\n|---|---|---|\n";

    fn agents(text: &str) -> String {
        let text = text.replace("- [ ] a", "- [x] a").replace("Notes\n", "Notes\n\nuse y\n");
        let text = text.replace("## Change", "## File List\n\n- a.rs\n\n## Change");
        format!("{text}| 1 | dev | done |\n")
    }

    fn users(text: &str) -> String {
        let text = text.replace("works.\n", "works.\n2. It is fast.\n");
        format!("{}| 1 | me | more |\n", text.replace("- [ ] b\n", "- [ ] b\n- [ ] c\n"))
    }

    #[test]
    fn what_is_asked_for_is_the_users_and_the_rest_the_agents() {
        let text = joined(&users(TEXT), &agents(TEXT));
        for kept in [
            "2. It is fast.",
            "- [x] a\n- [ ] b\n- [ ] c\n",
            "use y",
            "- a.rs",
            "me | more",
            "dev | done",
        ] {
            assert_eq!(text.matches(kept).count(), 1, "{kept}: {text}");
        }
        assert_eq!(joined(&text, &text), text);
        assert_eq!(joined(&users(TEXT), &text), text);
        assert_eq!(joined(TEXT, TEXT), TEXT);
    }

    #[test]
    fn what_both_wrote_into_one_section_is_settled_by_no_rule() {
        assert_eq!(
            settled(TEXT, &users(TEXT), &agents(TEXT)),
            Some(joined(&users(TEXT), &agents(TEXT)))
        );
        let noted = users(TEXT).replace("Notes\n", "Notes\n\nuse z\n");
        assert_eq!(settled(TEXT, &noted, &agents(TEXT)), None);
    }
}
