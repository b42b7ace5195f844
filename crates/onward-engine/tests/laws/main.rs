//! The laws of adopted runs, over the real dialects and the real calls: whenever a step that writes
//! the other system's files has ended, what they tell is what the journal tells.
//!
//! The decider drives a built-in workflow in memory, its calls write into a directory, and scripted
//! agents answer by chance. At random the machine stops: what was under way is lost, also a call
//! whose files are written and whose end is not journaled; then the run is resumed.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod agents;
#[expect(dead_code, reason = "the simulator uses the rest")]
#[path = "../sim/chance.rs"]
mod chance;
mod life;

use life::{Life, System};

/// Lives of each system. Every one is a whole run with its interruptions.
const LIVES: u64 = 24;

#[track_caller]
fn holds_for(system: System) {
    let (mut exports, mut crashes) = (0, 0);
    for seed in 1..=LIVES {
        let life = Life::new(system, seed).lived();
        exports += life.exports;
        crashes += life.crashes;
    }
    // A test that explores nothing proves nothing.
    assert!(exports > 20 * LIVES, "{exports} exports");
    assert!(crashes > LIVES, "{crashes} crashes");
}

#[test]
fn what_the_files_of_agent_memory_tell_is_what_the_journal_tells_after_every_export() {
    holds_for(System::AgentMemory);
}

#[test]
fn what_the_files_of_dotagent_tell_is_what_the_journal_tells_after_every_export() {
    holds_for(System::Dotagent);
}
