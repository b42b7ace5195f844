//! The directory of a run is gone, and our run of it is there.

use std::fs;

use crate::desk::{Desk, RUN, graph_of_three};

fn begun(input: &str) -> Desk {
    let desk = Desk::new();
    let request = [format!("request={input}")];
    let mut command = desk.bench.command(&format!("run agent-memory --no-input --input dir={RUN}"));
    let ended = command.arg("--input").args(request).output().unwrap();
    assert_eq!(ended.status.code(), Some(11), "{ended:?}");
    desk
}

#[test]
fn a_run_whose_directory_is_gone_says_so_and_goes_on_when_it_is_back() {
    let desk = begun("count");
    let aside = desk.bench.path("aside");
    fs::rename(desk.path(""), &aside).unwrap();
    let says = format!("the files of the run are gone: {RUN} has");
    for command in ["plan".to_owned(), format!("plan {RUN}"), "status".to_owned()] {
        let said = desk.bench.exits(&command, 0);
        let text = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(&says), "{command}: {said:?}");
        assert!(!said.out.contains("is made again"), "{command}: {said:?}");
    }
    for command in ["resume --no-input --yes", "resume --no-input --accept state-unreadable"] {
        let refused = desk.bench.exits(command, 16);
        assert!(refused.err.contains(&says), "{refused:?}");
        assert!(refused.err.contains("onward cancel"), "{refused:?}");
    }
    // It is said wherever the run is named, and no answer counts before they are back.
    let listed = desk.bench.exits("list --json", 0).json();
    let needs = listed["runs"][0]["needs"][0].as_str().unwrap_or_default();
    assert!(needs.starts_with(&says), "{listed:#}");
    assert!(desk.bench.exits("list", 0).out.contains("the files of the run are gone"));
    for command in ["approve", "decide approve revise"] {
        let refused = desk.bench.exits(command, 16);
        assert!(refused.err.contains(&says), "{refused:?}");
        assert!(!refused.err.contains("has changed"), "{refused:?}");
    }
    assert!(!desk.path("").exists(), "nothing is written in its place");
    fs::rename(&aside, desk.path("")).unwrap();
    desk.bench.exits("approve", 0);
    desk.bench.exits("resume --no-input --yes", 0);
    assert!(desk.path("summary.md").exists());
}

/// What the original was asked for stands in no file of its own: the requirements have its title.
#[test]
fn a_run_that_was_adopted_is_started_over_with_what_its_files_tell_or_names_what_is_missing() {
    for (page, told) in [("# Limit requests\n", Some("limit-requests")), ("no title\n", None)] {
        let desk = Desk::new();
        graph_of_three(&desk);
        fs::write(desk.path("prd.md"), page).unwrap();
        fs::remove_file(desk.path("constitution.md")).unwrap();
        let refused = desk.bench.exits("resume --no-input --from cleanup", 16);
        assert!(!refused.err.contains("WISH"), "{refused:?}");
        assert_eq!(refused.err.contains("it asks what is wanted"), told.is_none(), "{refused:?}");
        desk.bench.exits("resume --no-input", 11);
        let id = desk.run_dir().file_name().unwrap().to_str().unwrap().to_owned();
        let command = format!("run --no-input --again {id}");
        let Some(told) = told else {
            let refused = desk.bench.exits(&command, 2);
            assert!(refused.err.contains("input `request` is missing"), "{refused:?}");
            assert!(refused.err.contains("run agent-memory --input request=VALUE"), "{refused:?}");
            let status = desk.bench.exits("status --json", 0).json();
            assert_eq!(status["run"]["status"], "waiting", "the old run is not ended: {status:#}");
            continue;
        };
        // Its agent looks for the first directory, which is the old one: how far it gets is not
        // told.
        desk.bench.onward(&command);
        let runs = fs::read_dir(desk.bench.path(".agent-memory/runs")).unwrap();
        let names: Vec<String> =
            runs.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
        assert!(names.iter().any(|it| it.contains(told)), "{names:?}");
    }
}

#[test]
fn a_run_is_started_over_with_the_request_that_it_was_given() {
    let wish = "it's a \"count\" $HOME";
    let desk = begun(wish);
    let run = desk.run_dir();
    let id = run.file_name().unwrap().to_str().unwrap().to_owned();
    // Also where its directory is gone.
    fs::remove_dir_all(desk.path("")).unwrap();
    desk.bench.exits(&format!("run --no-input --again {id}"), 11);
    let runs = fs::read_dir(desk.bench.path(".agent-memory/runs")).unwrap();
    let names: Vec<String> =
        runs.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
    assert!(names.iter().any(|it| it.contains("-it-s-a-count-home-")), "{names:?}");
}
