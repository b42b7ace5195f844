//! What changed between two texts, line by line.

use std::io::{self, Write};

use crate::{
    diagnostic::printable,
    style::{BAD, DIM, GOOD},
};

/// One line of a difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change<'a> {
    Same(&'a str),
    Gone(&'a str),
    New(&'a str),
}

/// Longer texts are compared only where they differ at their ends.
const LINES_MAX: usize = 2_000;

/// The shortest way from one text to the other.
pub(crate) fn lines<'a>(was: &'a str, is: &'a str) -> Vec<Change<'a>> {
    let (was, is): (Vec<&str>, Vec<&str>) = (was.lines().collect(), is.lines().collect());
    let head = was.iter().zip(&is).take_while(|(one, other)| one == other).count();
    let tail = was[head..].iter().rev().zip(is[head..].iter().rev());
    let tail = tail.take_while(|(one, other)| one == other).count();
    let (old, new) = (&was[head..was.len() - tail], &is[head..is.len() - tail]);
    let mut all: Vec<Change<'a>> = was[..head].iter().map(|line| Change::Same(line)).collect();
    if old.len() > LINES_MAX || new.len() > LINES_MAX {
        all.extend(old.iter().map(|line| Change::Gone(line)));
        all.extend(new.iter().map(|line| Change::New(line)));
    } else {
        middle(old, new, &mut all);
    }
    all.extend(was[was.len() - tail..].iter().map(|line| Change::Same(line)));
    all
}

/// By the longest common subsequence.
fn middle<'a>(old: &[&'a str], new: &[&'a str], all: &mut Vec<Change<'a>>) {
    let width = new.len() + 1;
    let mut common = vec![0_u32; (old.len() + 1) * width];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            common[i * width + j] = if old[i] == new[j] {
                common[(i + 1) * width + j + 1] + 1
            } else {
                common[(i + 1) * width + j].max(common[i * width + j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            all.push(Change::Same(old[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == new.len()
            || i < old.len() && common[(i + 1) * width + j] >= common[i * width + j + 1]
        {
            all.push(Change::Gone(old[i]));
            i += 1;
        } else {
            all.push(Change::New(new[j]));
            j += 1;
        }
    }
}

/// The changes with up to this many lines that stayed around each; `None` = lines left out.
pub(crate) fn with_context<'a>(
    changes: &'a [Change<'a>],
    around: usize,
) -> Vec<Option<&'a Change<'a>>> {
    let is_near = |at: usize| {
        let (from, to) = (at.saturating_sub(around), (at + around + 1).min(changes.len()));
        changes[from..to].iter().any(|it| !matches!(it, Change::Same(_)))
    };
    let mut shown = Vec::new();
    for (at, change) in changes.iter().enumerate() {
        if is_near(at) {
            shown.push(Some(change));
        } else if shown.last() != Some(&None) {
            shown.push(None);
        }
    }
    shown
}

/// Writes the changes as people read them, indented, with two lines around each.
pub(crate) fn write(out: &mut dyn Write, was: &str, is: &str) -> io::Result<()> {
    let changes = lines(was, is);
    if changes.iter().all(|it| matches!(it, Change::Same(_))) {
        return writeln!(out, "    {DIM}no difference{DIM:#}");
    }
    for change in with_context(&changes, 2) {
        match change {
            None => writeln!(out, "    {DIM}…{DIM:#}")?,
            Some(Change::Same(line)) => writeln!(out, "      {}", printable(line))?,
            Some(Change::Gone(line)) => writeln!(out, "    {BAD}- {}{BAD:#}", printable(line))?,
            Some(Change::New(line)) => writeln!(out, "    {GOOD}+ {}{GOOD:#}", printable(line))?,
        }
    }
    Ok(())
}

/// The same without colours, for a pager.
pub(crate) fn plain(was: &str, is: &str) -> Vec<String> {
    let changes = lines(was, is);
    let shown = with_context(&changes, 2).into_iter().map(|change| match change {
        None => "  …".to_owned(),
        Some(Change::Same(line)) => format!("  {}", printable(line)),
        Some(Change::Gone(line)) => format!("- {}", printable(line)),
        Some(Change::New(line)) => format!("+ {}", printable(line)),
    });
    shown.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stayed_is_the_same_and_the_rest_goes_or_comes() {
        use Change::{Gone, New, Same};
        let changes = lines("a\nb\nc\nd\n", "a\nx\nc\nd\ne\n");
        assert_eq!(changes, [Same("a"), Gone("b"), New("x"), Same("c"), Same("d"), New("e")]);
        assert_eq!(lines("", "a"), [New("a")]);
        assert_eq!(lines("a", "a"), [Same("a")]);
    }

    #[test]
    fn far_from_a_change_lines_are_left_out() {
        let text = (0..20).fold(String::new(), |all, it| all + &it.to_string() + "\n");
        let other = text.replace("10\n", "ten\n");
        let changes = lines(&text, &other);
        let shown = with_context(&changes, 1);
        let texts: Vec<&str> = shown
            .iter()
            .map(|it| match it {
                None => "…",
                Some(Change::Same(line) | Change::Gone(line) | Change::New(line)) => line,
            })
            .collect();
        assert_eq!(texts, ["…", "9", "10", "ten", "11", "…"]);
    }
}
