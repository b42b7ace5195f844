//! What templates answer.

use serde_json::json;

use super::*;
use crate::workflow::model::Place;

fn template(source: &str) -> Template {
    Template::new(source.into(), Place::default())
}

fn names(names: Json) -> Context {
    Context { names: serde_json::from_value(names).unwrap() }
}

fn plain(source: &str, cx: Json) -> Result<String, RenderError> {
    render(&template(source), &names(cx), &FileTexts::new(), Quoting::Plain)
}

fn shell(source: &str, cx: Json) -> String {
    render(&template(source), &names(cx), &FileTexts::new(), Quoting::Shell).unwrap()
}

fn worth(source: &str, cx: Json) -> Json {
    value(&template(source), &names(cx), &FileTexts::new()).unwrap()
}

fn failed(result: Result<impl std::fmt::Debug, RenderError>) -> String {
    match result {
        Err(RenderError::Failed { message }) => message,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_literal_is_given_back_byte_for_byte() {
    for text in ["", "a\n", "100 % { } }}", "'x' \"y\" $z\n\n"] {
        assert_eq!(plain(text, json!({})).unwrap(), text);
        assert_eq!(shell(text, json!({})), text);
    }
}

#[test]
fn text_is_written_as_it_is_and_everything_else_as_json() {
    let cx = json!({
        "s": "<a & b>", "n": 5, "f": 1.5, "t": true, "z": null, "l": [1, "x"], "m": {"k": "v"},
    });
    assert_eq!(
        plain("{{ s }} {{ n }} {{ f }} {{ t }} {{ z }} {{ l }} {{ m }}\n", cx).unwrap(),
        "<a & b> 5 1.5 true null [1,\"x\"] {\"k\":\"v\"}\n"
    );
}

#[test]
fn every_value_in_a_command_is_one_word() {
    let x = |value: &str| json!({"x": value});
    assert_eq!(shell("echo {{ x }}", x("plain-1.txt")), "echo plain-1.txt");
    assert_eq!(shell("echo {{ x }}", x("a b")), "echo 'a b'");
    assert_eq!(shell("echo {{ x }}", x("it's; $(rm -rf ~)")), r"echo 'it'\''s; $(rm -rf ~)'");
    assert_eq!(shell("echo {{ x }}", x("")), "echo ''");
    assert_eq!(shell("{{ x }}", x("while")), "'while'");
    assert_eq!(shell("{{ x }}", x("A=b")), "'A=b'");
    assert_eq!(shell("echo {{ x }}", json!({"x": ["a", 1]})), r#"echo '["a",1]'"#);
}

#[test]
fn only_raw_opts_out_of_quoting() {
    let cx = || json!({"x": "$(a) b"});
    assert_eq!(shell("{{ x | raw }}", cx()), "$(a) b");
    assert_eq!(shell("{{ x | sh_quote }}", cx()), "'$(a) b'");
    assert_eq!(shell("{{ x | tojson }}", cx()), "'\"$(a) b\"'");
    assert_eq!(shell("{{ x | raw | upper }}", cx()), "'$(A) B'");
    assert_eq!(shell("{{ 'p ' ~ (x | raw) }}", cx()), "'p $(a) b'");
    assert_eq!(shell("{% set y %}{{ x }}{% endset %}{{ y }}", cx()), r"''\''$(a) b'\'''");
    assert_eq!(shell("{% for c in [x] %}{{ c }}{% endfor %}", cx()), "'$(a) b'");
    for filter in ["safe", "escape", "e"] {
        let source = format!("{{{{ x | {filter} }}}}");
        assert!(
            render(&template(&source), &names(cx()), &FileTexts::new(), Quoting::Shell).is_err(),
            "{filter} would let a value through unquoted"
        );
    }
}

#[test]
fn an_expression_alone_keeps_its_type() {
    let cx = || json!({"n": 5, "big": 9_007_199_254_740_993_u64, "l": [{"k": 1}], "s": "x"});
    assert_eq!(worth("{{ n }}", cx()), json!(5));
    assert_eq!(worth("{{ n + 1 }}", cx()), json!(6));
    assert_eq!(worth("{{ big }}", cx()), json!(9_007_199_254_740_993_u64));
    assert_eq!(worth(" {{ l }}\n", cx()), json!([{"k": 1}]));
    assert_eq!(worth("{{ {'a': {'b': n}} }}", cx()), json!({"a": {"b": 5}}));
    assert_eq!(worth("{{ n }}{{ n }}", cx()), json!("55"));
    assert_eq!(worth("{{ '}}' }}", cx()), json!("}}"));
    assert_eq!(worth("n is {{ n }}", cx()), json!("n is 5"));
    assert_eq!(worth("5", cx()), json!("5"));
    assert_eq!(worth("{{ s | raw }}", cx()), json!("x"));
    assert_eq!(worth("{{ none }}", cx()), json!(null));
}

#[test]
fn a_condition_is_an_expression_with_or_without_braces() {
    let holds = |source: &str, cx: Json| {
        condition(&template(source), &names(cx), &FileTexts::new()).unwrap()
    };
    let cx = || json!({"steps": {"a": {"status": "skipped"}, "b": {"result": {"v": "OK"}}}});
    assert!(holds("{{ steps.b.result.v == 'OK' }}", cx()));
    assert!(holds("steps.b.result.v == 'OK'", cx()));
    assert!(!holds("{{ steps.a.result is defined }}", cx()));
    assert!(holds("true", cx()) && !holds("false", cx()));
    let text = condition(&template("{{ 1 }} or {{ 2 }}"), &names(cx()), &FileTexts::new());
    assert!(failed(text).contains("not one expression"));
}

#[test]
fn undefined_values_are_errors_and_not_empty_text() {
    let cx = || json!({"steps": {"a": {"status": "skipped"}}});
    for source in ["{{ steps.a.result }}", "{{ steps.a.result.x }}", "{{ unknown }}"] {
        assert!(plain(source, cx()).is_err(), "{source}");
        assert!(value(&template(source), &names(cx()), &FileTexts::new()).is_err(), "{source}");
        assert!(condition(&template(source), &names(cx()), &FileTexts::new()).is_err(), "{source}");
    }
}

#[test]
fn a_file_is_asked_for_and_then_read() {
    let t = template("{{ read_json(p).a }} {{ read_text('t') }} {{ lines('t') | length }}");
    let cx = names(json!({"p": "j.json"}));
    let mut files = FileTexts::new();
    let mut asked = Vec::new();
    let text = loop {
        match render(&t, &cx, &files, Quoting::Plain) {
            Ok(text) => break text,
            Err(RenderError::Need(paths)) => {
                for path in paths {
                    let text = if path == "j.json" { "{\"a\": 1}" } else { "x\n\ny\n" };
                    asked.push(path.clone());
                    files.insert(path, Some(text.into()));
                }
            }
            Err(RenderError::Failed { message }) => panic!("{message}"),
        }
    };
    assert_eq!(text, "1 x\n\ny\n 2");
    assert_eq!(asked, ["j.json", "t"]);
}

#[test]
fn a_missing_or_broken_file_fails_with_its_name() {
    let files = FileTexts::from([("no".into(), None), ("bad".into(), Some("{".into()))]);
    let fail = |source: &str| {
        failed(render(&template(source), &Context::default(), &files, Quoting::Plain))
    };
    assert_eq!(
        fail("{{ read_text('no') }}"),
        "file `no` does not exist, or is none that can be read"
    );
    assert!(fail("{{ read_json('bad') }}").starts_with("file `bad` is not JSON"));
}

#[test]
fn an_endless_template_runs_out_of_fuel() {
    let source = "{% for a in range(9999) %}{% for b in range(9999) %}x{% endfor %}{% endfor %}";
    assert!(failed(plain(source, json!({}))).contains("fuel"));
}

#[test]
fn every_listed_function_filter_and_test_exists() {
    for env in [&*PLAIN, &*SHELL] {
        for name in FILTERS {
            assert_eq!(
                env.render_str("{{ n is filter }}", values_of(name)).unwrap().as_str(),
                yes(env),
                "{name}"
            );
        }
        for name in TESTS {
            assert_eq!(
                env.render_str("{{ n is test }}", values_of(name)).unwrap().as_str(),
                yes(env),
                "{name}"
            );
        }
        for name in FUNCTIONS {
            let source = format!("{{{{ {name} is defined }}}}");
            assert_eq!(
                env.render_str(&source, values(&Context::default(), &FileTexts::new())).unwrap(),
                yes(env),
                "{name}"
            );
        }
    }
}

fn values_of(name: &str) -> Value {
    values(&names(json!({"n": name})), &FileTexts::new())
}

/// How this environment writes `true`.
fn yes(env: &Environment) -> String {
    env.render_str("{{ true }}", values(&Context::default(), &FileTexts::new())).unwrap()
}
