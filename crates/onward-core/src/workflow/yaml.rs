//! YAML text as a tree in which everything knows its place.
//!
//! Built straight on the event parser: keys keep their places and order, scalars their spelling
//! (`model: 4.10` is not 4.1), and a file can have many problems instead of one. Invariant: keys of
//! a map are unique, aliases never make the tree much larger than the text, and no branch of it is
//! longer than [`NESTING_MAX`]: the tree is built, copied and dropped by functions that call
//! themselves.

use std::collections::{BTreeMap, BTreeSet};

use granit_parser::{ErrorKind, Event, Parser, ScalarStyle, ScanError, Span, Tag};
use serde_json::Value;

use super::{model::Place, problem::Problems};

#[derive(Clone)]
pub(super) struct Node {
    pub(super) at: Place,
    pub(super) tree: Tree,
}

#[derive(Clone)]
pub(super) enum Tree {
    Scalar(Scalar),
    List(Vec<Node>),
    Map(Vec<(Key, Node)>),
    /// Something was wrong here, and has been said.
    Broken,
}

#[derive(Clone)]
pub(super) struct Scalar {
    pub(super) text: String,
    /// Written without quotes, so that it may be a number, a truth value or nothing.
    pub(super) plain: bool,
}

#[derive(Clone)]
pub(super) struct Key {
    pub(super) at: Place,
    pub(super) text: String,
}

/// Lists and mappings in each other, those included that the text spells without brackets
/// (`[: : :`) or repeats by an alias. The parser's own limits count brackets and indentation alone.
const NESTING_MAX: usize = 100;
/// What all aliases together may add, in bytes of text and [`NODE_BYTES`] for each node.
const ALIAS_BYTES_MAX: usize = 8 << 20;
const NODE_BYTES: usize = 80;

/// The one document of a file. Nothing when the text is no YAML at all.
pub(super) fn parse(text: &str, file: u32, problems: &mut Problems) -> Option<Node> {
    let options = granit_parser::options! {
        emit_comments: false,
        flow_nesting_limit: NESTING_MAX,
        block_nesting_limit: NESTING_MAX,
    };
    let events = Parser::new_from_str_with_options(text, options);
    let mut builder =
        Builder { events, file, problems, anchors: Vec::new(), bytes: 0, alias_bytes: 0, depth: 0 };
    match builder.document() {
        Ok(node) => node,
        Err(error) => {
            let at = place(file, *error.marker());
            let problem = builder.problems.error(at, format!("not valid YAML: {}", error.info()));
            problem.hint(hint(error.kind()));
            None
        }
    }
}

/// The document of a file that another program wrote, as JSON. A number stays one only where it is
/// written as JSON would write it: `4.10` and `001` are names in such files, not amounts.
pub fn foreign(text: &str) -> Result<Value, String> {
    let mut problems = Problems::default();
    let node = parse(text, 0, &mut problems);
    match (node, problems.finish(&[("", text)]).into_iter().next()) {
        (Some(node), None) => Ok(node.spelled()),
        (_, Some(problem)) => Err(format!("line {}: {}", problem.at.line, problem.message)),
        (None, None) => Err("it holds nothing".to_owned()),
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the parser's enum may grow")]
fn hint(kind: &ErrorKind) -> &'static str {
    match kind {
        ErrorKind::TabNotAllowed
        | ErrorKind::TabInBlockIndentation
        | ErrorKind::TabAtBlockScalarStart
        | ErrorKind::TabInIndentation
        | ErrorKind::TabInPlainScalar => "indent with spaces, not with tabs",
        ErrorKind::MappingValueNotAllowed | ErrorKind::InvalidColonPlacement => {
            "check the indentation, or quote the text: it holds a `: `"
        }
        ErrorKind::UnexpectedCharacter { .. } => {
            "quote the text: it begins with a character that YAML keeps for itself"
        }
        ErrorKind::UnknownAnchor => {
            "`*name` repeats what `&name` marked above; quote the text if you mean a `*`"
        }
        ErrorKind::UnclosedFlowCollection { .. } | ErrorKind::UnclosedQuotedScalar => {
            "it is opened here and never closed"
        }
        // What the parser knows no name for is what the builder refuses.
        ErrorKind::RecursionLimitExceeded | ErrorKind::Custom(_) => "nest less deeply",
        // Of all the others, most are a line that begins in the wrong column.
        _ => "check the indentation: what belongs together begins in the same column",
    }
}

fn place(file: u32, marker: granit_parser::Marker) -> Place {
    let small = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    // An empty value at the end of the text has no line of its own.
    let line = small(marker.line()).max(1);
    Place { file, line, column: small(marker.col().saturating_add(1)) }
}

fn broken(at: Place) -> Node {
    Node { at, tree: Tree::Broken }
}

struct Builder<'t, 'p> {
    events: Parser<'t, granit_parser::StrInput<'t>>,
    file: u32,
    problems: &'p mut Problems,
    anchors: Vec<Anchored>,
    bytes: usize,
    alias_bytes: usize,
    /// Lists and mappings around the node that is being built.
    depth: usize,
}

/// What an alias repeats.
struct Anchored {
    id: usize,
    node: Node,
    bytes: usize,
    /// Lists and mappings in each other.
    levels: usize,
}

fn too_deep(at: granit_parser::Marker) -> ScanError {
    ScanError::new(at, format!("lists and mappings are nested deeper than {NESTING_MAX} levels"))
}

impl<'t> Builder<'t, '_> {
    fn next(&mut self) -> Result<Option<(Event<'t>, Span)>, ScanError> {
        self.events.next().transpose()
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "the parser's enum may grow")]
    fn document(&mut self) -> Result<Option<Node>, ScanError> {
        let mut root: Option<Node> = None;
        while let Some((event, span)) = self.next()? {
            match event {
                Event::StreamStart
                | Event::StreamEnd
                | Event::DocumentStart(..)
                | Event::DocumentEnd => {}
                event if root.is_none() => root = Some(self.node(event, span)?),
                _ => {
                    let at = place(self.file, span.start);
                    let problem = self.problems.error(at, "a second document begins here");
                    problem.hint("one workflow is one file; remove the `---`");
                    return Ok(root);
                }
            }
        }
        if root.is_none() {
            let at = Place { file: self.file, line: 1, column: 1 };
            self.problems.error(at, "the file is empty");
        }
        Ok(root)
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "the parser's enum may grow")]
    fn node(&mut self, event: Event<'t>, span: Span) -> Result<Node, ScanError> {
        let at = place(self.file, span.start);
        let bytes_before = self.bytes;
        self.bytes += NODE_BYTES;
        let (anchor, tree) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let is_text = self.is_text_tag(tag.as_deref(), at);
                let plain = style == ScalarStyle::Plain && !is_text;
                self.bytes += text.len();
                (anchor, Tree::Scalar(Scalar { text: text.into_owned(), plain }))
            }
            Event::SequenceStart(_, anchor, tag) => {
                self.is_text_tag(tag.as_deref(), at);
                (anchor, self.within(span, Self::list)?)
            }
            Event::MappingStart(_, anchor, tag) => {
                self.is_text_tag(tag.as_deref(), at);
                (anchor, self.within(span, |it| it.map(at))?)
            }
            Event::Alias(id) => return self.alias(id, at, span),
            // Not asked for, or not a node; whatever it is, it carries no value.
            _ => (0, Tree::Broken),
        };
        let node = Node { at, tree };
        if anchor != 0 {
            let bytes = self.bytes - bytes_before;
            // What is marked is kept once more, and marks may lie in each other.
            let kept = if self.adds(bytes, at) { node.clone() } else { broken(at) };
            let levels = kept.levels();
            self.anchors.push(Anchored { id: anchor, node: kept, bytes, levels });
        }
        Ok(node)
    }

    /// Reads what a list or a mapping holds.
    fn within(
        &mut self,
        span: Span,
        read: impl FnOnce(&mut Self) -> Result<Tree, ScanError>,
    ) -> Result<Tree, ScanError> {
        if self.depth >= NESTING_MAX {
            return Err(too_deep(span.start));
        }
        self.depth += 1;
        let tree = read(self);
        self.depth -= 1;
        tree
    }

    fn is_text_tag(&mut self, tag: Option<&Tag>, at: Place) -> bool {
        let Some(tag) = tag else { return false };
        let is_text = tag.is_yaml_core_schema_tag("str");
        if !is_text {
            self.problems.error(at, "tags other than `!!str` mean nothing here").hint("remove it");
        }
        is_text
    }

    fn alias(&mut self, id: usize, at: Place, span: Span) -> Result<Node, ScanError> {
        let Some(anchored) = self.anchors.iter().rev().find(|it| it.id == id) else {
            self.problems.error(at, "this repeats something that contains it");
            return Ok(broken(at));
        };
        if self.depth + anchored.levels > NESTING_MAX {
            return Err(too_deep(span.start));
        }
        let (node, bytes) = (anchored.node.clone(), anchored.bytes);
        if !self.adds(bytes, at) {
            return Ok(broken(at));
        }
        self.bytes += bytes;
        Ok(node)
    }

    /// False when anchors and aliases have added too much.
    fn adds(&mut self, bytes: usize, at: Place) -> bool {
        let before = self.alias_bytes;
        self.alias_bytes = before.saturating_add(bytes);
        let is_fine = self.alias_bytes <= ALIAS_BYTES_MAX;
        // Said once: every further alias would say the same.
        if !is_fine && before <= ALIAS_BYTES_MAX {
            self.problems
                .error(at, "the aliases of this file expand to far more than it holds")
                .hint("write out what you mean, or use `each`");
        }
        is_fine
    }

    fn list(&mut self) -> Result<Tree, ScanError> {
        let mut items = Vec::new();
        while let Some((event, span)) = self.next()? {
            if matches!(event, Event::SequenceEnd) {
                break;
            }
            items.push(self.node(event, span)?);
        }
        // Most are short, and there are as many as steps.
        items.shrink_to_fit();
        Ok(Tree::List(items))
    }

    fn map(&mut self, at: Place) -> Result<Tree, ScanError> {
        let mut pairs: Vec<(Key, Node)> = Vec::new();
        let mut merged = Vec::new();
        let mut broken = false;
        while let Some((event, span)) = self.next()? {
            if matches!(event, Event::MappingEnd) {
                break;
            }
            let key = self.node(event, span)?;
            let Some((event, span)) = self.next()? else { break };
            let value = self.node(event, span)?;
            match key.tree {
                Tree::Scalar(scalar) if scalar.plain && scalar.text == "<<" => merged.push(value),
                Tree::Scalar(scalar) => pairs.push((Key { at: key.at, text: scalar.text }, value)),
                Tree::List(_) | Tree::Map(_) | Tree::Broken => broken = true,
            }
        }
        if broken {
            let problem = self.problems.error(at, "a mapping whose key is not a word");
            problem.hint("a value that begins with `{{` needs quotes: \"{{ … }}\"");
            return Ok(Tree::Broken);
        }
        self.drop_repeated(&mut pairs);
        for node in merged {
            self.merge(&mut pairs, node);
        }
        Ok(Tree::Map(pairs))
    }

    fn drop_repeated(&mut self, pairs: &mut Vec<(Key, Node)>) {
        let mut lines: BTreeMap<String, u32> = BTreeMap::new();
        pairs.retain(|(key, _)| {
            let Some(line) = lines.get(&key.text) else {
                lines.insert(key.text.clone(), key.at.line);
                return true;
            };
            let problem = self.problems.error(key.at, format!("`{}` is given twice", key.text));
            problem.hint(format!("it stands in line {line} already"));
            false
        });
    }

    /// `<<: *base`: what is not given here is taken from there.
    fn merge(&mut self, pairs: &mut Vec<(Key, Node)>, from: Node) {
        match from.tree {
            Tree::Map(more) => {
                let given: BTreeSet<String> = pairs.iter().map(|it| it.0.text.clone()).collect();
                pairs.extend(more.into_iter().filter(|(key, _)| !given.contains(&key.text)));
            }
            Tree::List(nodes) => nodes.into_iter().for_each(|node| self.merge(pairs, node)),
            Tree::Scalar(_) => {
                self.problems.error(from.at, "`<<` takes a mapping, such as `*defaults`");
            }
            Tree::Broken => {}
        }
    }
}

impl Scalar {
    /// What YAML 1.2 makes of it.
    pub(super) fn value(&self) -> Value {
        if !self.plain {
            return Value::String(self.text.clone());
        }
        let text = self.text.as_str();
        match text {
            "" | "~" | "null" | "Null" | "NULL" => Value::Null,
            "true" | "True" | "TRUE" => Value::Bool(true),
            "false" | "False" | "FALSE" => Value::Bool(false),
            _ => number(text).unwrap_or_else(|| Value::String(text.to_owned())),
        }
    }
}

fn number(text: &str) -> Option<Value> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if !digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    let unsigned = text.strip_prefix('+').unwrap_or(text);
    let radix = |prefix: &str, radix| {
        u64::from_str_radix(text.strip_prefix(prefix)?, radix).ok().map(Value::from)
    };
    let whole = || unsigned.parse::<i64>().map(Value::from).ok();
    let large = || unsigned.parse::<u64>().map(Value::from).ok();
    let float = || {
        let known = |c: char| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '-' | '+');
        let number = text.chars().all(known).then(|| unsigned.parse::<f64>().ok())??;
        number.is_finite().then(|| Value::from(number))
    };
    radix("0x", 16).or_else(|| radix("0o", 8)).or_else(whole).or_else(large).or_else(float)
}

impl Node {
    /// Lists and mappings in each other.
    fn levels(&self) -> usize {
        let inner = |nodes: &mut dyn Iterator<Item = &Self>| nodes.map(Self::levels).max();
        match &self.tree {
            Tree::Scalar(_) | Tree::Broken => 0,
            Tree::List(nodes) => 1 + inner(&mut nodes.iter()).unwrap_or(0),
            Tree::Map(pairs) => 1 + inner(&mut pairs.iter().map(|it| &it.1)).unwrap_or(0),
        }
    }

    /// As JSON; keys stay words.
    pub(super) fn value(&self) -> Value {
        match &self.tree {
            Tree::Scalar(scalar) => scalar.value(),
            Tree::List(nodes) => nodes.iter().map(Self::value).collect(),
            Tree::Map(pairs) => {
                pairs.iter().map(|(key, node)| (key.text.clone(), node.value())).collect()
            }
            Tree::Broken => Value::Null,
        }
    }

    /// As JSON, with numbers as they are spelled.
    fn spelled(&self) -> Value {
        match &self.tree {
            Tree::Scalar(scalar) => {
                let value = scalar.value();
                let is_respelled =
                    value.as_number().is_some_and(|it| it.to_string() != scalar.text);
                if is_respelled { scalar.text.clone().into() } else { value }
            }
            Tree::List(nodes) => nodes.iter().map(Self::spelled).collect(),
            Tree::Map(pairs) => {
                pairs.iter().map(|(key, node)| (key.text.clone(), node.spelled())).collect()
            }
            Tree::Broken => Value::Null,
        }
    }

    /// For "expected a list, found …".
    pub(super) fn kind_name(&self) -> &'static str {
        match &self.tree {
            Tree::Scalar(scalar) => value_name(&scalar.value()),
            Tree::List(_) => "a list",
            Tree::Map(_) => "a mapping",
            Tree::Broken => "something broken",
        }
    }
}

pub(super) fn value_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a mapping",
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use serde_json::json;

    use super::*;

    fn read(text: &str) -> (Option<Value>, Vec<String>) {
        let mut problems = Problems::default();
        let node = parse(text, 0, &mut problems);
        let shown = problems
            .finish(&[("f", text)])
            .into_iter()
            .map(|it| format!("{}:{} {}", it.at.line, it.at.column, it.message));
        (node.map(|node| node.value()), shown.collect())
    }

    #[test]
    fn scalars_mean_what_yaml_1_2_says() {
        let text = "[1, -2, 0x1F, 0o17, 1.5, 1e3, true, no, ~, null, '1', 4.10.1, 1-2, .inf, \
                    18446744073709551615]";
        let expected = json!([
            1,
            -2,
            31,
            15,
            1.5,
            1000.0,
            true,
            "no",
            null,
            null,
            "1",
            "4.10.1",
            "1-2",
            ".inf",
            18_446_744_073_709_551_615_u64
        ]);
        assert_eq!(read(text), (Some(expected), vec![]));
        assert_eq!(read("!!str 5").0, Some(json!("5")));
    }

    #[test]
    fn a_foreign_file_keeps_the_spelling_of_its_numbers() {
        let text = "a: 4.10\nb: 001\nc: 3\nd: 3.2\n1: {e: '7'}\n";
        let expected = json!({"a": "4.10", "b": "001", "c": 3, "d": 3.2, "1": {"e": "7"}});
        assert_eq!(foreign(text), Ok(expected));
        assert_eq!(foreign("").unwrap_err(), "line 1: the file is empty");
        assert!(foreign("a: [").unwrap_err().starts_with("line 1: not valid YAML"));
    }

    #[test]
    fn aliases_and_merges_are_expanded() {
        let (value, problems) = read("a: &x {p: 1, q: 2}\nb: {<<: *x, q: 3}\nc: *x\n");
        assert_eq!(problems, Vec::<String>::new());
        let (a, b) = (json!({"p": 1, "q": 2}), json!({"p": 1, "q": 3}));
        assert_eq!(value, Some(json!({"a": a, "b": b, "c": a})));
    }

    #[test]
    fn every_fault_of_the_text_has_a_place() {
        for (text, expected) in [
            ("a: [", "1:4 not valid YAML: unclosed bracket '['"),
            ("a: 1\nb: 2\na: 3\n", "3:1 `a` is given twice"),
            ("a: &x [*x]", "1:8 this repeats something that contains it"),
            ("--- a\n--- b\n", "2:5 a second document begins here"),
            ("", "1:1 the file is empty"),
            ("# only a comment\n", "1:1 the file is empty"),
            ("a: {{ x }}\n", "1:4 a mapping whose key is not a word"),
            ("a: !thing 1\n", "1:11 tags other than `!!str` mean nothing here"),
        ] {
            assert_eq!(read(text).1, [expected], "{text}");
        }
    }

    #[test]
    fn a_bomb_of_aliases_is_refused_once() {
        let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
        for level in 1..12 {
            let list = vec![format!("*a{}", level - 1); 10].join(", ");
            writeln!(text, "a{level}: &a{level} [{list}]").unwrap();
        }
        let (_, problems) = read(&text);
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].contains("expand"), "{problems:?}");
    }

    #[test]
    fn c7_a_long_text_that_is_repeated_and_keys_that_are_given_twice_are_refused_at_once() {
        let long = format!("a: &a {}\nb: [{}]\n", "x".repeat(1 << 20), "*a, ".repeat(20_000));
        let (_, problems) = read(&long);
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].contains("expand"), "{problems:?}");
        let nested = format!("a: {}x{}\n", "&b [".repeat(90), "]".repeat(90));
        let nested = nested.replace('x', &"y".repeat(1 << 20));
        assert!(read(&nested).1[0].contains("expand"));
        let mut twice = String::new();
        for number in 0..100_000 {
            writeln!(twice, "k{number}: 1\nk{number}: 2").unwrap();
        }
        assert!(read(&twice).1[0].contains("is given twice"));
    }

    #[test]
    fn c7_every_way_to_nest_is_refused_beyond_a_depth() {
        let many = 20_000;
        let lines = |of: &str| (0..1000).map(|it| " ".repeat(it) + of + "\n").collect::<String>();
        let chained = |levels: usize| {
            let (open, close) = ("[".repeat(levels), "]".repeat(levels));
            let of = |it: usize| format!("a{it}: &a{it} {open}*a{}{close}\n", it.saturating_sub(1));
            (1..300).map(of).fold("a0: &a0 x\n".to_owned(), |all, line| all + &line)
        };
        for text in [
            "[".repeat(100_000),
            "{".repeat(many),
            "- ".repeat(many),
            "? ".repeat(many),
            ": ".repeat(many),
            "{a: ".repeat(many),
            format!("[{}", ": ".repeat(many)),
            format!("{{{}", ": ".repeat(many)),
            format!("[{}", "? ".repeat(many)),
            format!("{{{}", "? ".repeat(many)),
            format!("[{}", "a: ".repeat(many)),
            format!("[{}", "\"a\": ".repeat(many)),
            format!("[{}", "&b : ".repeat(many)),
            format!("[{}", "!!str : ".repeat(many)),
            format!("a: {}x", "!!str ".repeat(many)),
            lines("a:"),
            lines("-"),
            lines("?"),
            chained(1),
            chained(90),
        ] {
            let (value, problems) = read(&text);
            let begins: String = text.chars().take(40).collect();
            assert_eq!((value, problems.len()), (None, 1), "{begins} {problems:?}");
        }
        let deep = |levels| format!("{}x{}", "[".repeat(levels), "]".repeat(levels));
        assert_eq!(read(&deep(NESTING_MAX)).1, Vec::<String>::new());
        assert_eq!(read(&deep(NESTING_MAX + 1)).1.len(), 1);
        let twice = format!("- &a {}\n- {}*a{}\n", deep(49), "[".repeat(50), "]".repeat(50));
        assert_eq!(read(&twice).1, Vec::<String>::new());
        let more = twice.replace("*a", "[*a]");
        assert!(read(&more).1[0].contains("nested deeper than 100 levels"), "{:?}", read(&more).1);
    }
}
