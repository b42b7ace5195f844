//! Where a value stands in a command, and how it gets there: as a variable, never as text.
//!
//! A value becomes `"$ONWARD_V1"`, and the variable holds it. What a variable holds is not read as
//! shell text again, whatever quotes or signs are in it. Only how the reference is written depends
//! on the place: in single quotes they are closed around it, in double quotes and here-documents it
//! stands bare.
//!
//! Invariant: where a shell would read a variable's content as more than text (arithmetic, `eval`,
//! `trap`, `sh -c`, `… | sh`), or would not look at the reference at all, the place is refused.

use super::begun::{Begun, FED};

/// The beginning and the end of a value in a rendered command; in between, its bytes in hex.
const OPEN: char = '\u{f0000}';
const CLOSE: char = '\u{f0001}';

/// A command and the variables that it refers to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    pub text: String,
    /// `ONWARD_V1` and so on, with their values.
    pub values: Vec<(String, String)>,
}

impl Script {
    /// For a place that cannot set variables: the script sets them itself, first of all.
    pub fn alone(&self) -> String {
        let set = |(name, value): &(String, String)| {
            format!("{name}='{}'\n", value.replace('\'', r"'\''"))
        };
        self.values.iter().map(set).chain([self.text.clone()]).collect()
    }
}

/// A value as it stands in a rendered command until its variable is known.
pub(super) fn marked(value: &str) -> String {
    let mut text = String::from(OPEN);
    for byte in value.bytes() {
        for half in [byte >> 4, byte & 15] {
            text.extend(char::from_digit(half.into(), 16));
        }
    }
    text.push(CLOSE);
    text
}

/// Puts a variable at the place of each marked value; `first` is the number of the first one.
pub(super) fn with_variables(rendered: &str, first: usize) -> Result<Script, String> {
    let mut script = Script::default();
    let mut places = Places::default();
    let mut rest = rendered;
    while let Some((before, value, after)) = next_value(rest) {
        places.read(before);
        script.text.push_str(before);
        let name = format!("ONWARD_V{}", first + script.values.len());
        let reference = match places.here() {
            Place::Word => format!("\"${name}\""),
            Place::Double | Place::HereDocument | Place::Comment => format!("${{{name}}}"),
            Place::Single => format!("'\"${name}\"'"),
            Place::Refused(place) => return Err(format!("a value {place} is not safe")),
        };
        script.text.push_str(&reference);
        script.values.push((name, value));
        places.value();
        rest = after;
    }
    script.text.push_str(rest);
    Ok(script)
}

/// What comes before the first marked value, the value, and what comes after it.
fn next_value(text: &str) -> Option<(&str, String, &str)> {
    let (before, rest) = text.split_once(OPEN)?;
    let (hex, after) = rest.split_once(CLOSE)?;
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|it| u8::try_from(it).ok());
    let bytes: Option<Vec<u8>> = hex
        .as_bytes()
        .chunks(2)
        .map(|pair| Some(digit(pair[0])? << 4 | digit(*pair.get(1)?)?))
        .collect();
    let value = String::from_utf8(bytes?).ok()?;
    Some((before, unmarked(&value), after))
}

/// A value that was made of rendered text holds marks itself.
fn unmarked(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, value, after)) = next_value(rest) {
        plain.push_str(before);
        plain.push_str(&value);
        rest = after;
    }
    plain + rest
}

/// Where a value stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Word,
    Double,
    Single,
    HereDocument,
    Comment,
    /// In words that follow "a value".
    Refused(&'static str),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Frame {
    Single,
    /// `$'…'`
    Dollar,
    Double,
    Backtick,
    /// `$( … )`, or a subshell.
    Command,
    /// `$(( … ))`, with the parentheses that are open.
    Arithmetic(u32),
    /// `${ … }`
    Parameter,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Here {
    word: String,
    /// The end word stands in quotes: nothing in the text is replaced.
    quoted: bool,
    /// `<<-`: the end word may stand behind tabs.
    tabs: bool,
    /// Its end word has begun.
    begun: bool,
    reader: Reader,
}

/// Who reads the text of a here-document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Reader {
    #[default]
    Program,
    /// As its script.
    Shell,
}

/// Reads the literal pieces of one command, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Places {
    frames: Vec<Frame>,
    escaped: bool,
    /// The last character was a `$` with a meaning.
    dollar: bool,
    last: Option<char>,
    comment: bool,
    /// The end word that is being read.
    delimiter: Option<Here>,
    /// Here-documents that begin with the next line.
    waiting: Vec<Here>,
    document: Option<Here>,
    line: String,
    /// The command that is being read, and those that it stands in.
    begun: Vec<Begun>,
    /// How many values there were, and which of them came to a shell by a pipe.
    values: usize,
    piped: Vec<usize>,
}

impl Places {
    pub(super) fn here(&self) -> Place {
        if let Some(here) = &self.document {
            return match here {
                Here { quoted: true, .. } => {
                    Place::Refused("in a here-document whose end word is quoted")
                }
                Here { reader: Reader::Shell, .. } => Place::Refused(FED),
                _ if self.escaped => Place::Refused("after a backslash"),
                _ if self.dollar => Place::Refused("after a `$`"),
                _ => Place::HereDocument,
            };
        }
        if self.comment {
            return Place::Comment;
        }
        if self.delimiter.is_some() {
            return Place::Refused("in the end word of a here-document");
        }
        if self.escaped {
            return Place::Refused("after a backslash");
        }
        if self.dollar {
            return Place::Refused("after a `$`");
        }
        for frame in self.frames.iter().rev() {
            match frame {
                Frame::Arithmetic(_) => return Place::Refused("in arithmetic"),
                Frame::Parameter => return Place::Refused("in `${…}`"),
                Frame::Dollar => return Place::Refused("in `$'…'`"),
                Frame::Backtick => return Place::Refused("in backticks"),
                Frame::Command => break,
                Frame::Single | Frame::Double => {}
            }
        }
        if let Some(place) = self.begun.last().and_then(Begun::second_shell) {
            return Place::Refused(place);
        }
        match self.frames.last() {
            Some(Frame::Single) => Place::Single,
            Some(Frame::Double) => Place::Double,
            Some(
                Frame::Dollar
                | Frame::Backtick
                | Frame::Command
                | Frame::Arithmetic(_)
                | Frame::Parameter,
            )
            | None => Place::Word,
        }
    }

    pub(super) fn read(&mut self, text: &str) {
        text.chars().for_each(|c| self.next(c));
    }

    /// A value stood here; it is part of a word.
    pub(super) fn value(&mut self) {
        self.next('x');
        if let Some(begun) = self.begun.last_mut() {
            begun.value.get_or_insert(self.values);
        }
        self.values += 1;
    }

    /// At the end of the command: the number of each value that a pipe brings to a shell, which
    /// reads it as its script.
    pub(super) fn piped(mut self) -> Vec<usize> {
        while let Some(begun) = self.begun.pop() {
            self.ended(&begun);
        }
        self.piped
    }

    fn ended(&mut self, begun: &Begun) {
        if begun.reads_script() {
            self.piped.extend(begun.fed);
        }
    }

    fn next(&mut self, c: char) {
        let escaped = std::mem::take(&mut self.escaped);
        let dollar = std::mem::take(&mut self.dollar);
        let was_text = self.document.is_some() || self.comment;
        if self.document.is_some() {
            self.in_document(c, escaped);
        } else if self.comment {
            if c == '\n' {
                self.comment = false;
                self.end_line();
            }
        } else if self.delimiter.is_some() {
            self.in_delimiter(c);
        } else {
            self.in_frame(c, escaped, dollar);
        }
        self.last = Some(c);
        if !was_text {
            self.follow(c, escaped);
        }
    }

    /// Keeps the words of the command that is being read.
    fn follow(&mut self, c: char, escaped: bool) {
        let opens = |it: &&Frame| matches!(it, Frame::Command | Frame::Backtick);
        let depth = self.frames.iter().filter(opens).count() + 1;
        let is_inner = self.begun.len() < depth;
        while self.begun.len() > depth {
            // What an inner command prints is part of what the outer one prints.
            let Some(inner) = self.begun.pop() else { break };
            self.ended(&inner);
            if let Some(outer) = self.begun.last_mut() {
                outer.value = outer.value.or(inner.value).or(inner.fed);
            }
        }
        self.begun.resize_with(depth, Begun::default);
        let is_bare = !escaped && self.frames.last().is_none_or(|it| opens(&it));
        let Some(begun) = self.begun.last_mut() else { return };
        if is_inner && "(`".contains(c) {
            // The sign that opens it is none of its words.
        } else if is_bare && ";&|\n".contains(c) {
            let is_empty = begun.text.trim().is_empty();
            // `|`, also with `&` or a new line behind it; `||` is none.
            let is_pipe = if is_empty { c != '|' && begun.is_fed } else { c == '|' };
            let last = std::mem::take(begun);
            if is_pipe {
                (begun.fed, begun.is_fed) = (last.fed.or(last.value), true);
            }
            if !is_empty {
                self.ended(&last);
            }
        } else {
            begun.text.push(c);
            if is_bare && c.is_whitespace() {
                begun.word = begun.text.len();
            }
        }
    }

    fn in_document(&mut self, c: char, escaped: bool) {
        if c != '\n' {
            self.escaped = c == '\\' && !escaped;
            self.dollar = c == '$' && !escaped;
            self.line.push(c);
            return;
        }
        let line = std::mem::take(&mut self.line);
        let is_end = self.document.as_ref().is_some_and(|here| {
            let line = if here.tabs { line.trim_start_matches('\t') } else { &line };
            line == here.word
        });
        if is_end {
            self.document = None;
            self.end_line();
        }
    }

    fn in_delimiter(&mut self, c: char) {
        let Some(here) = &mut self.delimiter else { return };
        match c {
            '-' if !here.begun && !here.tabs => here.tabs = true,
            ' ' | '\t' if !here.begun => {}
            // `<<<` is one word of text.
            '<' if !here.begun && !here.tabs => self.delimiter = None,
            '\'' | '"' | '\\' => (here.quoted, here.begun) = (true, true),
            c if !c.is_whitespace() && !";&|()<>".contains(c) => {
                here.begun = true;
                here.word.push(c);
            }
            c => {
                self.waiting.extend(self.delimiter.take());
                self.in_frame(c, false, false);
            }
        }
    }

    fn in_frame(&mut self, c: char, escaped: bool, dollar: bool) {
        match self.frames.last_mut() {
            Some(Frame::Single) => {
                if c == '\'' {
                    self.frames.pop();
                }
            }
            _ if escaped => {}
            Some(Frame::Dollar) => match c {
                '\'' => drop(self.frames.pop()),
                '\\' => self.escaped = true,
                _ => {}
            },
            Some(Frame::Double) => match c {
                '"' => drop(self.frames.pop()),
                c => self.expands(c, dollar),
            },
            Some(Frame::Arithmetic(open)) => match c {
                '(' => *open += 1,
                ')' if *open == 1 => drop(self.frames.pop()),
                ')' => *open -= 1,
                c => self.expands(c, dollar),
            },
            Some(Frame::Parameter) => match c {
                '}' => drop(self.frames.pop()),
                '\'' => self.frames.push(Frame::Single),
                '"' => self.frames.push(Frame::Double),
                c => self.expands(c, dollar),
            },
            Some(Frame::Backtick | Frame::Command) | None => self.in_command(c, dollar),
        }
    }

    /// What means the same in double quotes and outside of them.
    fn expands(&mut self, c: char, dollar: bool) {
        match c {
            '\\' => self.escaped = true,
            '$' => self.dollar = true,
            '`' => self.backtick(),
            '(' if dollar => self.frames.push(Frame::Command),
            '{' if dollar => self.frames.push(Frame::Parameter),
            _ => {}
        }
    }

    fn backtick(&mut self) {
        match self.frames.iter().rposition(|it| *it == Frame::Backtick) {
            Some(at) => self.frames.truncate(at),
            None => self.frames.push(Frame::Backtick),
        }
    }

    fn in_command(&mut self, c: char, dollar: bool) {
        let begins_word = self.last.is_none_or(|last| " \t\n;&|()".contains(last));
        match c {
            '\'' if dollar => self.frames.push(Frame::Dollar),
            '\'' => self.frames.push(Frame::Single),
            '"' => self.frames.push(Frame::Double),
            '#' if begins_word => self.comment = true,
            // `((` at once is arithmetic, behind a `$` and in some shells without.
            '(' if self.last == Some('(') && self.frames.last() == Some(&Frame::Command) => {
                self.frames.pop();
                self.frames.push(Frame::Arithmetic(2));
            }
            '(' => self.frames.push(Frame::Command),
            ')' if self.frames.last() == Some(&Frame::Command) => drop(self.frames.pop()),
            '<' if self.last == Some('<') => {
                let is_shell = self.begun.last().is_some_and(Begun::reads_script);
                let reader = if is_shell { Reader::Shell } else { Reader::Program };
                self.delimiter = Some(Here { reader, ..Here::default() });
            }
            '\n' => self.end_line(),
            c => self.expands(c, dollar),
        }
    }

    fn end_line(&mut self) {
        if !self.waiting.is_empty() {
            self.document = Some(self.waiting.remove(0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(text: &str) -> Place {
        let mut places = Places::default();
        places.read(text);
        places.here()
    }

    #[test]
    fn quotes_comments_here_documents_and_substitutions_are_followed() {
        use Place::{Comment, Double, HereDocument, Single, Word};
        for (text, place) in [
            ("echo ", Word),
            ("echo 'a' ", Word),
            ("echo '", Single),
            ("echo \"a ", Double),
            ("echo \"a $(b ", Word),
            ("echo \"$(basename \"", Double),
            ("echo \"$(basename \"x\") ", Double),
            ("echo \\' ", Word),
            ("echo \"\\\" ", Double),
            ("echo \"\\\\\" ", Word),
            ("echo '\\' ", Word),
            ("echo `a` ", Word),
            ("# don't\necho ", Word),
            ("# don", Comment),
            ("echo a#b ", Word),
            ("(cd x; ", Word),
            ("cat <<EOF\nx ", HereDocument),
            ("cat <<-EOF\n\tEOF\n", Word),
            ("cat <<EOF\n\tEOF\n", HereDocument),
            ("cat <<EOF\nit's\nEOF\necho ", Word),
            ("cat <<EOF > ", Word),
            ("cat <<<word\n", Word),
            ("cat <<A <<B\nx\nA\n", HereDocument),
            ("cat <<A <<B\nx\nA\nB\n", Word),
            ("echo $((1 << 2))\necho ", Word),
            ("echo ${x} ", Word),
            ("sh -c 'echo \"$1\"' _ ", Word),
            ("sh -c 'x'; echo ", Word),
            ("echo eval ", Word),
            ("git -c a=b ", Word),
            ("eval \"$(cat ", Word),
            ("sh -s <<EOF > ", Word),
            ("sh run.sh <<EOF\n", HereDocument),
            ("cat <<< ", Word),
        ] {
            assert_eq!(after(text), place, "{text:?}");
        }
        for text in [
            "echo \\",
            "echo $",
            "echo \"$",
            "echo $((",
            "echo $(( \"",
            "echo $((1 + (",
            "((",
            "echo ${",
            "echo ${x:-",
            "echo $'",
            "echo `a ",
            "cat <<'EOF'\nx ",
            "cat <<\\EOF\nx ",
            "cat <<",
            "cat <<EOF\n\\",
            "eval echo ",
            "a && x=1 eval '",
            "if ! eval ",
            "trap ",
            "sh -c \"echo ",
            "env -i /bin/bash -e -lc '",
            "x | xargs sh -c ",
            "sh <<EOF\necho ",
            "x=1 sudo -u me /bin/bash -e <<EOF\necho ",
            "bash <<< ",
        ] {
            assert!(matches!(after(text), Place::Refused(_)), "{text:?}");
        }
    }

    #[test]
    fn a_value_that_a_pipe_brings_to_a_shell_is_found() {
        let piped = |text: &str| {
            let mut places = Places::default();
            let (first, rest) = text.split_once('@').unwrap();
            places.read(first);
            places.value();
            places.read(rest);
            places.piped()
        };
        for text in [
            "echo @ | sh",
            "echo \"@\" | tee x | /bin/bash -e",
            "a; (echo @) | sudo -u me sh -s one\nb",
            "echo $(basename @) |\n  x=1 sh",
            "(echo @ | sh)",
            "echo @ |& bash > out",
        ] {
            assert_eq!(piped(text), [0], "{text}");
        }
        for text in [
            "echo @ || sh",
            "echo @; sh",
            "cat script | sh -s @",
            "echo @ | sh run.sh",
            "echo @ | sh -c 'cat'",
            "echo @ | grep sh",
            "echo '@ | sh'",
            "echo @ \\| sh",
        ] {
            assert!(piped(text).is_empty(), "{text}");
        }
    }

    #[test]
    fn a_value_becomes_a_variable_wherever_it_stands() {
        let (x, y) = (marked("it's; $(rm)"), marked("y"));
        let rendered = format!("echo {x} \"a {y}\" '{x}' # {y}\ncat <<E\n{x}\nE\n");
        let script = with_variables(&rendered, 3).unwrap();
        let text = "echo \"$ONWARD_V3\" \"a ${ONWARD_V4}\" ''\"$ONWARD_V5\"'' # ${ONWARD_V6}\n\
                    cat <<E\n${ONWARD_V7}\nE\n";
        assert_eq!(script.text, text);
        let value = |at: usize| script.values[at].1.as_str();
        assert_eq!((value(0), value(1), value(4)), ("it's; $(rm)", "y", "it's; $(rm)"));
        assert_eq!(script.values[0].0, "ONWARD_V3");
        assert!(script.alone().starts_with("ONWARD_V3='it'\\''s; $(rm)'\nONWARD_V4='y'\n"));
        assert!(with_variables(&format!("echo $(({x}))"), 1).is_err());
        let nested = marked(&format!("a {x} b"));
        assert_eq!(with_variables(&nested, 1).unwrap().values[0].1, "a it's; $(rm) b");
    }
}
