//! What a real world must know before it is entered.

use std::{collections::BTreeMap, ffi::OsString};

use onward_core::time::Timestamp;

use super::stand_in::StandIn;
use crate::{
    agents::{Adapters, Continuations},
    world::supervisor::Place,
};

/// What a world must know.
#[derive(Clone, Debug)]
pub struct Setup {
    pub place: Place,
    /// The environment we were started in: children inherit it, and secrets are found in it.
    pub env: Vec<(OsString, OsString)>,
    /// The command that runs the hidden subcommand; the place is added to it.
    pub supervise: Vec<OsString>,
    /// The command that takes a snapshot; what of is added to it. Empty = none is taken after
    /// an attempt.
    pub snapshot: Vec<OsString>,
    /// The command that runs a built-in function; its name is added to it.
    pub call: Vec<OsString>,
    pub agents: BTreeMap<String, Vec<String>>,
    pub continuations: Continuations,
    /// The names of the agents' adapters, where they are not the default.
    pub adapters: Adapters,
    /// What a person said to measure ages against.
    pub now: Option<Timestamp>,
    /// SIGINT and SIGTERM become inputs, and SIGHUP ends nothing.
    pub catch_signals: bool,
    /// Hears what a world without watchers waits for.
    pub tell: Option<fn(&str)>,
    /// Who plays the agents and commands, in a rehearsal.
    pub stand_in: Option<StandIn>,
}
