//! What agents say, as lines for people.
//!
//! Invariant: words come from the agent's adapter and go through [`printable`]: an agent's output
//! is shown, never obeyed.

use onward_engine::agents::Spoken;

use crate::diagnostic::printable;

/// The output of one attempt as it grows.
#[derive(Debug)]
pub(crate) struct Speech {
    voice: Spoken,
    /// The part of the last line that is there already.
    begun: Vec<u8>,
    message: Message,
}

impl Speech {
    pub(crate) fn of(voice: Spoken) -> Self {
        Self { voice, begun: Vec::new(), message: Message::default() }
    }

    /// What was added, in words. The last line is told when it is whole, or when nothing more
    /// comes.
    pub(crate) fn words(&mut self, added: &[u8], ended: bool) -> Vec<String> {
        self.begun.extend_from_slice(added);
        let whole = self.begun.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let end = if ended { self.begun.len() } else { whole };
        let rest = self.begun.split_off(end);
        let text = std::mem::replace(&mut self.begun, rest);
        let mut words = self.message.take(&self.voice, &String::from_utf8_lossy(&text));
        if ended {
            words.extend(self.message.end());
        }
        words
    }
}

/// What an agent says in pieces, until it is whole.
#[derive(Debug, Default)]
struct Message(String);

impl Message {
    /// Whole lines of output in words; of a message in pieces, the lines that are whole.
    fn take(&mut self, voice: &Spoken, text: &str) -> Vec<String> {
        let mut words = Vec::new();
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            if let Some(piece) = voice.piece(line) {
                self.0.push_str(&piece);
                if let Some(end) = self.0.rfind('\n') {
                    let rest = self.0.split_off(end + 1);
                    words.extend(self.end());
                    self.0 = rest;
                }
                continue;
            }
            words.extend(self.end());
            let told = voice.tell(line);
            words.extend(told.iter().flat_map(|it| it.lines()).map(printable));
        }
        words
    }

    fn end(&mut self) -> Vec<String> {
        std::mem::take(&mut self.0).lines().map(printable).collect()
    }
}

/// Output in words, up to its end.
pub(crate) fn told(voice: &Spoken, text: &str) -> Vec<String> {
    let mut message = Message::default();
    let mut words = message.take(voice, text);
    words.extend(message.end());
    words
}

#[cfg(test)]
mod tests {
    use onward_engine::agents::named;

    use super::*;

    #[test]
    fn words_are_told_once_wherever_the_output_is_cut() {
        let text = "{\"type\":\"system\"}\n{\"type\":\"assistant\",\"message\":{\"content\":\
                    [{\"type\":\"text\",\"text\":\"two\\nlines\"},{\"type\":\"tool_use\",\"name\":\
                    \"Bash\",\"input\":{\"command\":\"ls\"}}]}}\nnot json";
        for cut in 0..text.len() {
            let mut speech = Speech::of(named("claude").unwrap());
            let mut words = speech.words(&text.as_bytes()[..cut], false);
            words.extend(speech.words(&text.as_bytes()[cut..], true));
            assert_eq!(words, ["two", "lines", "> Bash ls", "not json"], "cut at {cut}");
        }
    }
    #[test]
    fn what_comes_in_pieces_is_one_message() {
        let piece = |text: &str| {
            let (kind, role) = ("message", "assistant");
            let event = serde_json::json!({"type": kind, "role": role, "content": text,
                "delta": true});
            format!("{event}\n")
        };
        let text = piece("one ") + &piece("line\nand") + &piece(" more") + "not json\n";
        let all = ["one line", "and more", "not json"];
        assert_eq!(told(&named("gemini").unwrap(), &text), all);
        for cut in 0..text.len() {
            let mut speech = Speech::of(named("gemini").unwrap());
            let mut words = speech.words(&text.as_bytes()[..cut], false);
            words.extend(speech.words(&text.as_bytes()[cut..], true));
            assert_eq!(words, all, "cut at {cut}");
        }
    }
}
