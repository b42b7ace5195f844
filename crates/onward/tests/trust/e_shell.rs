//! A value that a second shell would read is refused before anything runs.

use crate::bench::Bench;

#[test]
fn e16_a_hole_that_a_second_shell_reads_is_an_error_of_check() {
    let head = "inputs: { x: { type: string } }\nsteps:";
    for command in [
        "sh -c \"echo {{ inputs.x }}\"",
        "eval echo {{ inputs.x }}",
        "trap {{ inputs.x }} EXIT",
        "echo {{ inputs.x }} | sh",
        "printf %s {{ inputs.x }} | tee said | /bin/bash -e",
    ] {
        let bench = Bench::new("");
        bench.workflow("w.yaml", head, &format!("  - {{ id: a, run: '{command}' }}\n"));
        let said = bench.exits("check w.yaml", 2);
        assert!(said.err.contains("reads it as shell text"), "{command} {said:?}");
        let said = bench.command("run w.yaml").args(["--input", "x=$(touch pwned)"]).output();
        assert_eq!(said.unwrap().status.code(), Some(2), "{command}");
        assert!(!bench.path("pwned").exists());
    }
    let bench = Bench::new("");
    let command = "sh -c \"echo \\$1 > said\" _ {{ inputs.x }}";
    bench.workflow("w.yaml", head, &format!("  - {{ id: a, run: '{command}' }}\n"));
    bench.exits("check w.yaml", 0);
    let said = bench.command("run w.yaml").args(["--input", "x=$(touch pwned)"]).output();
    assert_eq!(said.unwrap().status.code(), Some(0));
    assert_eq!(bench.text("said"), "$(touch pwned)\n", "an argument is text");
}
