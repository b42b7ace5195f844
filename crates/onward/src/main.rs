//! The `onward` command: parse, dispatch, report.
fn main() {}
