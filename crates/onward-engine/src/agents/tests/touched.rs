//! What agents report of the files that they changed.

use onward_core::said::Touched;

use super::*;

#[test]
fn b5_what_claude_and_codex_report_of_files_is_understood_and_a_shell_can_have_done_all() {
    let claude = |tool: &str| {
        format!(
            "{{\"type\":\"system\",\"subtype\":\"init\",\"tools\":[]}}\n{{\"type\":\"assistant\",\
             \"message\":{{\"content\":[{{\"type\":\"tool_use\",{tool}}}]}}}}\n"
        )
    };
    let codex = |item: &str| {
        format!(
            "{{\"type\":\"turn.started\"}}\n{{\"type\":\"item.completed\",\"item\":{{{item}}}}}\n"
        )
    };
    let files = |paths: &[&str]| {
        Some(Touched::Files(paths.iter().map(|path| (*path).to_owned()).collect()))
    };
    let cases: [(&dyn Adapter, String, Option<Touched>); 9] = [
        (
            &claude::Claude,
            claude(r#""name":"Edit","input":{"file_path":"/p/a"}"#),
            files(&["/p/a"]),
        ),
        (
            &claude::Claude,
            claude(r#""name":"NotebookEdit","input":{"notebook_path":"/p/n"}"#),
            files(&["/p/n"]),
        ),
        (&claude::Claude, claude(r#""name":"Read","input":{"file_path":"/p/a"}"#), files(&[])),
        (&claude::Claude, claude(r#""name":"Bash","input":{}"#), Some(Touched::Anything)),
        (&claude::Claude, claude(r#""name":"mcp__x__y","input":{}"#), Some(Touched::Anything)),
        (
            &codex::Codex,
            codex(r#""type":"file_change","changes":[{"path":"a"},{"path":"b"}]"#),
            files(&["a", "b"]),
        ),
        (&codex::Codex, codex(r#""type":"agent_message","text":"hi""#), files(&[])),
        (&codex::Codex, codex(r#""type":"command_execution""#), Some(Touched::Anything)),
        (&gemini::Gemini, claude(r#""name":"Edit","input":{"file_path":"/p/a"}"#), None),
    ];
    for (adapter, out, touched) in cases {
        assert_eq!(heard(adapter, &out, "").touched, touched, "{out}");
    }
}
