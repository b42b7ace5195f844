//! Aider: plain text, and exit code 0 whatever happened. Its words are all there is.
//!
//! A message stands between what aider tells of itself, which ends with the line `Repo-map`, and
//! the line with the tokens of the message.

use onward_core::{
    said::{Closed, Said, Spent},
    workflow::permissions::Permissions,
};

use super::{
    Adapter, Card, Entry, Order, Stream,
    events::{options, words},
    notice,
};

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct Aider;

const CARD: Card = Card {
    install: Some("python3 -m pip install aider-chat"),
    closes: false,
    credentials: &["ANTHROPIC_API_KEY", "OPENAI_API_KEY"],
    ..Card::usual("aider", "aider")
};

impl Adapter for Aider {
    fn card(&self) -> &Card {
        &CARD
    }

    fn argv(&self, order: &Order<'_>, _: Entry<'_>) -> Vec<String> {
        let mut argv = words(&["aider", "--yes-always", "--no-pretty", "--no-check-update"]);
        argv.extend(words(&["--analytics-disable", "--no-stream"]));
        argv.extend(match order.permissions {
            Permissions::ReadOnly => words(&["--dry-run", "--no-suggest-shell-commands"]),
            Permissions::Edit => words(&["--no-suggest-shell-commands"]),
            Permissions::Full => Vec::new(),
        });
        argv.extend(options(&[("--model", order.model), ("--read", order.system_file)]));
        argv.extend(["--message".to_owned(), order.argument()]);
        argv
    }

    fn read(&self, from: Stream, lines: &[u8], said: &mut Said) {
        if from == Stream::Err {
            return;
        }
        let lines = String::from_utf8_lossy(lines);
        let mut message = String::new();
        for line in lines.lines() {
            if line.starts_with("Repo-map: ") {
                message.clear();
                continue;
            }
            // Its library names the error first; the words may be broken over lines.
            if line.starts_with("litellm.") || line.starts_with("The API provider") {
                let known = notice::cause_of(None, line).is_some();
                if known || !ended_badly(said) {
                    notice::end_badly(said, CARD.provider, None, line);
                }
            } else if ended_badly(said) && notice::cause_of(None, line).is_some() {
                notice::end_badly(said, CARD.provider, None, line);
            } else if let Some(spent) = tokens(line) {
                // It got an answer after all.
                said.closed = Some(Closed::Well);
                said.limit = None;
                said.spent = said.spent.plus(spent);
                let answer = std::mem::take(&mut message).trim().to_owned();
                if notice::is_limit_notice(&answer) {
                    notice::end_badly(said, CARD.provider, None, &answer);
                }
                said.answer = Some(answer);
            } else {
                message.push_str(line);
                message.push('\n');
            }
        }
    }
}

fn ended_badly(said: &Said) -> bool {
    matches!(said.closed, Some(Closed::Badly { .. }))
}

/// `Tokens: 5.9k sent, 7 received.`
fn tokens(line: &str) -> Option<Spent> {
    let rest = line.strip_prefix("Tokens: ")?;
    let (sent, rest) = rest.split_once(" sent, ")?;
    let sent = sent.split(',').next()?;
    let received = rest.split(", ").last()?.split_once(" received")?.0;
    let number = |text: &str| {
        let (digits, scale) = match text.strip_suffix('k') {
            Some(digits) => (digits, 1000),
            None => (text, 1),
        };
        let (whole, part) = digits.split_once('.').unwrap_or((digits, "0"));
        let tenth: u64 = part.get(..1)?.parse().ok()?;
        Some(whole.parse::<u64>().ok()?.saturating_mul(scale).saturating_add(tenth * scale / 10))
    };
    let (input_tokens, output_tokens) = (number(sent)?, number(received)?);
    Some(Spent { input_tokens, output_tokens, ..Spent::NOTHING })
}
