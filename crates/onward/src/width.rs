//! How many columns of a terminal a text takes.
//!
//! Invariant: rather too many than too few. A line that is believed to fit and does not takes a
//! second row, and all that is drawn over it later stands one row off.

/// Scripts and signs that take two columns everywhere, and blocks in which most do.
const WIDE: [(u32, u32); 39] = [
    (0x1100, 0x115f),
    (0x231a, 0x231b),
    (0x2329, 0x232a),
    (0x23e9, 0x23f3),
    (0x25fd, 0x25fe),
    (0x2614, 0x2615),
    (0x2630, 0x2637),
    (0x2648, 0x2653),
    (0x267f, 0x267f),
    (0x268a, 0x2693),
    (0x26a1, 0x26a1),
    (0x26aa, 0x26ab),
    (0x26bd, 0x26be),
    (0x26c4, 0x26ce),
    (0x26d4, 0x26d4),
    (0x26ea, 0x26ea),
    (0x26f2, 0x26fd),
    (0x2705, 0x2705),
    (0x270a, 0x270b),
    (0x2728, 0x2728),
    (0x274c, 0x274e),
    (0x2753, 0x2757),
    (0x2795, 0x2797),
    (0x27b0, 0x27bf),
    (0x2b1b, 0x2b1c),
    (0x2b50, 0x2b55),
    (0x2e80, 0x303e),
    (0x3040, 0xa4cf),
    (0xa960, 0xa97f),
    (0xac00, 0xd7a3),
    (0xf900, 0xfaff),
    (0xfe10, 0xfe19),
    (0xfe30, 0xfe6f),
    (0xff01, 0xff60),
    (0xffe0, 0xffe6),
    (0x16fe0, 0x1b2ff),
    (0x1f004, 0x1f0cf),
    (0x1f18e, 0x1faff),
    (0x20000, 0x3fffd),
];

/// Marks that stand on the character before them. The one that asks for a picture (U+FE0F) is not
/// among them: with it the character before may become wide.
const NONE: [(u32, u32); 8] = [
    (0x300, 0x36f),
    (0x1ab0, 0x1aff),
    (0x1dc0, 0x1dff),
    (0x200b, 0x200d),
    (0x20d0, 0x20ff),
    (0xfe00, 0xfe0e),
    (0xfe20, 0xfe2f),
    (0xe0100, 0xe01ef),
];

pub(crate) fn of_char(c: char) -> usize {
    if c.is_ascii() {
        return 1;
    }
    let is_in = |table: &[(u32, u32)]| {
        let at = table.partition_point(|(_, last)| *last < c as u32);
        table.get(at).is_some_and(|(first, _)| *first <= c as u32)
    };
    if is_in(&WIDE) { 2 } else { usize::from(!is_in(&NONE)) }
}

pub(crate) fn of(text: &str) -> usize {
    text.chars().map(of_char).sum()
}

/// How many rows of a terminal a line takes; a wide character goes whole into the next one.
pub(crate) fn rows(line: &str, columns: usize) -> usize {
    let (mut rows, mut at) = (1, 0);
    for width in line.chars().map(of_char) {
        if at > 0 && at + width > columns {
            (rows, at) = (rows + 1, 0);
        }
        at += width;
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_take_one_column_signs_of_asia_and_pictures_two_and_accents_none() {
        assert_eq!(["abc", "…━⠋✓", "漢字", "ｆ", "🚀", "e\u{301}"].map(of), [3, 4, 4, 2, 2, 1]);
        assert!(of("⚠\u{fe0f}") >= 2);
    }

    #[test]
    fn a_line_takes_the_rows_that_a_terminal_gives_it() {
        assert_eq!(
            ["", "abcd", "abcde", "漢字", "a漢字", "a漢字字"].map(|it| rows(it, 4)),
            [1, 1, 2, 1, 2, 2]
        );
    }

    #[test]
    fn the_tables_are_in_order_so_that_each_character_is_found() {
        for table in [&WIDE[..], &NONE[..]] {
            assert!(table.windows(2).all(|two| two[0].1 < two[1].0));
            assert!(table.iter().all(|(first, last)| first <= last));
        }
    }
}
