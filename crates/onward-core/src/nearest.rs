//! "Did you mean": the known word closest to a given one.

/// Words differing in more letters than this have nothing to do with each other.
const DISTANCE_MAX: usize = 3;

/// The closest of `known`, if it is close enough to be worth a question.
pub fn nearest<'k>(given: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let given: Vec<char> = given.chars().take(65).collect();
    // Any letter is close to any other.
    let bound = if given.len() < 2 { 0 } else { given.len().div_ceil(3).min(DISTANCE_MAX) };
    let (near, _) = known
        .into_iter()
        .filter(|word| word.chars().count().abs_diff(given.len()) <= bound)
        .map(|word| (word, letters_apart(&given, word)))
        .filter(|(_, distance)| *distance <= bound)
        .min_by_key(|(_, distance)| *distance)?;
    Some(near)
}

/// Letters to add, drop, change, or swap with their neighbour; case is free.
pub fn distance(given: &str, word: &str) -> usize {
    letters_apart(&given.chars().collect::<Vec<char>>(), word)
}

fn letters_apart(given: &[char], word: &str) -> usize {
    let word: Vec<char> = word.chars().collect();
    let width = word.len() + 1;
    let mut table = vec![0; (given.len() + 1) * width];
    for i in 0..=given.len() {
        for j in 0..=word.len() {
            let cell = i * width + j;
            if i == 0 || j == 0 {
                table[cell] = i + j;
                continue;
            }
            let same = |a: char, b: char| a.eq_ignore_ascii_case(&b);
            let change = usize::from(!same(given[i - 1], word[j - 1]));
            let mut best = (table[cell - width] + 1).min(table[cell - 1] + 1);
            best = best.min(table[cell - width - 1] + change);
            if i > 1 && j > 1 && same(given[i - 1], word[j - 2]) && same(given[i - 2], word[j - 1])
            {
                best = best.min(table[cell - 2 * width - 2] + 1);
            }
            table[cell] = best;
        }
    }
    table[given.len() * width + word.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_finds_its_word() {
        let known = ["steps", "run", "prompt", "worktree", "approve", "y"];
        for (given, near) in [
            ("stpes", Some("steps")),
            ("promt", Some("prompt")),
            ("Run", Some("run")),
            ("worktre", Some("worktree")),
            ("aprove", Some("approve")),
            ("xyz", None),
            ("", None),
            ("x", None),
            ("commandline", None),
        ] {
            assert_eq!(nearest(given, known), near, "{given}");
        }
    }
}
