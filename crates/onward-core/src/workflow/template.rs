//! Text with holes and expressions: evaluated, and never anything but a function of its arguments.
//!
//! A file that a template reads is a fact from outside: when its text is not among the given ones,
//! the answer is [`RenderError::Need`], and the caller renders again with the text. Invariant: the
//! same template, names and texts give the same answer everywhere.

use std::{
    collections::{BTreeMap, BTreeSet},
    error::Error as _,
    sync::{Arc, LazyLock},
};

use minijinja::{
    Environment, Error, ErrorKind, Output, State, UndefinedBehavior,
    value::{Kwargs, Object, ObjectRepr, Serde, Value},
};
use serde_json::Value as Json;

use super::{
    bounded,
    model::Template,
    refs::{lone_expression, syntax},
    shell::{self, Script},
};

/// How values become text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quoting {
    Plain,
    /// Every `{{ value }}` is one shell word, unless it went through `| raw`. How a command is
    /// remembered and compared.
    Shell,
    /// Every `{{ value }}` is marked, unless it went through `| raw`. How a command is run: see
    /// [`script`].
    Marked,
}

/// The names a template can use: `inputs`, `run`, `steps`, loop indexes, item names.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Context {
    pub names: BTreeMap<String, Json>,
}

/// Texts of files asked for so far; `None` = the file does not exist.
pub type FileTexts = BTreeMap<String, Option<String>>;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RenderError {
    /// Paths whose text is wanted; come again with them.
    #[error("the text of {0:?} is wanted")]
    Need(BTreeSet<String>),
    #[error("{message}")]
    Failed { message: String },
}

/// Steps of evaluation a template may take; a loop over a hundred thousand items fits.
const FUEL: u64 = 5_000_000;

/// Under this name the functions that read find the texts. No template can spell it: the checker
/// refuses names it does not know.
const FILES: &str = "onward_file_texts";

/// Functions a template can call.
pub(super) const FUNCTIONS: [&str; 6] =
    ["read_json", "read_text", "lines", "range", "dict", "namespace"];

/// Filters a template can use.
pub(super) const FILTERS: [&str; 47] = [
    "raw",
    "sh_quote",
    "tojson",
    "lower",
    "upper",
    "title",
    "capitalize",
    "replace",
    "length",
    "count",
    "dictsort",
    "items",
    "reverse",
    "trim",
    "join",
    "split",
    "lines",
    "default",
    "d",
    "round",
    "abs",
    "int",
    "float",
    "attr",
    "first",
    "last",
    "min",
    "max",
    "sort",
    "list",
    "string",
    "bool",
    "batch",
    "slice",
    "sum",
    "indent",
    "select",
    "reject",
    "selectattr",
    "rejectattr",
    "map",
    "groupby",
    "unique",
    "chain",
    "zip",
    "pprint",
    "format",
];

/// Tests a template can use after `is`.
pub(super) const TESTS: [&str; 36] = [
    "defined",
    "undefined",
    "none",
    "boolean",
    "odd",
    "even",
    "divisibleby",
    "number",
    "integer",
    "int",
    "float",
    "string",
    "sequence",
    "iterable",
    "mapping",
    "startingwith",
    "endingwith",
    "lower",
    "upper",
    "sameas",
    "eq",
    "equalto",
    "ne",
    "lt",
    "lessthan",
    "le",
    "gt",
    "greaterthan",
    "ge",
    "in",
    "true",
    "false",
    "==",
    "!=",
    "<",
    ">",
];

static PLAIN: LazyLock<Environment<'static>> = LazyLock::new(|| environment(Quoting::Plain));
static SHELL: LazyLock<Environment<'static>> = LazyLock::new(|| environment(Quoting::Shell));
static MARKED: LazyLock<Environment<'static>> = LazyLock::new(|| environment(Quoting::Marked));

fn environment(quoting: Quoting) -> Environment<'static> {
    let mut env = Environment::new();
    env.set_undefined_behavior(UndefinedBehavior::Strict);
    env.set_fuel(Some(FUEL));
    env.set_debug(false);
    env.set_syntax(syntax().clone());
    // These mark text as safe for HTML, which says nothing about a shell.
    for name in ["escape", "e", "safe"] {
        env.remove_filter(name);
    }
    env.remove_global("debug");
    env.add_filter("raw", |value: &Value| Value::from_object(Raw(text_of(value))));
    match quoting {
        Quoting::Plain | Quoting::Shell => env.add_filter("sh_quote", |value: &Value| {
            Value::from_object(Raw(quoted(&text_of(value))))
        }),
        // A variable needs no quotes.
        Quoting::Marked => env.add_filter("sh_quote", text_of),
    }
    bounded::add_filters(&mut env);
    env.add_filter("tojson", to_json);
    env.add_function("read_text", |state: &State, path: &str| file_text(state, path));
    env.add_function("read_json", read_json);
    env.add_function("lines", lines);
    match quoting {
        Quoting::Plain => set_formatter(&mut env, |text| text),
        Quoting::Shell => set_formatter(&mut env, |text| quoted(&text)),
        Quoting::Marked => set_formatter(&mut env, |text| shell::marked(&text)),
    }
    env
}

/// How a value becomes text; raw text stays as it is.
fn set_formatter(env: &mut Environment<'static>, as_text: fn(String) -> String) {
    env.set_formatter(move |out, state, value| {
        if let Some(Raw(text)) = value.downcast_object_ref() {
            return write(out, state, text);
        }
        bounded::check_weight(value)?;
        write(out, state, &as_text(text_of(value)))
    });
}

fn write(out: &mut Output, state: &State, text: &str) -> Result<(), Error> {
    bounded::charge(state, text.len() as u64)?;
    out.write_str(text).map_err(Error::from)
}

/// Text that is not quoted again.
#[derive(Debug)]
pub(super) struct Raw(pub(super) String);

impl Object for Raw {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn render(self: &Arc<Self>, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Text as it is; anything else as JSON.
fn text_of(value: &Value) -> String {
    if let Some(text) = value.as_str() {
        text.to_owned()
    } else if let Some(Raw(text)) = value.downcast_object_ref() {
        text.clone()
    } else if value.is_undefined() {
        // Only an `if` without `else` comes here; every other undefined value is an error.
        String::new()
    } else {
        serde_json::to_string(value).unwrap_or_else(|_| value.to_string())
    }
}

/// Words that change the syntax of a command even though they are only letters.
const SHELL_WORDS: [&str; 16] = [
    "if", "then", "else", "elif", "fi", "do", "done", "case", "esac", "while", "until", "for",
    "in", "function", "select", "time",
];

/// One word for a POSIX shell.
pub fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_@%+:,./-".contains(c);
    if !text.is_empty() && text.chars().all(plain) && !SHELL_WORDS.contains(&text) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[expect(clippy::needless_pass_by_value, reason = "how the engine hands over arguments")]
fn to_json(value: &Value, indent: Option<Value>, kwargs: Kwargs) -> Result<String, Error> {
    bounded::check_weight(value)?;
    let named: Option<Value> = kwargs.get("indent")?;
    kwargs.assert_all_used()?;
    let pretty = indent.or(named).is_some_and(|indent| indent.is_true());
    let json =
        if pretty { serde_json::to_string_pretty(value) } else { serde_json::to_string(value) };
    json.map_err(|error| Error::new(ErrorKind::BadSerialization, error.to_string()))
}

#[derive(Debug)]
struct Files(FileTexts);

impl Object for Files {}

/// The text of a file is not known yet.
#[derive(Debug, thiserror::Error)]
#[error("the text of `{0}` is wanted")]
struct Wanted(String);

fn file_text(state: &State, path: &str) -> Result<String, Error> {
    let files = state.lookup(FILES);
    let known = files.as_ref().and_then(|files| files.downcast_object_ref::<Files>());
    match known.and_then(|Files(texts)| texts.get(path)) {
        Some(Some(text)) => Ok(text.clone()),
        Some(None) => {
            let why = format!("file `{path}` does not exist, or is none that can be read");
            Err(Error::new(ErrorKind::InvalidOperation, why))
        }
        None => {
            let wanted = Wanted(path.to_owned());
            Err(Error::new(ErrorKind::InvalidOperation, wanted.to_string()).with_source(wanted))
        }
    }
}

fn read_json(state: &State, path: &str) -> Result<Value, Error> {
    let text = file_text(state, path)?;
    let json: Json = serde_json::from_str(&text).map_err(|error| {
        let message = format!("file `{path}` is not JSON: {error}");
        Error::new(ErrorKind::InvalidOperation, message)
    })?;
    Ok(Value::from(Serde(json)))
}

/// Lines that are not blank, without their line ends.
fn lines(state: &State, path: &str) -> Result<Vec<String>, Error> {
    let text = file_text(state, path)?;
    Ok(text.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect())
}

/// Fills the holes of a text.
pub fn render(
    t: &Template,
    cx: &Context,
    files: &FileTexts,
    q: Quoting,
) -> Result<String, RenderError> {
    if t.is_literal() {
        return Ok(t.source.clone());
    }
    let env: &Environment = match q {
        Quoting::Plain => &PLAIN,
        Quoting::Shell => &SHELL,
        Quoting::Marked => &MARKED,
    };
    let rendered = bounded::render(env, &t.source, values(cx, files));
    rendered.map_err(|error| failure(&error))
}

/// A command whose values are variables; `first` is the number of the first one.
pub fn script(
    t: &Template,
    cx: &Context,
    files: &FileTexts,
    first: usize,
) -> Result<Script, RenderError> {
    let rendered = render(t, cx, files, Quoting::Marked)?;
    shell::with_variables(&rendered, first).map_err(|message| RenderError::Failed { message })
}

/// Whether a condition holds: `{{ expr }}` or the bare expression.
pub fn condition(t: &Template, cx: &Context, files: &FileTexts) -> Result<bool, RenderError> {
    let expression =
        if t.is_literal() { Some(t.source.as_str()) } else { lone_expression(&t.source) };
    let Some(expression) = expression else {
        let message = format!("`{}` is not one expression", t.source);
        return Err(RenderError::Failed { message });
    };
    Ok(evaluate(expression, cx, files)?.is_true())
}

/// `{{ expr }}` alone keeps its type; any other text is rendered.
pub fn value(t: &Template, cx: &Context, files: &FileTexts) -> Result<Json, RenderError> {
    let Some(expression) = lone_expression(&t.source) else {
        return render(t, cx, files, Quoting::Plain).map(Json::String);
    };
    let value = evaluate(expression, cx, files)?;
    if let Some(Raw(text)) = value.downcast_object_ref() {
        return Ok(Json::String(text.clone()));
    }
    bounded::check_weight(&value).map_err(|error| failure(&error))?;
    serde_json::to_value(&value).map_err(|error| RenderError::Failed { message: error.to_string() })
}

fn evaluate(expression: &str, cx: &Context, files: &FileTexts) -> Result<Value, RenderError> {
    let env: &Environment = &PLAIN;
    let value = bounded::evaluate(env, expression, values(cx, files));
    let value = value.map_err(|error| failure(&error))?;
    if value.is_undefined() {
        let message = format!("`{}` is undefined", expression.trim());
        return Err(RenderError::Failed { message });
    }
    Ok(value)
}

fn values(cx: &Context, files: &FileTexts) -> Value {
    let names = cx.names.iter().map(|(name, json)| (name.clone(), Value::from(Serde(json))));
    let mut values: BTreeMap<String, Value> = names.collect();
    values.insert(bounded::MADE.to_owned(), bounded::made());
    if !files.is_empty() {
        values.insert(FILES.to_owned(), Value::from_object(Files(files.clone())));
    }
    Value::from(values)
}

fn failure(error: &Error) -> RenderError {
    let mut source = error.source();
    while let Some(cause) = source {
        if let Some(Wanted(path)) = cause.downcast_ref() {
            return RenderError::Need(BTreeSet::from([path.clone()]));
        }
        source = cause.source();
    }
    RenderError::Failed { message: message(error) }
}

/// In words, without the engine's name for the template.
pub(super) fn message(error: &Error) -> String {
    let kind = error.kind();
    match (kind, error.detail()) {
        (ErrorKind::InvalidOperation | ErrorKind::SyntaxError, Some(detail)) => detail.to_owned(),
        (_, Some(detail)) => format!("{kind}: {detail}"),
        (_, None) => kind.to_string(),
    }
}

#[cfg(test)]
mod tests;
