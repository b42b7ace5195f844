//! One command of a script, as far as it was read, and whether a shell would read a value in it as
//! shell text once more.
//!
//! Invariant: what it does not know, such as a program that runs its arguments, counts as no shell.

/// One command of a script as far as it was read.
#[derive(Clone, Debug, Default)]
pub(super) struct Begun {
    pub(super) text: String,
    /// Where the word begins that is being read.
    pub(super) word: usize,
    /// The number of a value that stands in it.
    pub(super) value: Option<usize>,
    /// It reads what another command prints, and the number of a value in that.
    pub(super) is_fed: bool,
    pub(super) fed: Option<usize>,
}

/// Shells that read the word behind `-c` as a script.
const SHELLS: [&str; 7] = ["sh", "bash", "dash", "ash", "ksh", "zsh", "su"];
/// Words that may stand before the name of a command.
const BEFORE: [&str; 12] =
    ["if", "then", "else", "elif", "while", "until", "do", "!", "{", "command", "builtin", "exec"];
/// Programs that start the one that is named behind their options.
const STARTERS: [&str; 6] = ["env", "nice", "nohup", "sudo", "time", "timeout"];

/// Where an argument is a script.
pub(super) const IN_SCRIPT: &str = "in a script for `sh -c`, which reads it as shell text,";
/// Where the text of a here-document, or of `<<<`, is a script.
pub(super) const FED: &str = "in the text that a shell reads as its script";

impl Begun {
    /// Whether this is a shell that takes its script from standard input.
    pub(super) fn reads_script(&self) -> bool {
        let name_of = |word: &str| word.rsplit('/').next().unwrap_or(word).to_owned();
        let is_shell = |word: &str| word != "su" && SHELLS.contains(&name_of(word).as_str());
        let text = self.text.split('<').next().unwrap_or_default();
        let mut words = text.split_whitespace();
        let is_before = |word: &str| BEFORE.contains(&word) || word.contains('=');
        let Some(first) = words.find(|word| !is_before(word)) else { return false };
        let is_started = || STARTERS.contains(&name_of(first).as_str());
        if !(is_shell(first) || is_started() && words.any(is_shell)) {
            return false;
        }
        // `-c` brings a script, and so does the name of a file; `-s` says that there is none.
        let options: Vec<&str> = words.take_while(|word| !word.contains('>')).collect();
        let has = |letter: char| {
            options
                .iter()
                .any(|it| it.starts_with('-') && !it.starts_with("--") && it.contains(letter))
        };
        !has('c') && (has('s') || options.iter().all(|it| it.starts_with('-')))
    }

    /// Which program would read the word that is being read as shell text once more.
    pub(super) fn second_shell(&self) -> Option<&'static str> {
        let words: Vec<&str> = self.text[..self.word].split_whitespace().collect();
        let is_before = |word: &&&str| BEFORE.contains(*word) || word.contains('=');
        match words.iter().find(|word| !is_before(word)) {
            Some(&"eval") => return Some("behind `eval`, which reads it as shell text,"),
            Some(&"trap") => return Some("behind `trap`, which reads it as shell text,"),
            Some(_) | None => {}
        }
        if self.reads_script() && self.text.contains("<<<") {
            return Some(FED);
        }
        let (last, earlier) = words.split_last()?;
        let is_option = |word: &str| word.starts_with('-') && !word.starts_with("--");
        let shell = earlier.iter().rev().find(|word| !is_option(word))?;
        let name = shell.rsplit('/').next().unwrap_or(shell);
        let reads = is_option(last) && last.contains('c') && SHELLS.contains(&name);
        reads.then_some(IN_SCRIPT)
    }
}
