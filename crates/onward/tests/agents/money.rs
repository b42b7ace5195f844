//! Tokens and money: billed once, over resumes, and up to the budget.

use serde_json::{Value, json};

use crate::stage::{Stage, result};

/// Reports totals of its session: twice as much at its second turn.
fn stage(limit: &str) -> Stage {
    let turn = |usd: f64, tokens: u32| {
        result(&format!(
            "\"subtype\":\"success\",\"is_error\":false,\"result\":\"done\",\
             \"total_cost_usd\":{usd},\"modelUsage\":{{\"m\":{{\"inputTokens\":{tokens},\
             \"outputTokens\":10}}}}"
        ))
    };
    let script = format!(
        "echo s > t\n[ $(wc -l < calls) = 1 ] || {{\n{}\nexit 0; }}\n{}",
        turn(1.5, 200),
        turn(1.0, 100)
    );
    let config = "[agents.played]\nadapter = 'claude'\ncommand = ['./agent.sh', '{session}']\n\
                  continue = ['./agent.sh', '{session}']\ntranscript = 't'\n";
    let step = ", result: { schema: s.json }";
    let stage = Stage::new(&script, config, step);
    stage.put("s.json", "{}");
    let text = stage.text("w.yaml");
    let second = ", { id: last, agent: player, prompt: p }]\n";
    stage.put("w.yaml", &text.replace("]\n", second).replace("steps:", &format!("{limit}steps:")));
    stage
}

fn bill(stage: &Stage) -> Value {
    let said = stage.exits("status --cost --json", 0);
    serde_json::from_str::<Value>(&said).unwrap()["bill"].take()
}

#[test]
fn counters_of_a_session_are_billed_by_what_they_grew() {
    let stage = stage("");
    // Neither turn gives a result: one repair turn in the same session, and then it has failed.
    stage.exits("run w.yaml --yes", 10);
    let spent = stage.of("attempt.spent");
    let usd: Vec<&Value> = spent.iter().map(|it| &it["usd"]).collect();
    assert_eq!(usd, [&json!(1.0), &json!(0.5)], "{}", stage.journal());
    let bill = bill(&stage);
    let work = &bill["steps"]["work"];
    assert_eq!((&work["usd"], &work["attempts"]), (&json!(1.5), &json!(2)), "{bill:#}");
    assert_eq!((&work["input_tokens"], &work["output_tokens"]), (&json!(200), &json!(10)));
    assert_eq!(bill["drives"].as_array().unwrap().len(), 1);
    let page = stage.exits("status --cost", 0);
    assert!(page.contains("tokens") && page.contains("First drive"), "{page}");
    let plan: Value = serde_json::from_str(&stage.exits("plan --json", 0)).unwrap();
    assert_eq!(
        (&plan["cost"]["spent_usd"], &plan["cost"]["spent_tokens"]),
        (&json!(1.5), &json!(210))
    );
}

#[test]
fn a_budget_holds_over_resumes() {
    let stage = stage("limits: { usd: 1.25 }\n");
    stage.put("s.json", r#"{"const":1}"#);
    // The first turn is within it, the repair turn goes beyond.
    let said = stage.exits("run w.yaml --yes", 13);
    assert_eq!(stage.of("budget.hit").len(), 1, "{}", stage.journal());
    let first = "$1.50 spent of $1.25: raise `limits.usd` in w.yaml first, then\n";
    for said in [&said, &stage.exits("status", 0), &stage.exits("", 0)] {
        assert!(said.contains(first) && said.contains("onward resume w-"), "{said}");
    }
    let calls = stage.calls();
    // What was spent is not forgotten: nothing starts.
    stage.exits("resume --yes", 13);
    assert_eq!(stage.calls(), calls);
    let raised = stage.text("w.yaml").replace("1.25", "9");
    stage.put("w.yaml", &raised);
    stage.exits("resume --yes", 10);
    assert!(stage.calls() > calls);
}
