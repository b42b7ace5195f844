//! What conference.md or the files do not say, and what is made of it.

use onward_core::{finding::Severity, told::Change};

use crate::builder::{Built, ROUND_1, Seen, changed, codes, conference, finding};

const NO_ITERATIONS: (&str, &str) = ("- **Iterations per round:** 3\n", "");

fn said(built: Built, (old, new): (&str, &str)) -> Built {
    built.says(old, new)
}

/// The lines that a resume adds to the log.
fn logged(plan: &Seen) -> Vec<String> {
    let changes = plan.resumed();
    let Some(Change::Append { bytes, .. }) = changes.last() else { panic!("{changes:?}") };
    String::from_utf8(bytes.clone()).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn the_length_of_a_round_is_that_of_the_rounds_before_if_they_agree() {
    let no_budget = ("- **Max total iterations:** 24\n", "");
    let built = said(conference(&format!("{ROUND_1}round 2: A B\nA2.0 baseline 70")), no_budget);
    let plan = said(built.clone(), NO_ITERATIONS).plan();
    let found = finding(&plan, "conference-md-incomplete");
    assert_eq!(found.severity(), Severity::Warning);
    assert!(found.hint.as_deref().unwrap().contains("everybody has 3 in round 2"), "{found:?}");
    assert!(plan.can_resume);
    let done = "A2.0 baseline 70\nA2.1 kept 66\nA2.2 kept 65";
    let plan = said(conference(&format!("{ROUND_1}round 2: A B\n{done}")), no_budget);
    let plan = said(plan, NO_ITERATIONS).plan();
    assert_eq!(plan.recovery_point.steps, ["round[2]/research[B]"], "A has its three");
    let uneven = ROUND_1.replace("B1.2 kept 70\n", "");
    let plan = said(said(conference(&uneven), no_budget), NO_ITERATIONS).plan();
    assert_eq!(finding(&plan, "conference-md-incomplete").severity(), Severity::Blocking);
    assert!(plan.needs[0].contains("iterations per round"), "{:?}", plan.needs);
    let over = said(said(conference(&format!("{uneven}converged")), no_budget), NO_ITERATIONS);
    assert!(over.plan().can_resume, "no round comes that would need it");
    assert_eq!(codes(&built.plan()), [""; 0]);
}

#[test]
fn a_metric_that_no_command_measures_is_told() {
    let none = |built: Built| built.says("- **Evaluator:** `sh score.sh`\n", "");
    let plan = none(conference(ROUND_1)).plan();
    let found = finding(&plan, "prerequisite-missing");
    assert_eq!(found.severity(), Severity::Info);
    assert!(found.message.contains("report their metric themselves"), "{found:?}");
    let over = none(conference(&format!("{ROUND_1}converged"))).plan();
    assert!(!codes(&over).contains(&"prerequisite-missing"));
}

#[test]
fn the_time_budget_is_told_whatever_else_ends_it() {
    let plan = conference(ROUND_1)
        .says("**Max rounds:** 4", "**Max rounds:** 1")
        .says("budget:** 8h", "budget:** 50m")
        .plan();
    assert!(plan.recovery_point.summary.contains("1 of 1 rounds"));
    assert_eq!(finding(&plan, "budget-elapsed").severity(), Severity::Warning);
}

#[test]
fn results_that_are_gone_come_back_as_the_system_writes_them() {
    let built = conference(ROUND_1).file("conference_results.tsv", "");
    let mut files = built.files();
    files = files
        .iter()
        .filter(|(name, _)| {
            *name != "conference_results.tsv" && *name != "researcher_B_results.tsv"
        })
        .map(|(name, file)| (name.to_owned(), file.bytes.clone()))
        .collect();
    let plan = crate::builder::plan_of(&files, "2026-05-04T21:00:00Z".parse().unwrap());
    let missing = plan.findings.iter().filter(|it| it.code == "rows-missing");
    let paths: Vec<&str> = missing.map(|it| it.path.as_deref().unwrap()).collect();
    assert_eq!(paths, ["researcher_B_results.tsv", "conference_results.tsv"]);
    let after = changed(&files, &plan.resumed());
    let text = |name: &str| String::from_utf8(after.bytes(name).unwrap().to_vec()).unwrap();
    let own = text("researcher_B_results.tsv");
    let row = own.lines().find(|line| line.starts_with("2\t70\t")).unwrap();
    let log = "rebuilt from the event log";
    assert_eq!(row, format!("2\t70\t0.5\t-12.5%\tkept\t{log}\t-\t2026-05-04T20:35:00Z"));
    let shared = text("conference_results.tsv");
    let rows: Vec<&str> = shared.lines().collect();
    assert_eq!(rows.len(), 7, "{shared}");
    assert!(rows.iter().all(|row| row.split('\t').count() == 11), "{shared}");
    assert!(rows[2].starts_with("1\tA\t1\t75\t-\t-\tkept\ta try\tscore.sh\t-\t2026-05-04T20:"));
    assert!(rows[6].starts_with("1\tB\t2\t70\t0.5\t-12.5%\tkept\trebuilt"), "{shared}");
}

#[test]
fn an_end_by_rule_that_is_not_logged_is_logged_by_the_resume() {
    let script = format!("{ROUND_1}round 2: A B\nA2.0 baseline 70\nA2.1 kept 49\nend 2 49");
    let built = conference(&script);
    let new = logged(&built.plan());
    assert_eq!(new.len(), 2, "{new:?}");
    assert!(new[0].contains("conference.resumed"), "{new:?}");
    assert!(new[1].contains("conference.converged") && new[1].contains("target_reached"));
    let budget = conference(ROUND_1).says("**Max rounds:** 4", "**Max rounds:** 1");
    let new = logged(&budget.plan());
    assert_eq!(new.len(), 1, "a budget has no event of its own: {new:?}");
}

#[test]
fn a_line_that_is_added_ends_as_the_lines_of_its_file_do() {
    let mut built = conference(ROUND_1);
    built.log = built.log.replace('\n', "\r\n");
    let after = changed(&built.files(), &built.plan().resumed());
    let log = after.bytes("conference_events.jsonl").unwrap();
    let bare = log.windows(2).filter(|it| it[1] == b'\n' && it[0] != b'\r').count();
    assert_eq!(bare, 0, "{}", String::from_utf8_lossy(log));
}

#[test]
fn only_outputs_that_are_there_are_named() {
    let built = conference(&format!("{ROUND_1}complete"));
    let said = |built: &Built| built.plan().recovery_point.summary;
    assert!(said(&built).starts_with("This conference is already complete. Its outputs are not"));
    let one = built.file("synthesis.md", "# S\n\nx\n");
    let dir = "conferences/latency";
    let words = "This conference is already complete. Outputs are in";
    assert_eq!(said(&one), format!("{words} {dir}/synthesis.md"));
    let both = one.outputs();
    assert_eq!(said(&both), format!("{words} {dir}/synthesis.md and {dir}/final_report.md"));
}
