//! Tokens that are known by their shape, wherever they come from.

use std::{ops::Range, sync::LazyLock};

use aho_corasick::{AhoCorasick, MatchKind};

/// How a token begins, and how many of its characters follow at the least.
const TOKENS: [(&str, usize); 25] = [
    ("ghp_", 30),
    ("gho_", 30),
    ("ghu_", 30),
    ("ghs_", 30),
    ("ghr_", 30),
    ("github_pat_", 30),
    ("glpat-", 16),
    ("sk-ant-", 20),
    ("sk-proj-", 20),
    ("sk_live_", 16),
    ("sk_test_", 16),
    ("rk_live_", 16),
    ("xoxb-", 16),
    ("xoxp-", 16),
    ("xoxa-", 16),
    ("AKIA", 16),
    ("ASIA", 16),
    ("AIza", 30),
    ("ya29.", 20),
    ("npm_", 30),
    ("pypi-", 30),
    ("hf_", 30),
    ("dop_v1_", 40),
    ("SG.", 40),
    ("eyJ", 40),
];
const KEY_BEGIN: &str = "-----BEGIN ";
const KEY_BEGIN_END: &str = "PRIVATE KEY-----";
const KEY_END: &str = "-----END ";

static FINDER: LazyLock<AhoCorasick> = LazyLock::new(|| {
    let starts = TOKENS.iter().map(|(start, _)| *start).chain([KEY_BEGIN]);
    let finder = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(starts);
    finder.expect("a few short words make a finder")
});

/// The ranges of all tokens of a text.
pub(super) fn find(text: &[u8]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut from = 0;
    for start in FINDER.find_iter(text) {
        if start.start() < from {
            continue;
        }
        let end = match TOKENS.get(start.pattern().as_usize()) {
            Some((prefix, rest_min)) => token_end(text, start.range(), prefix, *rest_min),
            None => key_end(text, start.end()),
        };
        if let Some(end) = end {
            found.push(start.start()..end);
            from = end;
        }
    }
    found
}

fn is_of_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

fn token_end(text: &[u8], start: Range<usize>, prefix: &str, rest_min: usize) -> Option<usize> {
    let is_inside = start.start > 0 && is_of_token(text[start.start - 1]);
    // These have parts with dots between them.
    let is_dotted = matches!(prefix, "eyJ" | "SG." | "ya29.");
    let length = text[start.end..]
        .iter()
        .take_while(|byte| is_of_token(**byte) || (is_dotted && **byte == b'.'))
        .count();
    let rest = &text[start.end..start.end + length];
    // Three parts make a signed token; two are a file's name, or an object in base64.
    let is_whole = prefix != "eyJ" || rest.split(|byte| *byte == b'.').count() == 3;
    let is_random = rest.iter().any(u8::is_ascii_digit);
    (!is_inside && length >= rest_min && is_whole && is_random).then_some(start.end + length)
}

/// All of a private key, or all there is of it.
fn key_end(text: &[u8], begin: usize) -> Option<usize> {
    let line = text[begin..].iter().position(|byte| *byte == b'\n').unwrap_or(text.len() - begin);
    let first = String::from_utf8_lossy(&text[begin..begin + line]);
    if !first.contains(KEY_BEGIN_END) {
        return None;
    }
    let rest = &text[begin..];
    let end = rest.windows(KEY_END.len()).position(|it| it == KEY_END.as_bytes());
    let after = end.map_or(rest.len(), |at| {
        let tail = &rest[at..];
        at + tail.iter().position(|byte| *byte == b'\n').unwrap_or(tail.len())
    });
    Some(begin + after)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(usize, usize)> {
        find(text.as_bytes()).into_iter().map(|it| (it.start, it.end)).collect()
    }

    #[test]
    fn tokens_are_known_by_their_shape_and_words_are_not() {
        let rest = "Ab1".repeat(20);
        for (start, _) in TOKENS.iter().filter(|it| it.0 != "eyJ") {
            let text = format!("a {start}{rest} b");
            assert_eq!(found(&text), [(2, text.len() - 2)], "{text}");
        }
        let signed = format!("eyJ{rest}.{rest}.{rest}");
        assert_eq!(found(&signed), [(0, signed.len())]);
        for word in [
            "ghp_short1",
            "sk-ant-nodigitsatallinthiswordhere",
            "eyJhbGciOiJub25lIn0",
            "xghp_Ab1Ab1Ab1Ab1Ab1Ab1Ab1Ab1Ab1Ab1Ab1",
        ] {
            assert!(find(word.as_bytes()).is_empty(), "{word}");
        }
    }

    #[test]
    fn a_private_key_is_one_from_its_first_line_to_its_last() {
        let key = "-----BEGIN RSA PRIVATE KEY-----\nabc\ndef\n-----END RSA PRIVATE KEY-----";
        let text = format!("x\n{key}\ny");
        assert_eq!(found(&text), [(2, 2 + key.len())]);
        assert!(find(b"-----BEGIN CERTIFICATE-----\nabc\n").is_empty());
    }
}
