//! Ctrl-C and its like, while nothing is driven and a person is asked something.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Remembers that the person wants out. From the first one on, such a signal ends the program only
/// where it looks here, or where a driver takes it.
#[derive(Clone, Debug)]
pub struct Interrupts(Arc<AtomicBool>);

impl Interrupts {
    pub fn heed() -> io::Result<Self> {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(&flag))?;
        }
        Ok(Self(flag))
    }

    pub fn came(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// What came was meant for another program, which had the terminal.
    pub fn forget(&self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_remembered() {
        let interrupts = Interrupts::heed().unwrap();
        assert!(!interrupts.came());
        signal_hook::low_level::raise(SIGTERM).unwrap();
        assert!(interrupts.came());
        interrupts.forget();
        assert!(!interrupts.came());
    }
}
