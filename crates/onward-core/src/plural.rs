//! Counts in words: one step, two steps.

/// `1 step`, `3 steps`.
pub fn count(number: usize, noun: &str) -> String {
    let s = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{s}")
}

/// The noun and its verb agree: `1 problem needs`, `2 problems need`.
pub fn problems_need(number: usize) -> String {
    format!("{} {}", count(number, "problem"), if number == 1 { "needs" } else { "need" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular_and_none_is_plural() {
        assert_eq!(count(1, "step"), "1 step");
        assert_eq!((count(0, "step"), count(2, "step")), ("0 steps".into(), "2 steps".into()));
        assert_eq!(problems_need(1), "1 problem needs");
        assert_eq!(problems_need(3), "3 problems need");
    }
}
