//! How often another system's files are read before the first step: once to examine them, and once
//! under their lock, to see that they are still what was examined.

use std::{mem::MaybeUninit, os::fd::OwnedFd};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};

use crate::{tea::Tea, terminal::Terminal};

/// The poster of the second round is logged; an agent that judges it is the first to be started.
const SHOWN: usize = 15;
const FIRST: &str = "round[2]/review/judge";

/// One of the files, which no resume writes. They are all read at a time.
const FILE: &str = "researcher_A_results.tsv";

/// Hears of every reading of that file, by whichever process.
struct Ear(OwnedFd);

impl Ear {
    fn at(tea: &Tea) -> Self {
        let heard = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).unwrap();
        let flags = WatchFlags::OPEN | WatchFlags::CLOSE_NOWRITE;
        inotify::add_watch(&heard, tea.dir().join(FILE), flags).unwrap();
        Self(heard)
    }

    /// How often it was read since this was asked before.
    fn readings(&self) -> usize {
        let mut buffer = [MaybeUninit::uninit(); 8 << 10];
        let mut reader = Reader::new(&self.0, &mut buffer);
        let mut count = 0;
        while let Ok(event) = reader.next() {
            count += usize::from(event.events().contains(ReadFlags::CLOSE_NOWRITE));
        }
        count
    }
}

fn shown() -> Tea {
    Tea::left(&Tea::finished(), SHOWN)
}

#[test]
fn a_conference_is_read_once_and_once_more_under_its_lock() {
    for arguments in ["resume --no-input --yes", "resume . --no-input --yes"] {
        let tea = shown();
        let ear = Ear::at(&tea);
        let mut engine = tea.held_at(FIRST, arguments);
        assert_eq!(ear.readings(), 2, "{arguments}");
        // The run of ours that goes on with it, too, whichever way it was interrupted.
        engine.kill().unwrap();
        engine.wait().unwrap();
        let [run] = tea.runs().try_into().unwrap();
        crate::bench::kill_all(&run);
        tea.let_go();
        ear.readings();
        let mut engine = tea.held_at(FIRST, arguments);
        assert_eq!(ear.readings(), 2, "again: {arguments}");
        tea.let_go();
        assert!(engine.wait().unwrap().success());
    }
}

#[test]
fn what_the_menu_showed_is_not_read_again_for_the_resume() {
    let tea = shown();
    let ear = Ear::at(&tea);
    std::fs::write(tea.root.join("hold"), FIRST).unwrap();
    let mut terminal = Terminal::of(&tea.command("resume"));
    terminal.shows("What now? ");
    assert_eq!(ear.readings(), 1, "the examination");
    terminal.types("\n");
    terminal.shows(FIRST);
    let held = tea.root.join("held");
    onward_engine::care::harness::until("the agent", || Ok(held.exists().then_some(()))).unwrap();
    assert_eq!(ear.readings(), 1, "the look under the lock");
    tea.let_go();
    terminal.exits(0);
}
