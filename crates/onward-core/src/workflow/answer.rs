//! Answers that say no: a schema of a result may hold a second one, which tells the answers that
//! let the run go on.
//!
//! Invariant: a no is a valid answer. The agent is never shown which answer is wanted, and is never
//! asked to put a no right.

use serde_json::Value;

/// The key of the second schema. Its `description` says in words what a no means; `{key}` in it is
/// what the answer has under that key.
pub const ACCEPTS: &str = "x-onward-accept";

/// Lists of an answer that say why it is a no.
const REASONS: [&str; 2] = ["issues", "failures"];

/// More of a reason is in the agent's own answer.
const WORDS_MAX: usize = 300;

/// The schema as an agent is shown it.
pub fn asked(schema: &str) -> String {
    let whole = || schema.to_owned();
    if !schema.contains(ACCEPTS) {
        return whole();
    }
    let Ok(Value::Object(mut map)) = serde_json::from_str(schema) else { return whole() };
    map.remove(ACCEPTS);
    Value::Object(map).to_string()
}

/// What the agent decided, for a user; `accepts` is the schema that its answer does not fit.
pub fn refusal(accepts: &Value, answer: &Value) -> String {
    let mut words = accepts
        .get("description")
        .and_then(Value::as_str)
        .unwrap_or("the agent's answer says no")
        .to_owned();
    for (key, value) in answer.as_object().into_iter().flatten() {
        words = words.replace(&format!("{{{key}}}"), &plain(value));
    }
    let lists = REASONS.iter().filter_map(|key| answer.get(key)?.as_array());
    let reasons: Vec<String> = lists.flatten().map(plain).collect();
    if !reasons.is_empty() {
        words = format!("{words}: {}", reasons.join("; "));
    }
    match words.char_indices().nth(WORDS_MAX) {
        Some((end, _)) => format!("{} …", &words[..end]),
        None => words,
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_agent_is_not_shown_which_answer_is_wanted() {
        let schema = json!({"type": "object", ACCEPTS: {"required": ["a"]}}).to_string();
        assert_eq!(asked(&schema), json!({"type": "object"}).to_string());
        for other in [r#"{ "type": "object" }"#, "{", r#"["x-onward-accept"]"#] {
            assert_eq!(asked(other), other);
        }
    }

    #[test]
    fn a_no_is_told_in_the_words_of_the_schema_with_the_agents_reasons() {
        let accepts = json!({"description": "the owner decided {decision}, {score} of 10"});
        let answer = json!({"decision": "NO-GO", "score": 3, "issues": ["no tests", {"at": 2}]});
        let words = "the owner decided NO-GO, 3 of 10: no tests; {\"at\":2}";
        assert_eq!(refusal(&accepts, &answer), words);
        assert_eq!(refusal(&json!({}), &json!([])), "the agent's answer says no");
        let long = refusal(&accepts, &json!({"failures": ["é".repeat(1000)]}));
        assert_eq!(long.chars().count(), WORDS_MAX + 2);
    }
}
