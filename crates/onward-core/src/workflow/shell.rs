//! Where the literal text of a command stands: outside or inside quotes.
//!
//! A value is quoted when it is put into a command. Inside the author's own quotes that quoting
//! would come undone, and the value could end them and become a command. This follows just enough
//! of a shell's lexing to see that; it errs on the side of "inside".

/// Reads the literal pieces of one command, in order.
#[derive(Default)]
pub(super) struct Quotes {
    state: Inside,
    escaped: bool,
    /// The last character, to see `<<` and a `#` that begins a word.
    last: Option<char>,
    /// Words after `<<` whose bodies begin with the next line.
    waiting: Vec<String>,
    /// The line so far, to see the end of a here-document.
    line: String,
}

#[derive(Default, PartialEq)]
enum Inside {
    #[default]
    Nothing,
    Single,
    Double,
    Backtick,
    Comment,
    /// The word after `<<`, as far as it was read.
    Delimiter(String),
    Here(String),
}

impl Quotes {
    /// The place a value would stand in now, if it is not a plain one.
    pub(super) fn inside(&self) -> Option<&'static str> {
        match self.state {
            Inside::Nothing | Inside::Delimiter(_) => None,
            Inside::Single | Inside::Double => Some("quotes"),
            Inside::Backtick => Some("backticks"),
            Inside::Comment => Some("comment"),
            Inside::Here(_) => Some("here-document"),
        }
    }

    pub(super) fn read(&mut self, text: &str) {
        text.chars().for_each(|c| self.next(c));
    }

    fn next(&mut self, c: char) {
        let escaped = std::mem::take(&mut self.escaped);
        match &mut self.state {
            Inside::Single if c == '\'' => self.state = Inside::Nothing,
            Inside::Double if c == '"' && !escaped => self.state = Inside::Nothing,
            Inside::Backtick if c == '`' && !escaped => self.state = Inside::Nothing,
            Inside::Double | Inside::Backtick => self.escaped = c == '\\' && !escaped,
            Inside::Comment if c == '\n' => self.end_line(),
            Inside::Single | Inside::Comment => {}
            Inside::Here(end) => {
                if c != '\n' {
                    self.line.push(c);
                } else if self.line.trim_start_matches('\t') == end {
                    self.line.clear();
                    self.end_line();
                } else {
                    self.line.clear();
                }
            }
            Inside::Delimiter(word) => match c {
                '-' | ' ' | '\t' if word.is_empty() => {}
                // `<<<` is one word of text.
                '<' => self.state = Inside::Nothing,
                '\'' | '"' | '\\' => {}
                c if c.is_alphabetic() || c == '_' => word.push(c),
                c if c.is_ascii_digit() && !word.is_empty() => word.push(c),
                c => {
                    let word = std::mem::take(word);
                    self.state = Inside::Nothing;
                    if !word.is_empty() {
                        self.waiting.push(word);
                    }
                    self.plain(c, false);
                }
            },
            Inside::Nothing => self.plain(c, escaped),
        }
        self.last = Some(c);
    }

    fn plain(&mut self, c: char, escaped: bool) {
        if escaped {
            return;
        }
        let begins_word = self.last.is_none_or(|last| " \t\n;&|(".contains(last));
        match c {
            '\\' => self.escaped = true,
            '\'' => self.state = Inside::Single,
            '"' => self.state = Inside::Double,
            '`' => self.state = Inside::Backtick,
            '#' if begins_word => self.state = Inside::Comment,
            '<' if self.last == Some('<') => self.state = Inside::Delimiter(String::new()),
            '\n' => self.end_line(),
            _ => {}
        }
    }

    fn end_line(&mut self) {
        self.state = if self.waiting.is_empty() {
            Inside::Nothing
        } else {
            Inside::Here(self.waiting.remove(0))
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(text: &str) -> Option<&'static str> {
        let mut quotes = Quotes::default();
        quotes.read(text);
        quotes.inside()
    }

    #[test]
    fn quotes_comments_and_here_documents_are_followed() {
        for (text, inside) in [
            ("echo ", None),
            ("echo 'a' ", None),
            ("echo '", Some("quotes")),
            ("echo \"a $(b ", Some("quotes")),
            ("echo \\' ", None),
            ("echo \"\\\" ", Some("quotes")),
            ("echo \"\\\\\" ", None),
            ("echo '\\' ", None),
            ("echo it\\'s ", None),
            ("echo `a ", Some("backticks")),
            ("echo `a` ", None),
            ("# don't\necho ", None),
            ("# don", Some("comment")),
            ("echo a#b ", None),
            ("cat <<EOF\nx ", Some("here-document")),
            ("cat <<-'EOF'\nx ", Some("here-document")),
            ("cat <<EOF\nit's\nEOF\necho ", None),
            ("cat <<EOF > ", None),
            ("cat <<<word\n", None),
            ("cat <<A <<B\nx\nA\n", Some("here-document")),
            ("cat <<A <<B\nx\nA\nB\n", None),
            ("echo $((1 << 2))\necho ", None),
        ] {
            assert_eq!(after(text), inside, "{text:?}");
        }
    }
}
