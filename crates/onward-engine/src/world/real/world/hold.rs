//! Taking hold of the supervisor: at once, or when it is first asked for anything; and letting go.

use onward_core::state::State;

use super::RealWorld;
use crate::world::{
    Connected, Stop, inbox,
    known::Begun,
    real::{disk::io_stop, grip, news::while_waiting},
    supervisor::Hands,
};

impl RealWorld {
    pub(super) fn hands(&mut self) -> Result<&mut Hands, Stop> {
        if let Some(epoch) = self.later.take() {
            self.take_hands(epoch, &State::default())?;
        }
        self.hands.as_mut().ok_or_else(|| Stop::Hands("the engine is not connected to it".into()))
    }

    /// What is not the supervisor's: a person is heard from here on.
    pub(super) fn get_ready(&mut self) -> Result<(), Stop> {
        let run_dir = self.place.run_dir.clone();
        self.hear_person()?;
        self.redactor.keep(&run_dir).map_err(io_stop("keep digests in", &run_dir))?;
        self.looker.try_out(&run_dir);
        Ok(())
    }

    pub(super) fn take_hands(&mut self, epoch: u32, told: &State) -> Result<Connected, Stop> {
        let env = self.env.clone();
        let watchers = (self.sink.as_mut(), self.tell);
        let mut meanwhile = while_waiting(&mut self.inputs, self.catch_signals, watchers);
        let (place, supervise) = (&self.place, &self.supervise);
        let (mut hands, connected) =
            grip::connect(place, told, epoch, env, supervise, &mut meanwhile)?;
        drop(meanwhile);
        // What a dead supervisor left has worked on until it was ended just now.
        self.trees.forget();
        let heard = hands.ears().map_or(Ok(()), |ears| self.inputs.hear_hands(ears));
        heard.map_err(io_stop("listen to the supervisor of", &self.place.run_dir))?;
        self.hands = Some(hands);
        Ok(connected)
    }

    /// The driver is through: requests are removed, the journal gets its true length, and a
    /// supervisor without children leaves.
    pub fn finish(self) -> Result<(), Stop> {
        self.finish_known().map(drop)
    }

    /// The same; what is known of the journal comes back.
    pub(crate) fn finish_known(mut self) -> Result<Option<Begun>, Stop> {
        inbox::remove_all(&mut self.taken)?;
        let begun = self.disk.close_journal()?;
        if let Some(hands) = &mut self.hands {
            // Whether it hears that or not, it leaves by itself a little later.
            let _ = hands.shutdown();
        }
        Ok(begun)
    }
}
