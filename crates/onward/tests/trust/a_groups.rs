//! What a person says of fan-outs and loops, and changes of what they made.

use crate::{a_commands::paste, a_plan::FAN, bench::Bench};

/// What the last turn of a loop left is a person's when they changed it, whichever turn comes to
/// write it again.
#[test]
fn a1_a_change_of_what_a_loop_made_is_asked_about_before_the_loop_turns_again() {
    let steps = "  - { id: r, repeat: { max: 2 }, steps: [{ id: t, run: 'LOG; echo v1 > o.txt', \
                 writes: [o.txt] }] }\n  - { id: end, run: 'LOG; test -e go' }\n";
    for asked in ["", "--redo 'r[1]/t' ", "--from r "] {
        let bench = Bench::new(steps);
        bench.exits("run w.yaml", 10);
        bench.write("o.txt", "mine\n");
        if asked.is_empty() {
            bench.write("w.yaml", &bench.text("w.yaml").replace("echo v1", "echo v2"));
        }
        bench.write("go", "");
        let said = paste(&bench, &format!("onward resume --no-input {asked}"));
        assert_eq!((said.code, bench.text("o.txt")), (16, "mine\n".to_owned()), "{said:#?}");
        let accepts = format!("onward resume --no-input {asked}--accept artifact-changed --yes");
        let said = paste(&bench, &accepts);
        assert_eq!(said.code, 0, "{said:#?}");
        let kept = bench.exits("rescue list --json", 0).out;
        assert!(kept.contains("o.txt"), "{kept}");
    }
}

/// A fan-out that is named stands for its items; `--keep fan` ran every one of them again.
#[test]
fn a11_what_is_said_of_a_fan_out_is_said_of_its_items() {
    let bench = Bench::new(&FAN.replace("{{ fan }}", ""));
    bench.exits("run w.yaml", 10);
    let edited = bench.text("w.yaml").replacen("echo", "true; echo", 1);
    bench.write("w.yaml", &edited);
    bench.exits("resume --no-input --keep fan", 10);
    assert_eq!((bench.ran("fan[a]"), bench.ran("fan[b]")), (vec![1], vec![1]));
    bench.write("go", "");
    bench.exits("resume --no-input --redo fan", 0);
    assert_eq!((bench.ran("fan[a]"), bench.ran("fan[b]")), (vec![1, 2], vec![1, 2]));
}
