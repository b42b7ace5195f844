//! Order among the steps of one list, given what each needs.
//!
//! Invariant: every walk visits a step once, however many paths lead to it.

/// The steps such that each comes after its needs, earlier ones first; or one cycle, in the order
/// of "needs", its first step not repeated.
pub(super) fn order(needs: &[Vec<usize>]) -> Result<Vec<usize>, Vec<usize>> {
    let mut waiting: Vec<usize> = needs.iter().map(Vec::len).collect();
    let mut dependents = vec![Vec::new(); needs.len()];
    for (step, needed) in needs.iter().enumerate() {
        for need in needed {
            dependents[*need].push(step);
        }
    }
    let mut ordered: Vec<usize> = (0..needs.len()).filter(|step| waiting[*step] == 0).collect();
    let mut next = 0;
    while let Some(step) = ordered.get(next).copied() {
        next += 1;
        for dependent in &dependents[step] {
            waiting[*dependent] -= 1;
            if waiting[*dependent] == 0 {
                ordered.push(*dependent);
            }
        }
    }
    if ordered.len() == needs.len() { Ok(ordered) } else { Err(cycle(needs, &waiting)) }
}

/// A step that still waits needs another that still waits: following that must come round.
fn cycle(needs: &[Vec<usize>], waiting: &[usize]) -> Vec<usize> {
    let mut path = Vec::new();
    let mut position = vec![None; needs.len()];
    let mut step = waiting.iter().position(|count| *count > 0).expect("a step waits");
    while position[step].is_none() {
        position[step] = Some(path.len());
        path.push(step);
        let stuck = needs[step].iter().find(|need| waiting[**need] > 0);
        step = *stuck.expect("a waiting step needs a waiting step");
    }
    path.split_off(position[step].expect("the loop ended here"))
}

/// For each question `(step, other)`: does `step` come after `other`?
///
/// `ordered` is what [`order`] gave. Sixty-four different others are answered in one pass.
pub(super) fn comes_after(
    needs: &[Vec<usize>],
    ordered: &[usize],
    questions: &[(usize, usize)],
) -> Vec<bool> {
    let mut answers = vec![false; questions.len()];
    let mut by_other: Vec<usize> = (0..questions.len()).collect();
    by_other.sort_by_key(|question| questions[*question].1);
    let mut seen = vec![0_u64; needs.len()];
    let mut bit_of = vec![0_u64; needs.len()];
    let mut rest = by_other.as_slice();
    while !rest.is_empty() {
        bit_of.fill(0);
        let mut bits = 0;
        let mut taken = 0;
        for question in rest {
            let other = questions[*question].1;
            if bit_of[other] == 0 {
                if bits == u64::BITS {
                    break;
                }
                bit_of[other] = 1 << bits;
                bits += 1;
            }
            taken += 1;
        }
        for step in ordered {
            let through = needs[*step].iter().map(|need| seen[*need] | bit_of[*need]);
            seen[*step] = through.fold(0, |all, some| all | some);
        }
        for question in &rest[..taken] {
            let (step, other) = questions[*question];
            answers[*question] = seen[step] & bit_of[other] != 0;
        }
        rest = &rest[taken..];
    }
    answers
}

/// All that `step` comes after, in list order.
pub(super) fn all_before(needs: &[Vec<usize>], step: usize) -> Vec<usize> {
    let mut seen = vec![false; needs.len()];
    let mut stack = needs[step].clone();
    while let Some(step) = stack.pop() {
        if !std::mem::replace(&mut seen[step], true) {
            stack.extend(&needs[step]);
        }
    }
    (0..needs.len()).filter(|step| seen[*step]).collect()
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*, sample::Index};

    use super::*;

    /// A hundred layers of three, each step needing all of the layer before: 3^99 paths.
    fn layered() -> Vec<Vec<usize>> {
        let layer = |step: usize| match step / 3 {
            0 => Vec::new(),
            layer => (layer * 3 - 3..layer * 3).collect(),
        };
        (0..300).map(layer).collect()
    }

    #[test]
    fn a_layered_graph_is_walked_once() {
        let needs = layered();
        let ordered = order(&needs).unwrap();
        let questions: Vec<(usize, usize)> =
            (0..300).flat_map(|a| (0..300).map(move |b| (a, b))).collect();
        let answers = comes_after(&needs, &ordered, &questions);
        for ((step, other), answer) in questions.into_iter().zip(answers) {
            assert_eq!(answer, step / 3 > other / 3, "{step} {other}");
        }
        assert_eq!(all_before(&needs, 299).len(), 297);
    }

    #[test]
    fn a_cycle_is_shown_from_the_inside() {
        assert_eq!(order(&[vec![], vec![0, 3], vec![1], vec![2], vec![3]]), Err(vec![1, 3, 2]));
        assert_eq!(order(&[vec![0]]), Err(vec![0]));
        assert_eq!(order(&[]), Ok(vec![]));
    }

    proptest! {
        #[test]
        fn passes_of_bits_answer_as_a_walk_does(
            needs in vec(vec(any::<Index>(), 0..4), 1..90),
        ) {
            let needs: Vec<Vec<usize>> = needs
                .iter()
                .enumerate()
                .map(|(step, needs)| match step {
                    0 => Vec::new(),
                    _ => needs.iter().map(|need| need.index(step)).collect(),
                })
                .collect();
            let ordered = order(&needs).unwrap();
            let all = 0..needs.len();
            let questions: Vec<_> =
                all.clone().flat_map(|a| all.clone().map(move |b| (a, b))).collect();
            let answers = comes_after(&needs, &ordered, &questions);
            for ((step, other), answer) in questions.into_iter().zip(answers) {
                prop_assert_eq!(answer, all_before(&needs, step).contains(&other));
            }
        }
    }
}
