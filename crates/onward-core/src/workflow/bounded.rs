//! Templates that cannot take the machine: what they make is weighed while they make it.
//!
//! A template is a few lines that can ask for more memory than there is: `ns.x ~ ns.x` in a loop,
//! `indent(10000000000)`. Its compiled instructions are changed so that each one which makes a
//! value or text goes through a filter of ours. Invariant: no single value weighs more than
//! [`VALUE_BYTES_MAX`], all values and text that are made weigh no more than [`MADE_BYTES_MAX`]
//! together, and an expression that would take a deep stack is refused before it is read.

use std::sync::atomic::{AtomicU64, Ordering};

use minijinja::{
    AutoEscape, Environment, Error, ErrorKind, State,
    machinery::{
        CodeGenerator, Instruction, Instructions, Token, eval, make_string_output, parse,
        parse_expr, tokenize,
    },
    value::{Object, Rest, Value, ValueKind, ValueOrKwargs},
};

use super::{refs::syntax, template::Raw};

/// What one value may weigh.
const VALUE_BYTES_MAX: u64 = 32 << 20;
/// What all values and all text of one evaluation may weigh.
const MADE_BYTES_MAX: u64 = 256 << 20;
/// How deep lists and mappings may lie in each other.
const NESTING_MAX: u32 = 100;
/// Operators, dots, filters and the like of one expression: each may be a step down the stack.
const OPERATORS_MAX: usize = 300;
/// Operators that are words.
const OPERATORS: [&str; 7] = ["not", "and", "or", "if", "else", "is", "in"];
/// `if`, `elif` and `for` that lie in each other.
const BLOCKS_MAX: usize = 100;
/// Lines of a template, and characters of a line: the lexer counts both in two bytes.
const LINES_MAX: usize = 60_000;
const LINE_BYTES_MAX: usize = 60_000;
/// How much a value weighs besides its text.
const ITEM_BYTES: u64 = 24;

/// Under this name the filters find what was made so far. One who hides it is told the same as one
/// who has used it up.
pub(super) const MADE: &str = "onward_made";
const WEIGH: &str = "onward_weigh";
const CONCAT: &str = "onward_concat";

/// Filters that could make much of little, and what stands in for them.
const GUARDED: [(&str, &str); 9] = [
    ("batch", "onward_batch"),
    ("format", "onward_format"),
    ("indent", "onward_indent"),
    ("join", "onward_join"),
    ("map", "onward_map"),
    ("pprint", "onward_pprint"),
    ("replace", "onward_replace"),
    ("slice", "onward_slice"),
    ("string", "onward_string"),
];

/// What one evaluation has made so far, in bytes.
#[derive(Debug, Default)]
struct Made(AtomicU64);

impl Object for Made {}

pub(super) fn made() -> Value {
    Value::from_object(Made::default())
}

/// Fills the holes of a text.
pub(super) fn render(env: &Environment<'_>, source: &str, root: Value) -> Result<String, Error> {
    check_depth(source, false).map_err(|(_, message)| too_much(message))?;
    let statement = parse(source, "", syntax().clone())?;
    let mut generator = CodeGenerator::new("", source);
    generator.compile_stmt(&statement);
    let (mut instructions, blocks) = generator.finish();
    bound(&mut instructions);
    let mut text = String::new();
    eval(env, &instructions, root, &blocks, &mut make_string_output(&mut text), AutoEscape::None)?;
    Ok(text)
}

/// What an expression is worth.
pub(super) fn evaluate(env: &Environment<'_>, source: &str, root: Value) -> Result<Value, Error> {
    check_depth(source, true).map_err(|(_, message)| too_much(message))?;
    let expression = parse_expr(source)?;
    let mut generator = CodeGenerator::new("", source);
    generator.compile_expr(&expression);
    let (mut instructions, blocks) = generator.finish();
    bound(&mut instructions);
    let mut none = String::new();
    let mut out = make_string_output(&mut none);
    let (value, _) = eval(env, &instructions, root, &blocks, &mut out, AutoEscape::None)?;
    Ok(value.unwrap_or(Value::UNDEFINED))
}

/// Lets every instruction that makes something be followed by one that weighs it. The rest keeps
/// its place, so that jumps lead where they led: the changed ones jump behind the end and back.
fn bound(instructions: &mut Instructions<'_>) {
    // What is added stands behind what is there: the first one is where that ends.
    let count = instructions.add(Instruction::Jump(0));
    let mut end = count;
    for index in 0..count {
        let Some(found) = instructions.get(index) else { continue };
        let Some(instead) = bounded(found) else { continue };
        let first = instead.into_iter().map(|it| instructions.add(it)).min();
        end = instructions.add(Instruction::Jump(index + 1));
        set(instructions, index, Instruction::Jump(first.unwrap_or(end)));
    }
    set(instructions, count, Instruction::Jump(end + 1));
}

fn set<'s>(instructions: &mut Instructions<'s>, index: u32, to: Instruction<'s>) {
    if let Some(place) = instructions.get_mut(index) {
        *place = to;
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "what makes nothing is left as it is")]
fn bounded<'s>(found: &Instruction<'s>) -> Option<Vec<Instruction<'s>>> {
    /// Not remembered by the machine that runs it.
    const UNKNOWN: u8 = !0;
    let weigh = || Instruction::ApplyFilter(WEIGH, Some(1), UNKNOWN);
    Some(match found {
        Instruction::EmitRaw(text) => {
            let text = Value::from_object(Raw((*text).to_owned()));
            vec![Instruction::LoadConst(text), Instruction::Emit]
        }
        Instruction::StringConcat => vec![Instruction::ApplyFilter(CONCAT, Some(2), UNKNOWN)],
        Instruction::Add
        | Instruction::Mul
        | Instruction::BuildMap(_)
        | Instruction::BuildList(_)
        | Instruction::BuildTuple(_)
        | Instruction::CallFunction(..)
        | Instruction::CallMethod(..)
        | Instruction::CallObject(_) => vec![found.clone(), weigh()],
        Instruction::ApplyFilter(name, count, id) => {
            let guarded = GUARDED.iter().find(|it| it.0 == *name);
            let filter = match guarded {
                Some((_, guard)) => Instruction::ApplyFilter(guard, *count, UNKNOWN),
                None => Instruction::ApplyFilter(name, *count, *id),
            };
            vec![filter, weigh()]
        }
        _ => return None,
    })
}

/// Adds our filters to an environment.
pub(super) fn add_filters(env: &mut Environment<'static>) {
    env.add_filter(WEIGH, |state: &State, value: Value| weigh(state, value));
    env.add_filter(CONCAT, concat);
    for (name, guard) in GUARDED {
        let guarded = move |state: &mut State, args: Rest<ValueOrKwargs>| {
            let mut args = args.into_values();
            check_arguments(name, &mut args)?;
            state.apply_filter(name, &args)
        };
        env.add_filter(guard, guarded);
    }
}

fn too_much(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, message.into())
}

/// Counts what is made. Text that is written out comes here too.
pub(super) fn charge(state: &State, bytes: u64) -> Result<(), Error> {
    let found = state.lookup(MADE);
    let made = found.as_ref().and_then(|made| made.downcast_object_ref::<Made>());
    let before = made.map_or(MADE_BYTES_MAX, |made| made.0.fetch_add(bytes, Ordering::Relaxed));
    if before.saturating_add(bytes) > MADE_BYTES_MAX {
        let mib = MADE_BYTES_MAX >> 20;
        return Err(too_much(format!("this template makes more than {mib} MiB")));
    }
    Ok(())
}

/// Gives a value on when it is not too much.
fn weigh(state: &State, value: Value) -> Result<Value, Error> {
    check_weight(&value)?;
    let own = value
        .as_str()
        .map_or_else(|| value.len().unwrap_or(0) as u64 * ITEM_BYTES, |text| text.len() as u64);
    charge(state, own + ITEM_BYTES)?;
    Ok(value)
}

fn concat(state: &State, left: &Value, right: &Value) -> Result<Value, Error> {
    if left.is_undefined() || right.is_undefined() {
        return Err(ErrorKind::UndefinedError.into());
    }
    check_weight(left)?;
    check_weight(right)?;
    weigh(state, Value::from(format!("{left}{right}")))
}

/// Whether a value can be written out: not too large, not too deep, not in itself.
pub(super) fn check_weight(value: &Value) -> Result<(), Error> {
    let mut left = VALUE_BYTES_MAX;
    weight(value, 0, &mut left)
}

fn weight(value: &Value, depth: u32, left: &mut u64) -> Result<(), Error> {
    if depth > NESTING_MAX {
        return Err(too_much(format!("a value is nested more than {NESTING_MAX} deep")));
    }
    let own = value.as_str().map_or(0, |text| text.len() as u64) + ITEM_BYTES;
    let Some(rest) = left.checked_sub(own) else {
        let mib = VALUE_BYTES_MAX >> 20;
        return Err(too_much(format!("a value of this template is larger than {mib} MiB")));
    };
    *left = rest;
    let kind = value.kind();
    if matches!(kind, ValueKind::Seq | ValueKind::Iterable | ValueKind::Map) {
        for item in value.try_iter()? {
            weight(&item, depth + 1, left)?;
            if kind == ValueKind::Map {
                weight(&value.get_item(&item)?, depth + 1, left)?;
            }
        }
    }
    Ok(())
}

/// Refuses arguments that ask for much more than they hold.
fn check_arguments(filter: &str, args: &mut [Value]) -> Result<(), Error> {
    let Some((value, rest)) = args.split_first_mut() else { return Ok(()) };
    let number_max = numbers(rest).max().unwrap_or(0);
    let length = value.as_str().map_or_else(|| value.len().unwrap_or(0), str::len) as u64;
    let text_at = |index: usize| rest.get(index).and_then(Value::as_str).unwrap_or_default();
    let asked = match filter {
        "indent" => {
            let lines = value.as_str().map_or(1, |text| text.lines().count() as u64 + 1);
            number_max.saturating_mul(lines)
        }
        "batch" | "slice" => number_max.saturating_mul(ITEM_BYTES),
        "join" => length.saturating_mul(text_at(0).len() as u64),
        "replace" => {
            let count = value.as_str().map_or(0, |text| text.matches(text_at(0)).count() as u64);
            count.saturating_mul(text_at(1).len() as u64)
        }
        "format" => width_in(value.as_str().unwrap_or_default()).max(number_max),
        "map" => {
            let name = rest.first().and_then(Value::as_str).unwrap_or_default();
            let guarded = GUARDED.iter().find(|it| it.0 == name).map(|it| it.1);
            if let Some((first, guarded)) = rest.first_mut().zip(guarded) {
                *first = Value::from(guarded);
            }
            0
        }
        _ => 0,
    };
    if matches!(filter, "string" | "pprint" | "join" | "format") {
        check_weight(value)?;
    }
    if asked > VALUE_BYTES_MAX {
        let mib = VALUE_BYTES_MAX >> 20;
        return Err(too_much(format!("`{filter}` would make more than {mib} MiB")));
    }
    Ok(())
}

/// Whole numbers among arguments, those with names too.
fn numbers(args: &[Value]) -> impl Iterator<Item = u64> {
    let named = args.iter().filter(|it| it.is_kwargs()).flat_map(|kwargs| {
        let keys = kwargs.try_iter().into_iter().flatten();
        keys.filter_map(|key| kwargs.get_item(&key).ok())
    });
    args.iter().cloned().chain(named).filter_map(|it| it.as_usize()).map(|it| it as u64)
}

/// The largest number in a format, such as a width.
fn width_in(format: &str) -> u64 {
    let digits = format.split(|c: char| !c.is_ascii_digit()).filter(|it| !it.is_empty());
    digits.map(|it| it.parse().unwrap_or(u64::MAX)).max().unwrap_or(0)
}

/// Refuses what would take a deep stack to read: where, and why.
pub(super) fn check_depth(source: &str, is_expression: bool) -> Result<(), (usize, String)> {
    let has_holes = is_expression || ["{{", "{%", "{#"].iter().any(|it| source.contains(it));
    let is_wide = source.lines().any(|line| line.len() > LINE_BYTES_MAX);
    if has_holes && (is_wide || source.lines().count() > LINES_MAX) {
        let message = format!(
            "a template of more than {LINES_MAX} lines, or {LINE_BYTES_MAX} characters in one"
        );
        return Err((0, message));
    }
    let (mut operators, mut blocks, mut expects_word) = (0, Vec::new(), false);
    for token in tokenize(source, is_expression, syntax().clone()) {
        // The parser says what is wrong with it.
        let Ok((token, span)) = token else { return Ok(()) };
        match &token {
            Token::VariableStart | Token::BlockStart => operators = 0,
            Token::Ident(word) if expects_word => block(&mut blocks, word),
            Token::Ident(word) if OPERATORS.contains(word) => operators += 1,
            Token::Ident(_)
            | Token::TemplateData(_)
            | Token::VariableEnd
            | Token::BlockEnd
            | Token::Str(_)
            | Token::String(_)
            | Token::Int(_)
            | Token::Int128(_)
            | Token::Float(_)
            | Token::Comma
            | Token::Colon
            | Token::Assign
            | Token::BracketClose
            | Token::ParenClose
            | Token::BraceOpen
            | Token::BraceClose => {}
            Token::Plus
            | Token::Minus
            | Token::Mul
            | Token::Div
            | Token::FloorDiv
            | Token::Pow
            | Token::Mod
            | Token::Dot
            | Token::Tilde
            | Token::Pipe
            | Token::Eq
            | Token::Ne
            | Token::Gt
            | Token::Gte
            | Token::Lt
            | Token::Lte
            | Token::BracketOpen
            | Token::ParenOpen => operators += 1,
        }
        expects_word = matches!(token, Token::BlockStart);
        let at = span.start_offset as usize;
        if operators > OPERATORS_MAX {
            return Err((at, format!("an expression of more than {OPERATORS_MAX} operators")));
        }
        if blocks.iter().sum::<usize>() > BLOCKS_MAX {
            return Err((at, format!("blocks more than {BLOCKS_MAX} deep")));
        }
    }
    Ok(())
}

/// Each `elif` lies in the one before it, and all are over with their `endif`.
fn block(blocks: &mut Vec<usize>, word: &str) {
    match word {
        "if" | "for" | "with" | "filter" | "autoescape" => blocks.push(1),
        "elif" => {
            if let Some(last) = blocks.last_mut() {
                *last += 1;
            }
        }
        "endif" | "endfor" | "endwith" | "endfilter" | "endautoescape" => drop(blocks.pop()),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use crate::workflow::{
        model::{Place, Template},
        template::{Context, FileTexts, Quoting, RenderError, render, value},
    };

    fn refusal(source: &str) -> String {
        let template = Template::new(source.to_owned(), Place::default());
        let (cx, files) = (Context::default(), FileTexts::new());
        let rendered = render(&template, &cx, &files, Quoting::Plain).map(|it| it.len());
        let valued = value(&template, &cx, &files).map(|it| it.to_string().len());
        let (Err(RenderError::Failed { message }), Err(_)) = (rendered, valued) else {
            panic!("{source} is not refused");
        };
        message
    }

    #[test]
    fn c7_templates_that_grow_are_refused() {
        let doubled = "{% set a = a ~ a %}".repeat(60);
        let lists = "{% set a = [a, a] %}".repeat(60);
        let maps = "{% set a = {'x': a, 'y': a} %}".repeat(60);
        let captured = "{% set a %}{{ a }}{{ a }}{% endset %}".repeat(60);
        for source in [
            "{% set ns = namespace(x='abcdefgh') %}{% for i in range(99) %}\
             {% set ns.x = ns.x ~ ns.x %}{% endfor %}{{ ns.x }}",
            "{% set ns = namespace(x=[1]) %}{% for i in range(99) %}\
             {% set ns.x = ns.x + ns.x %}{% endfor %}{{ ns.x }}",
            "{% set ns = namespace(x=1) %}{% for i in range(999) %}\
             {% set ns.x = [ns.x] %}{% endfor %}{{ ns.x }}",
            "{% set ns = namespace() %}{% set ns.x = ns %}{{ ns }}",
            &format!(
                "{{% for i in range(99999) %}}{{% for j in range(99999) %}}{}\
                 {{% endfor %}}{{% endfor %}}",
                "a".repeat(200)
            ),
            "{{ 'a\nb' | indent(10000000000) }}",
            "{{ 'a\nb' | indent(width=10000000000) }}",
            "{{ '%999999999d' | format(1) }}",
            "{{ '%*d' | format(999999999, 1) }}",
            "{{ [1] | batch(9999999999, 'x') }}",
            "{{ [1] | slice(9999999999) }}",
            "{{ ['a\nb'] | map('indent', 10000000000) | join }}",
            "{{ 'x' * 99999999 }}",
            "{{ [1] * 99999999 }}",
            "{{ ('x' * 9999) | replace('', 'y' * 9999) }}",
            &format!("{{% set a = 'abcdefgh' %}}{doubled}{{{{ a }}}}"),
            &format!("{{% set a = 1 %}}{lists}{{{{ a }}}}"),
            &format!("{{% set a = 1 %}}{maps}{{{{ a }}}}"),
            &format!("{{% set a = 'abcdefgh' %}}{captured}{{{{ a }}}}"),
        ] {
            let message = refusal(source);
            let is_clear = ["MiB", "deep", "fuel"].iter().any(|it| message.contains(it));
            assert!(is_clear, "{source}: {message}");
        }
    }

    #[test]
    fn c7_an_expression_that_would_take_a_deep_stack_is_refused() {
        for source in [
            format!("{{{{ {} true }}}}", "not ".repeat(30_000)),
            format!("{{{{ {}1 }}}}", "-".repeat(30_000)),
            format!("{{{{ {}1 }}}}", "1 + ".repeat(30_000)),
            format!("{{{{ a{} }}}}", ".b".repeat(30_000)),
            format!("{{{{ a{} }}}}", "[0]".repeat(30_000)),
            format!("{{{{ a{} }}}}", " | upper".repeat(30_000)),
            format!("{{{{ {}1 }}}}", "1 if true else ".repeat(30_000)),
            format!("{{% if a %}}{}{{% endif %}}", "{% elif b %}".repeat(30_000)),
            "{% if a %}".repeat(30_000),
            // The lexer of templates counts columns in two bytes.
            format!("{}{{{{ a \0 }}}}", "x".repeat(65_526)),
            format!("{}{{{{ a }}}}", "\n".repeat(70_000)),
        ] {
            let message = refusal(&source);
            assert!(message.contains("more than"), "{message}");
        }
    }

    #[test]
    fn what_people_write_stays_as_it_was() {
        let source = "{% set ns = namespace(n=0, all=[]) %}{% for i in range(2000) %}\
            {% set ns.n = ns.n + i %}{% set ns.all = ns.all + [i] %}{% endfor %}\
            {{ ns.n }} {{ ns.all | length }} {{ ['a', 'b'] | join(', ') ~ '!' }} \
            {{ ['x'] | map('replace', 'x', 'y') | first }} {{ '%05.1f' | format(2.5) }}\
            {% if ns.n > 3 %} big{% elif ns.n %} small{% endif %}";
        let template = Template::new(source.to_owned(), Place::default());
        let text = render(&template, &Context::default(), &FileTexts::new(), Quoting::Plain);
        assert_eq!(text.unwrap(), "1999000 2000 a, b! y 002.5 big");
    }
}
