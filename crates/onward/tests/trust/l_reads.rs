//! A done step that is kept if the steps before it come out the same is compared with all that it
//! was made from: also with files that a step further back has made otherwise.

use serde_json::Value;

use crate::bench::Bench;

fn verdict<'p>(plan: &'p Value, step: &str) -> &'p str {
    let rows = plan["steps"].as_array().unwrap();
    rows.iter().find(|row| row["step"] == step).unwrap()["verdict"].as_str().unwrap()
}

/// `a` makes a file, and `b` copies it; the step between them comes out the same, or is skipped.
fn sees_no_stale_copy(between: &str, copies: &str) {
    let bench = Bench::new(&format!(
        "  - {{ id: a, run: 'LOG; echo v1 > a.txt', writes: [a.txt] }}\n  \
         - {{ id: s, {between} }}\n  - {{ id: b, {copies}, writes: [b.txt] }}\n  \
         - {{ id: same, run: 'LOG; cat other > same.txt', reads: [other], writes: [same.txt] }}\n  \
         - {{ id: d, run: 'LOG; test -e go' }}\n  \
         - {{ id: out, run: 'LOG; cp b.txt published', effect: outside }}\n"
    ));
    bench.write("other", "other\n");
    bench.exits("run w.yaml --no-input", 10);
    let text = bench.text("w.yaml").replace("echo v1", "echo v2");
    bench.write("w.yaml", &text);
    let run = bench.project().runs().unwrap()[0].dir.clone();
    assert_eq!(verdict(&bench.plan(&run), "b"), "verify");
    bench.write("go", "");
    bench.exits("resume --no-input --yes", 0);
    assert_eq!(bench.text("b.txt").trim_end(), "v2");
    assert_eq!(bench.text("published").trim_end(), "v2");
    assert_eq!([bench.ran("a").len(), bench.ran("b").len()], [2, 2]);
}

#[test]
fn l1_a_step_that_read_what_a_step_far_before_it_makes_otherwise_runs_again() {
    let same = "run: 'LOG; echo s > s.txt', writes: [s.txt]";
    sees_no_stale_copy(same, "run: 'LOG; cp a.txt b.txt', reads: [a.txt]");
}

#[test]
fn l1_a_template_that_read_it_behind_a_step_that_is_passed_over_counts_too() {
    let copies = "run: 'LOG; echo {{ read_text(''a.txt'') }} > b.txt'";
    sees_no_stale_copy("run: LOG, when: 'false'", copies);
}

#[test]
fn l1_a_person_may_keep_it_all_the_same() {
    let bench = Bench::new(
        "  - { id: a, run: 'LOG; echo v1 > a.txt', writes: [a.txt] }\n  \
         - { id: s, run: 'LOG; echo s > s.txt', writes: [s.txt] }\n  \
         - { id: b, run: 'LOG; cp a.txt b.txt', reads: [a.txt], writes: [b.txt] }\n  \
         - { id: d, run: 'LOG; test -e go' }\n",
    );
    bench.exits("run w.yaml --no-input", 10);
    let text = bench.text("w.yaml").replace("echo v1", "echo v2");
    bench.write("w.yaml", &text);
    bench.write("go", "");
    bench.exits("resume --no-input --yes --keep b", 0);
    assert_eq!((bench.text("a.txt").as_str(), bench.text("b.txt").as_str()), ("v2\n", "v1\n"));
    assert_eq!(bench.ran("b").len(), 1);
}
