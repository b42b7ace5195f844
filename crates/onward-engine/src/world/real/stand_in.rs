//! The stand-in for agents and commands in a rehearsal: what is started in their place.

use std::{io, path::Path};

use onward_core::{
    launch::{Launch, Program},
    recovery::Probed,
};

/// Who plays whom.
#[derive(Clone, Debug)]
pub struct StandIn {
    /// The command that calls `care::rehearse::act`.
    pub argv: Vec<String>,
    /// Commands are played too, not agents alone.
    pub commands: bool,
    /// What a probe of a played effect says; it is given the run's directory.
    pub probe: fn(&Path) -> io::Result<Probed>,
}

impl StandIn {
    /// Takes the place of a command where it is to; an agent's command is the stand-in already. No
    /// check could agree with what is made up.
    pub(crate) fn take_part(&self, launch: &mut Launch) {
        match &launch.program {
            Program::Argv(_) | Program::Shell(_) if self.commands => {
                launch.program = Program::Argv(self.argv.clone());
                launch.check = None;
            }
            Program::Agent(_) => launch.check = None,
            Program::Argv(_) | Program::Shell(_) | Program::Call { .. } => {}
        }
    }
}
