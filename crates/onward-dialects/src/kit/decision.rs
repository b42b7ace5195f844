//! Decision tables: questions in columns, what is decided at the end of each row.
//!
//! Invariant: the first row that fits decides. A table whose last row fits anything always decides.

/// What a row wants of one answer.
pub type Cell = Option<bool>;

pub const YES: Cell = Some(true);
pub const NO: Cell = Some(false);
/// Either.
pub const ANY: Cell = None;

pub type Row<const N: usize, D> = ([Cell; N], D);

/// The number of the row that decides.
pub fn row_for<const N: usize, D>(table: &[Row<N, D>], answers: [bool; N]) -> Option<usize> {
    let fits = |(cells, _): &Row<N, D>| {
        cells.iter().zip(answers).all(|(cell, answer)| cell.is_none_or(|wanted| wanted == answer))
    };
    table.iter().position(fits)
}

pub fn decide<const N: usize, D: Copy>(table: &[Row<N, D>], answers: [bool; N]) -> Option<D> {
    row_for(table, answers).map(|row| table[row].1)
}

/// Every combination of answers, for tests that walk a whole table.
pub fn all_answers<const N: usize>() -> impl Iterator<Item = [bool; N]> {
    (0_u64..1 << N).map(|bits| std::array::from_fn(|column| bits & (1 << column) != 0))
}

/// The rows that never decide, by their number.
pub fn idle_rows<const N: usize, D>(table: &[Row<N, D>]) -> Vec<usize> {
    let decides = |row: &usize| all_answers().any(|it| row_for(table, it) == Some(*row));
    (0..table.len()).filter(|row| !decides(row)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_row_that_fits_decides_and_one_behind_it_is_idle() {
        let table = [([YES, ANY], 'a'), ([ANY, NO], 'b'), ([YES, NO], 'c')];
        assert_eq!(decide(&table, [true, false]), Some('a'));
        assert_eq!(decide(&table, [false, false]), Some('b'));
        assert_eq!(decide(&table, [false, true]), None);
        assert_eq!(idle_rows(&table), [2]);
        assert_eq!(all_answers::<3>().count(), 8);
    }
}
