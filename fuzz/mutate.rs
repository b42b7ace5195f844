//! From a seed to an input: small changes, and now and then a size that no person writes.

/// Words that mean something to one reader or another.
const WORDS: [&str; 40] = [
    "{{",
    "}}",
    "{%",
    "%}",
    "{% for i in range(99999) %}",
    "{% endfor %}",
    " ~ ",
    "not ",
    "| indent(",
    "| batch(",
    "| format(",
    "*a",
    "&a ",
    "<<: *a",
    "- ",
    ": ",
    "\n",
    "\n  ",
    "[",
    "]",
    "{",
    "}",
    "\"",
    "\\u0000",
    "\0",
    "\u{feff}",
    "\u{202e}",
    "é",
    "-1",
    "0",
    "18446744073709551616",
    "1e999",
    "../../x",
    "/etc/passwd",
    "null",
    "true",
    "\t",
    "|",
    "9999999999",
    "## ",
];
const BYTES_MAX: usize = 256 << 10;

pub(crate) struct Mutator(u64);

impl Mutator {
    pub(crate) fn new(number: u64) -> Self {
        Self(number.wrapping_mul(0x2545_f491_4f6c_dd1d))
    }

    fn below(&mut self, most: usize) -> usize {
        // Splitmix: the same numbers everywhere.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % most.max(1) as u64).unwrap()
    }

    pub(crate) fn input(&mut self, seeds: &[Vec<u8>]) -> Vec<u8> {
        let mut input = seeds[self.below(seeds.len())].clone();
        for _ in 0..self.below(8) {
            self.change(&mut input, seeds);
        }
        if self.below(12) == 0 {
            self.grow(&mut input);
        }
        input.truncate(BYTES_MAX);
        input
    }

    fn range(&mut self, input: &[u8]) -> std::ops::Range<usize> {
        let start = self.below(input.len() + 1);
        let most = if self.below(4) == 0 { 4096 } else { 40 };
        start..(start + self.below(most)).min(input.len())
    }

    fn change(&mut self, input: &mut Vec<u8>, seeds: &[Vec<u8>]) {
        let range = self.range(input);
        match self.below(8) {
            0 => {
                if let Some(byte) = input.get_mut(range.start) {
                    *byte ^= 1 << self.below(8);
                }
            }
            1 => drop(input.drain(range)),
            2 => {
                let again = input[range.clone()].to_vec();
                input.splice(range.end..range.end, again);
            }
            3 => {
                let other = &seeds[self.below(seeds.len())];
                let from = self.range(other);
                input.splice(range, other[from].iter().copied());
            }
            4 => input.truncate(range.start),
            _ => {
                let word = WORDS[self.below(WORDS.len())];
                input.splice(range.start..range.start, word.bytes());
            }
        }
    }

    /// A line, a word or a piece of it thousands of times.
    fn grow(&mut self, input: &mut Vec<u8>) {
        let piece = match self.below(3) {
            0 => WORDS[self.below(WORDS.len())].as_bytes().to_vec(),
            1 => {
                let range = self.range(input);
                input[range].to_vec()
            }
            _ => {
                let lines: Vec<&[u8]> = input.split_inclusive(|byte| *byte == b'\n').collect();
                let index = self.below(lines.len());
                lines.get(index).copied().unwrap_or_default().to_vec()
            }
        };
        let size = 1 << (8 + self.below(11));
        let at = self.below(input.len() + 1);
        let count = size / piece.len().max(1);
        input.splice(at..at, piece.repeat(count));
    }
}
