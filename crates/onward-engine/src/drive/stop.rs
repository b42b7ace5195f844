//! What people ask of a run that is driven: answers, a pause, the end.
//!
//! Invariant: a stop is over when nothing runs any more, and only then is it written down.

use onward_core::{
    event::{EndStatus, Event, PauseCause},
    plan::Status,
    state::{Phase, RunStatus, StepState},
    time::Timestamp,
};

use super::{Driver, gate};
use crate::world::{Request, Stop, World};

/// What was asked about the run as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stopping {
    No,
    /// Nothing new starts; what runs has until then, if there is a then.
    Draining {
        why: StopWhy,
        until: Option<Timestamp>,
    },
    /// The stop ladder is under way.
    Ending {
        why: StopWhy,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StopWhy {
    Interrupted,
    Paused,
    Cancelled,
}

impl<W: World> Driver<'_, W> {
    pub(super) fn asked(&mut self, request: Request) -> Result<(), Stop> {
        match request {
            Request::Pause => {
                if self.stop != Stopping::No {
                    return Ok(());
                }
                self.drain(StopWhy::Paused, None);
                self.note_while_running("pausing: what runs finishes first, then the run stops")
            }
            Request::Cancel => {
                self.begin_ending(StopWhy::Cancelled);
                Ok(())
            }
            Request::Unattended => {
                self.facts.attended = false;
                Ok(())
            }
            Request::Decide { step, option, comment, by, hash } => {
                let answer = gate::Answer { step, option, comment, by, hash };
                match gate::decided(self.world, &self.run, answer)? {
                    Ok(events) => events.into_iter().try_for_each(|event| self.record(event)),
                    Err(refused) => {
                        let text = format!("an answer was refused: {refused}");
                        self.record(Event::Note { text, step: None })?;
                        // The person who answered is shown what there is now.
                        refused.reopened().map_or(Ok(()), |event| self.record(event))
                    }
                }
            }
        }
    }

    fn drain(&mut self, why: StopWhy, until: Option<Timestamp>) {
        self.end_ahead();
        self.facts.draining = true;
        self.stop = Stopping::Draining { why, until };
    }

    /// A person asked to cancel, or answered a gate so, all attempts have ended, and some came to
    /// nothing.
    pub(super) fn leaves_half_done(&self) -> bool {
        let (Stopping::Draining { why, .. } | Stopping::Ending { why }) = self.stop else {
            return false;
        };
        let state = &self.run.state;
        let is_idle = state.running == 0 && self.announced.is_empty();
        let is_left = |it: &StepState| it.phase == Phase::Failed && it.started.is_some();
        why == StopWhy::Cancelled
            && is_idle
            && self.how.options.ending.is_none()
            && state.status == RunStatus::UnderWay
            && state.steps.noteworthy().any(|(_, entry)| is_left(entry))
    }

    /// This driver was only called to bring the run to its end.
    #[must_use]
    pub(crate) fn asked_to_end(mut self) -> Self {
        if self.how.options.ending.is_some() {
            self.begin_ending(StopWhy::Cancelled);
        }
        self
    }

    pub(super) fn begin_ending(&mut self, why: StopWhy) {
        self.end_ahead();
        self.facts.draining = true;
        let under_way = matches!(self.stop, Stopping::Ending { .. });
        self.stop = Stopping::Ending { why };
        if !under_way {
            self.ending_asked = true;
        }
    }

    pub(super) fn interrupted(&mut self) -> Result<(), Stop> {
        match self.stop {
            // A pause sets no limit of time: the interruption after it is the first one.
            Stopping::No | Stopping::Draining { why: StopWhy::Paused, .. } => {
                let grace_ms = self.how.options.grace_ms;
                let until = self.world.now().plus_ms(grace_ms);
                self.drain(StopWhy::Interrupted, Some(until));
                self.note_while_running(&format!(
                    "interrupted: what runs gets {} s to finish; Ctrl-C again stops it now",
                    grace_ms / 1000
                ))
            }
            Stopping::Draining { why, .. } => {
                self.begin_ending(why);
                Ok(())
            }
            Stopping::Ending { .. } => Ok(()),
        }
    }

    fn note_while_running(&mut self, text: &str) -> Result<(), Stop> {
        let note = Event::Note { text: text.to_owned(), step: None };
        if self.run.state.running > 0 { self.record(note) } else { Ok(()) }
    }

    /// Moves a stop on: the grace is over, or nothing runs any more.
    pub(super) fn conclude_stop(&mut self) -> Result<(), Stop> {
        if let Stopping::Draining { why, until: Some(until) } = self.stop
            && self.run.state.running > 0
            && self.world.now() >= until
        {
            self.begin_ending(why);
        }
        let why = match self.stop {
            Stopping::No => return Ok(()),
            Stopping::Draining { why, .. } | Stopping::Ending { why } => why,
        };
        if self.run.state.running > 0 || self.run.state.status != RunStatus::UnderWay {
            return Ok(());
        }
        // What ended in its grace was the last of it: nothing is left to be resumed.
        let is_through = self.run.graph.root().is_settled();
        self.record(match why {
            StopWhy::Interrupted | StopWhy::Paused if is_through => {
                Event::RunEnded { status: EndStatus::Completed, why: None }
            }
            StopWhy::Interrupted => {
                Event::RunPaused { cause: PauseCause::Interrupted, until: None }
            }
            StopWhy::Paused => Event::RunPaused { cause: PauseCause::Asked, until: None },
            StopWhy::Cancelled => {
                let asked = || "cancelled by a person".to_owned();
                let why = Some(self.how.options.ending.clone().unwrap_or_else(asked));
                Event::RunEnded { status: EndStatus::Cancelled, why }
            }
        })
    }

    pub(super) fn over(&self) -> Option<Status> {
        match self.run.state.status {
            RunStatus::Paused { .. } | RunStatus::Ended { .. } => {
                Some(Status::of(&self.run.state, false))
            }
            RunStatus::Unopened | RunStatus::UnderWay => None,
        }
    }

    /// A stop that was asked of hands that are gone is asked of the new ones.
    pub(crate) fn ask_again_to_stop(&mut self) {
        self.ending_asked |= matches!(self.stop, Stopping::Ending { .. });
    }
}
