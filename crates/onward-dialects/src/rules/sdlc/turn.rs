//! The status of a QA loop, iteration by iteration, in whichever of its shapes it is kept.
//!
//! Invariant: a file keeps the names of its shape and every byte that no event is about. Each event
//! of the loop is one write, which says where the loop stands then: approved, escalated, or in
//! progress. Written again, it says the same; keys that are not known here stay.
//! An approval is announced before its story is closed and given behind it, so that a kill leaves
//! no approved loop over a story that is not done.

use serde_json::{Value, json};

use crate::kit::{edit::Sheet, path::component};

/// What an iteration came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Turned<'a> {
    pub story: &'a str,
    pub iteration: u32,
    pub max: u32,
    pub event: Event<'a>,
    /// Now.
    pub at: &'a str,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Event<'a> {
    Reviewed(&'a str),
    #[default]
    Fixed,
    /// An approval is about to be given: its story is being closed.
    Closing,
    /// A person counts it as good enough.
    Waived,
}

/// Where the status of a story's loop is kept, unless the run was given a place.
pub fn path(story: &str) -> String {
    format!("qa/{}/loop-status.json", component(story))
}

/// How a file names what it keeps: its own programs know no other names.
struct Shape {
    pointer: &'static str,
    reviewed: &'static str,
    fixed: &'static str,
    /// What an iteration has besides, for its programs to fill.
    besides: &'static [&'static str],
    reason: &'static str,
    escalated: Option<&'static str>,
    closing: &'static str,
    waived: &'static str,
    /// In progress, and approved; a shape without a status gets none.
    words: Option<[&'static str; 2]>,
    updated: Option<&'static str>,
}

/// Kept for each story, by its program.
const LONG: Shape = Shape {
    pointer: "currentIteration",
    reviewed: "reviewedAt",
    fixed: "fixedAt",
    besides: &["issuesFixed", "duration"],
    reason: "escalationReason",
    escalated: Some("escalatedAt"),
    closing: CLOSING,
    waived: WAIVED,
    words: Some(["in_progress", "completed"]),
    updated: Some("updatedAt"),
};

/// Written by a reviewer's own words; it has no status.
const SNAKE: Shape = Shape {
    pointer: "current_iteration",
    reviewed: "date",
    fixed: "fixed_at",
    besides: &[],
    reason: "escalation_reason",
    escalated: None,
    closing: "closing_at",
    waived: "waived_at",
    words: None,
    updated: None,
};

/// With a number and a last verdict beside the history.
const SHORT: Shape = Shape {
    pointer: "iteration",
    besides: &[],
    escalated: None,
    words: Some(["running", "complete"]),
    updated: None,
    ..LONG
};

impl Shape {
    fn of(sheet: &Sheet) -> &'static Self {
        let has = |key: &str| sheet.get(&[key]).is_some();
        match (has("story_id"), has("iteration")) {
            (true, _) => &SNAKE,
            (false, true) => &SHORT,
            (false, false) => &LONG,
        }
    }

    /// Where the loop stands: in progress, or approved.
    fn stands(&self, sheet: &mut Sheet, is_over: bool) {
        let known = sheet.get(&["status"]).map(|_| ["in_progress", "completed"]);
        if let Some(words) = self.words.or(known) {
            sheet.set(&["status"], &json!(words[usize::from(is_over)]));
        }
    }

    fn escalate(&self, sheet: &mut Sheet, why: &str, at: &Value) {
        if self.words.is_some() || sheet.get(&["status"]).is_some() {
            sheet.set(&["status"], &json!("escalated"));
        }
        if sheet.get(&[self.reason]) != Some(json!(why)) {
            sheet.set(&[self.reason], &json!(why));
            if let Some(key) = self.escalated {
                sheet.set(&[key], at);
            }
        }
    }

    /// The name under which this iteration says when it was fixed.
    fn fixed_in(&self, entry: Option<&Value>) -> &'static str {
        let has = |key: &&&str| entry.is_some_and(|it| it.get(**key).is_some());
        [LONG.fixed, SNAKE.fixed].iter().find(has).copied().unwrap_or(self.fixed)
    }
}

fn history(sheet: &Sheet) -> Vec<Value> {
    match sheet.get(&["history"]) {
        Some(Value::Array(list)) => list,
        Some(_) | None => Vec::new(),
    }
}

fn place_of(history: &[Value], iteration: u32) -> Option<usize> {
    let number = json!(iteration);
    history.iter().position(|entry| entry.get("iteration") == Some(&number))
}

/// The file after this; `None` when it holds no object.
pub fn turned(before: Option<&[u8]>, it: &Turned<'_>) -> Option<Vec<u8>> {
    let mut sheet = match before {
        None => Sheet::new(),
        Some(bytes) => Sheet::read(bytes)?,
    };
    let at = Value::from(it.at);
    if before.is_none() {
        sheet.set(&["storyId"], &Value::from(it.story));
        sheet.set(&["currentIteration"], &json!(0));
        sheet.set(&["maxIterations"], &json!(it.max));
        sheet.set(&["status"], &json!("in_progress"));
        sheet.set(&["startedAt"], &at);
        sheet.set(&["updatedAt"], &at);
        sheet.set(&["history"], &json!([]));
    }
    let shape = Shape::of(&sheet);
    let history = history(&sheet);
    let place = place_of(&history, it.iteration);
    let known = place.and_then(|at| history.get(at));
    let fixed = shape.fixed_in(known);
    if it.event != Event::Closing {
        sheet.remove(&[shape.closing]);
    }
    match it.event {
        Event::Closing => {
            sheet.set(&[shape.closing], &at);
            if it.iteration > 0 {
                sheet.set(&[shape.pointer], &json!(it.iteration));
            }
        }
        Event::Reviewed(verdict) => {
            match place {
                Some(_) if known.and_then(|it| it.get("verdict")) == Some(&json!(verdict)) => {}
                Some(index) => {
                    sheet.set_item("history", index, shape.reviewed, &at);
                    sheet.set_item("history", index, "verdict", &json!(verdict));
                    if known.is_some_and(|it| it.get(fixed).is_some()) {
                        sheet.set_item("history", index, fixed, &Value::Null);
                    }
                }
                None => {
                    let mut entry = vec![
                        ("iteration", json!(it.iteration)),
                        (shape.reviewed, at.clone()),
                        ("verdict", json!(verdict)),
                    ];
                    if shape.fixed == LONG.fixed {
                        entry.push((fixed, Value::Null));
                    }
                    entry.extend(shape.besides.iter().map(|key| (*key, Value::Null)));
                    sheet.push("history", &entry);
                }
            }
            sheet.set(&[shape.pointer], &json!(it.iteration));
            match verdict {
                "APPROVE" => shape.stands(&mut sheet, true),
                "REJECT" => shape.stands(&mut sheet, false),
                _ => shape.escalate(&mut sheet, "verdict_blocked", &at),
            }
            for key in ["lastVerdict", "last_verdict"] {
                if sheet.get(&[key]).is_some() {
                    sheet.set(&[key], &json!(verdict));
                }
            }
        }
        Event::Fixed => {
            if let Some(index) = place
                && known.and_then(|it| it.get(fixed)).is_none_or(Value::is_null)
            {
                sheet.set_item("history", index, fixed, &at);
            }
            if it.iteration >= it.max {
                shape.escalate(&mut sheet, "max_iterations_reached", &at);
            }
        }
        Event::Waived => {
            shape.stands(&mut sheet, true);
            sheet.set(&[shape.waived], &at);
        }
    }
    let known = ["updatedAt", "updated_at"].into_iter().find(|it| sheet.get(&[it]).is_some());
    if let Some(key) = known.or(shape.updated) {
        sheet.set(&[key], &at);
    }
    Some(sheet.into_bytes())
}

/// The file when a person escalates the loop; `None` when it holds no object.
pub fn escalated(before: &[u8], at: &str) -> Option<Vec<u8>> {
    let mut sheet = Sheet::read(before)?;
    Shape::of(&sheet).escalate(&mut sheet, "manual_escalate", &Value::from(at));
    Some(sheet.into_bytes())
}

/// The file when an iteration is to be fixed again, or `reviewed` again; `None` when it has no such
/// iteration.
pub fn taken_back(before: &[u8], iteration: u32, reviewed: bool) -> Option<Vec<u8>> {
    let mut sheet = Sheet::read(before)?;
    let shape = Shape::of(&sheet);
    let history = history(&sheet);
    let index = place_of(&history, iteration)?;
    let entry = history.get(index)?;
    let fixed = shape.fixed_in(Some(entry));
    if entry.get(fixed).is_some() {
        sheet.set_item("history", index, fixed, &Value::Null);
    }
    if reviewed {
        sheet.set_item("history", index, "verdict", &Value::Null);
        for key in ["lastVerdict", "last_verdict"] {
            if sheet.get(&[key]).is_some() {
                sheet.set(&[key], &Value::Null);
            }
        }
    }
    shape.stands(&mut sheet, false);
    for key in ["escalationReason", "escalation_reason", "escalatedAt", "waivedAt", "waived_at"] {
        sheet.remove(&[key]);
    }
    Some(sheet.into_bytes())
}

/// Since when the story of a loop is being closed.
pub const CLOSING: &str = "closingAt";

/// When a person counted a loop as good enough.
pub const WAIVED: &str = "waivedAt";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        kit::json::Oddities,
        sdlc::qa::{Loop, Next},
    };

    fn next(bytes: &[u8]) -> Next {
        Loop::read(bytes, "qa/loop-status.json", &Oddities::default()).unwrap().next()
    }

    fn of(iteration: u32, event: Event<'_>) -> Turned<'_> {
        Turned { story: "2.1", iteration, max: 2, event, at: "2026-02-17T12:00:00Z" }
    }

    #[test]
    fn a_loop_says_after_each_write_what_comes_next() {
        let mut bytes = None;
        for (iteration, event, expected) in [
            (1, Event::Reviewed("REJECT"), Next::Fix(1)),
            (1, Event::Fixed, Next::Review(2)),
            (2, Event::Reviewed("REJECT"), Next::Fix(2)),
            (2, Event::Fixed, Next::Escalate(2)),
            (2, Event::Waived, Next::Over),
        ] {
            let once = turned(bytes.as_deref(), &of(iteration, event)).unwrap();
            assert_eq!(next(&once), expected, "{}", String::from_utf8_lossy(&once));
            let twice = turned(Some(&once), &of(iteration, event)).unwrap();
            assert_eq!(once, twice, "written again, it says the same");
            bytes = Some(once);
        }
    }

    #[test]
    fn a_verdict_ends_or_escalates_the_loop_in_the_same_write() {
        for (verdict, expected, word) in
            [("APPROVE", Next::Over, "completed"), ("BLOCKED", Next::Escalate(1), "escalated")]
        {
            let after = turned(None, &of(1, Event::Reviewed(verdict))).unwrap();
            assert_eq!(next(&after), expected);
            let map: Value = serde_json::from_slice(&after).unwrap();
            assert_eq!(map["status"], word);
        }
    }

    #[test]
    fn each_shape_keeps_its_names_and_what_is_unknown() {
        let snake =
            br#"{"story_id": "2.1", "current_iteration": 1, "team": "blue", "history": []}"#;
        let after = turned(Some(snake), &of(1, Event::Reviewed("REJECT"))).unwrap();
        let text = String::from_utf8(after).unwrap();
        assert!(
            text.contains("\"team\": \"blue\"") && !text.contains("currentIteration"),
            "{text}"
        );
        let short = br#"{"storyId": "2.1", "iteration": 0, "lastVerdict": null, "history": []}"#;
        let after = turned(Some(short), &of(1, Event::Reviewed("REJECT"))).unwrap();
        let map: Value = serde_json::from_slice(&after).unwrap();
        assert_eq!((&map["iteration"], &map["lastVerdict"]), (&json!(1), &json!("REJECT")));
        assert_eq!(turned(Some(b"[]"), &of(1, Event::Fixed)), None);
    }

    /// Found in a project of a user of the original, whose program sorts no key.
    #[test]
    fn no_shape_gets_the_names_of_another_one_and_what_was_there_keeps_its_order() {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let was =
            r#"{"iteration":1,"date":"2026-02-17","verdict":"REJECT","count":{"z":0,"b":1},"a":5}"#;
        let snake = format!(r#"{{"story_id":"2.1","current_iteration":1,"history":[{was}]}}"#);
        let fixed = turned(Some(snake.as_bytes()), &of(1, Event::Fixed)).unwrap();
        let expected = was.replace("\"a\":5", r#""a":5,"fixed_at":"2026-02-17T12:00:00Z""#);
        assert_eq!(text(fixed.clone()), snake.replace(was, &expected));
        let after = text(turned(Some(&fixed), &of(2, Event::Reviewed("APPROVE"))).unwrap());
        let new = r#"{"iteration":2,"date":"2026-02-17T12:00:00Z","verdict":"APPROVE"}"#;
        let history = format!("\"history\":[{expected},{new}]");
        assert_eq!(after, format!(r#"{{"story_id":"2.1","current_iteration":2,{history}}}"#));
        assert_eq!(next(after.as_bytes()), Next::Over);
        let short =
            r#"{"storyId":"2.1","iteration":1,"status":"running","lastVerdict":null,"history":[]}"#;
        let after =
            text(turned(Some(short.as_bytes()), &of(1, Event::Reviewed("APPROVE"))).unwrap());
        let when = r#""reviewedAt":"2026-02-17T12:00:00Z""#;
        let new = format!(r#"{{"iteration":1,{when},"verdict":"APPROVE","fixedAt":null}}"#);
        let status = r#""status":"complete","lastVerdict":"APPROVE""#;
        assert_eq!(
            after,
            format!(r#"{{"storyId":"2.1","iteration":1,{status},"history":[{new}]}}"#)
        );
        let long = turned(None, &of(1, Event::Reviewed("BLOCKED"))).unwrap();
        let long: Value = serde_json::from_slice(&long).unwrap();
        assert_eq!(long["escalatedAt"], "2026-02-17T12:00:00Z", "{long:#}");
    }

    #[test]
    fn what_is_taken_back_is_done_again_and_the_rest_stays() {
        let rejected = turned(None, &of(1, Event::Reviewed("REJECT"))).unwrap();
        let fixed = turned(Some(&rejected), &of(1, Event::Fixed)).unwrap();
        assert_eq!(taken_back(&fixed, 1, false).unwrap(), rejected);
        assert_eq!(next(&taken_back(&fixed, 1, true).unwrap()), Next::Review(1));
        assert_eq!(taken_back(&fixed, 7, true), None);
        assert_eq!(next(&escalated(&rejected, "2026-02-17T12:00:00Z").unwrap()), Next::Escalate(1));
    }
}
