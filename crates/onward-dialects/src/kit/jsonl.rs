//! One JSON object a line, as logs are written.
//!
//! Invariant: a line that cannot be read costs itself only, and is reported by its number. Empty
//! lines are none; a line of NULs, which a crash of the machine leaves, is a broken one.

use serde_json::{Map, Value};

use super::Broken;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct JsonLines {
    pub lines: Vec<JsonLine>,
    pub broken: Vec<Broken>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct JsonLine {
    /// Counted from 1.
    pub number: usize,
    pub object: Map<String, Value>,
}

impl JsonLines {
    pub fn read(bytes: &[u8]) -> Self {
        let mut all = Self::default();
        each(bytes, |number, line| match line {
            Ok(object) => all.lines.push(JsonLine { number, object }),
            Err(why) => all.broken.push(Broken::new(number, why)),
        });
        all
    }
}

/// Calls `take` with each line's number and its object, or why there is none; no line is kept.
pub fn each(bytes: &[u8], mut take: impl FnMut(usize, Result<Map<String, Value>, &'static str>)) {
    // Some editors begin a file with a byte-order mark.
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    for (line, number) in bytes.split(|byte| *byte == b'\n').zip(1..) {
        if !line.trim_ascii().is_empty() {
            take(number, object(line));
        }
    }
}

fn object(line: &[u8]) -> Result<Map<String, Value>, &'static str> {
    if line.trim_ascii().iter().all(|byte| *byte == 0) {
        return Err("it holds nothing but NUL bytes");
    }
    let text = str::from_utf8(line).map_err(|_| "it is not UTF-8")?;
    match serde_json::from_str(text).map_err(|_| "it is not JSON")? {
        Value::Object(object) => Ok(object),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err("it is not a JSON object")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_line_costs_itself_only() {
        let text = b"\xef\xbb\xbf{\"a\":1}\r\n{\"a\":\n\n[1]\n\0\0\0\n\xff{}\n  \n{\"b\":2}";
        let all = JsonLines::read(text);
        let numbers: Vec<usize> = all.lines.iter().map(|it| it.number).collect();
        assert_eq!(numbers, [1, 8]);
        let broken: Vec<(usize, &str)> =
            all.broken.iter().map(|it| (it.line, it.why.as_str())).collect();
        let expected = [
            (2, "it is not JSON"),
            (4, "it is not a JSON object"),
            (5, "it holds nothing but NUL bytes"),
            (6, "it is not UTF-8"),
        ];
        assert_eq!(broken, expected);
    }

    #[test]
    fn a_tail_of_nuls_is_a_broken_line_too() {
        let all = JsonLines::read(b"{}\n\0\0");
        assert_eq!((all.lines.len(), all.broken.len()), (1, 1));
        assert_eq!(all.broken[0].line, 2);
        assert_eq!(JsonLines::read(b"\n \n"), JsonLines::default());
    }
}
