//! What a round of ours is made of: what researchers are told, what is shared, what is refused.

use std::fmt::Write as _;

use onward_dialects::{
    conference::{Conference, import, write::happening::What},
    rules::conference::{brief::brief, gate, results, transfer::transfer},
};

use crate::builder::{Built, ROUND_1, conference};

fn read(built: &Built) -> Conference {
    import(&built.files()).unwrap()
}

fn told(built: &Built, round: u32, researcher: &str) -> String {
    brief(&read(built), round, researcher, 1, "DOUBT THEM")
}

#[test]
fn the_last_round_is_announced_and_no_other() {
    let second = conference(&format!("{ROUND_1}round 2: A B\nA2.0 baseline 70\n"));
    assert!(!told(&second, 2, "A").contains("ENDGAME"));
    let last = second.clone().says("Max rounds:** 4", "Max rounds:** 2");
    assert!(told(&last, 2, "A").contains("ENDGAME"));
    let budget = second.says("iterations:** 24", "iterations:** 12");
    assert!(told(&budget, 2, "A").contains("ENDGAME"), "no iterations are left for a third");
}

#[test]
fn a_researcher_that_gets_nowhere_is_told_so_by_level() {
    let mut script = "start\nround 1: A B\nA1.0 baseline 80\n".to_owned();
    let mut levels = Vec::new();
    for turn in 1..=7 {
        writeln!(script, "A1.{turn} reverted 81").unwrap();
        let built = conference(&script).says("per round:** 3", "per round:** 20");
        levels.push(read(&built).stuck_level(1, "A"));
        let text = told(&built, 1, "A");
        assert_eq!(text.contains("STUCK, level 1"), (3..5).contains(&turn), "{turn}: {text}");
        assert_eq!(text.contains("STUCK, level 2"), turn >= 5, "{turn}: {text}");
        assert!(!told(&built, 1, "B").contains("STUCK"));
    }
    assert_eq!(levels, [0, 0, 1, 1, 2, 2, 3]);
}

#[test]
fn one_researcher_is_the_devils_advocate_where_the_file_asks_for_one() {
    let built = conference("start\nround 1: A B\n");
    assert!(!told(&built, 1, "B").contains("DOUBT THEM"));
    let asked = built.says("Max rounds:** 4", "Max rounds:** 4\n- **Devil's Advocate:** yes");
    assert!(told(&asked, 1, "B").contains("DOUBT THEM"));
    assert!(!told(&asked, 1, "A").contains("DOUBT THEM"));
}

#[test]
fn what_is_gathered_comes_in_the_order_of_gain_then_of_letters() {
    let review = "# Review\n\n### Researcher A — a\n**Verdict:** validated\n\n\
                  ### Researcher B — b\n**Verdict:** validated\n";
    let of = |script: &str| {
        let built = conference(script).file("peer_review_round_1.md", review);
        transfer(&read(&built), 1)
    };
    let found = of(ROUND_1);
    assert_eq!(found.picks, ["B", "A"], "70 is better than 75");
    let What::Learned { findings, .. } = found.learned else { panic!() };
    assert_eq!(findings, ["a (Researcher A)", "b (Researcher B)"]);
    assert_eq!(of(&ROUND_1.replace("B1.2 kept 70", "B1.2 kept 75")).picks, ["A", "B"]);
}

#[test]
fn a_start_names_everything_that_is_not_exact() {
    let bare = conference("").says("- **Iterations per round:** 3\n", "");
    let bare = bare.says("- **Evaluator:** `sh score.sh`\n", "");
    let missing = gate::unready(&read(&bare));
    let wanted = ["iterations per round", "evaluator command", "Devil's Advocate (yes or no)"];
    assert_eq!(missing, wanted);
    let asked = |pairs: &[(&str, &str)]| {
        let exact = "rounds:** 4\n- **Critic / Devil’s Advocate:** enabled";
        let built = conference("").says("rounds:** 4", exact);
        gate::unready(&read(&pairs.iter().fold(built, |it, (old, new)| it.says(old, new))))
    };
    assert_eq!(asked(&[]), [""; 0]);
    assert_eq!(asked(&[("round:** 3", "round:** 4 (round 1-2), 3 (round 3)")]), [""; 0]);
    let vague = [("Count:** 2", "Count:** 2-3"), ("round:** 3", "round:** 3-5")];
    assert_eq!(asked(&vague), ["exact researcher count", "exact iterations per round"]);
    assert_eq!(asked(&[("rounds:** 4", "rounds:** 4 or so")]), ["exact max rounds"]);
    assert_eq!(asked(&[("enabled", "maybe")]), ["Devil's Advocate (yes or no)"]);
    let opening = results::opening(&read(&conference("")));
    let question = opening["question"].as_str().unwrap();
    assert!(question.contains("Budget: at most 24 iterations"), "{question}");
}
