//! Limits, logins and refusals, however they are said.

use onward_engine::world::real::wall_clock;

use crate::stage::{LIKE_CLAUDE, PLAIN, Stage, result};

/// A notice in India's time of day, and the moment that it names. That is some hours away: a moment
/// that has just passed means that the limit is over.
fn notice() -> (String, String) {
    let hour = (wall_clock().as_micros() / 3_600_000_000 + 6) % 24;
    // Five hours and a half ahead of universal time, in summer and in winter.
    let there = (hour + 5) % 24;
    let half = if there < 12 { "am" } else { "pm" };
    let shown = (there + 11) % 12 + 1;
    let text = format!("You've hit your session limit, resets {shown}:30{half} (Asia/Kolkata)");
    (text, format!("T{hour:02}:00:00"))
}

#[test]
fn case_13_a_limit_parks_however_it_is_said_and_burns_nothing() {
    let (notice, moment) = notice();
    let plain = |code: i32| format!("cat <<'E'\nworking\n{notice}\nE\nexit {code}");
    let success =
        result(&format!("\"subtype\":\"success\",\"is_error\":false,\"result\":\"{notice}\""));
    for (script, config) in [
        (plain(0), PLAIN),
        (plain(1), PLAIN),
        (success.clone(), PLAIN),
        (success, LIKE_CLAUDE),
        (plain(0), LIKE_CLAUDE),
    ] {
        let stage = Stage::new(&script, config, ", retry: { max: 0 }");
        let (code, said) = stage.onward("run w.yaml --yes");
        assert_eq!(code, Some(12), "{said}");
        let journal = stage.journal();
        assert!(journal.contains("\"kind\":\"limit.hit\""), "{journal}");
        assert!(journal.contains("\"cause\":\"usage_limit\""), "{journal}");
        assert!(journal.contains(&moment), "{moment}: {journal}");
        let (code, said) = stage.onward("resume --yes");
        assert_eq!(code, Some(12), "{said}");
        assert_eq!((stage.calls(), stage.journal()), (1, journal), "{said}");
    }
}

#[test]
fn a_missing_login_waits_for_a_person_and_goes_on_after_it() {
    let fields = "\"subtype\":\"success\",\"is_error\":true,\"api_error_status\":401,\
                  \"result\":\"Invalid API key\"";
    let well = result("\"subtype\":\"success\",\"is_error\":false,\"result\":\"done\"");
    let script = format!("if [ -e login ]; then\n{well}\nexit 0; fi\n{}\nexit 1", result(fields));
    let stage = Stage::new(&script, LIKE_CLAUDE, ", retry: { max: 3 }");
    let (code, said) = stage.onward("run w.yaml --yes --json");
    assert_eq!(code, Some(11), "{said}");
    assert!(said.contains("work needs you: auth (Invalid API key)"), "{said}");
    assert_eq!(stage.calls(), 1, "a login does not come by trying");
    stage.put("login", "");
    let (code, said) = stage.onward("resume --yes");
    assert_eq!((code, stage.calls()), (Some(0), 2), "{said}");
}

#[test]
fn a_tool_that_was_denied_waits_for_a_person_unless_the_evidence_holds() {
    let denied = result(
        "\"subtype\":\"success\",\"is_error\":false,\"result\":\"could not\",\
         \"permission_denials\":[{\"tool_name\":\"Write\"}]",
    );
    let stage = Stage::new(&denied, LIKE_CLAUDE, "");
    assert_eq!(stage.onward("run w.yaml --yes").0, Some(11));
    let script = format!("echo made > made.txt\n{denied}");
    let stage = Stage::new(&script, LIKE_CLAUDE, ", writes: [made.txt]");
    assert_eq!(stage.onward("run w.yaml --yes").0, Some(0));
}
