//! What a driver tells those who watch it.

use super::inputs::Inputs;
use crate::world::Stop;

/// See the module.
#[derive(Clone, Copy, Debug)]
pub enum News<'a> {
    /// Durable journal lines, whole ones.
    Lines(&'a [u8]),
    /// What it waits for before it can write anything.
    Waits(&'a str),
}

/// Takes what a driver tells.
pub type Sink = Box<dyn FnMut(News<'_>) + Send>;

/// Who is told: those who watch a driver, or else those the machine names.
pub(super) type Watchers<'a> = (Option<&'a mut Sink>, Option<fn(&str)>);

/// What is done while another program is waited for: it is said for what, and a person may
/// interrupt.
pub(super) fn while_waiting<'a>(
    inputs: &'a mut Inputs,
    catch_signals: bool,
    (mut sink, tell): Watchers<'a>,
) -> impl FnMut(Option<&str>) -> Result<(), Stop> + 'a {
    let mut rest = inputs.rest();
    move |words| {
        if let Some(words) = words {
            if catch_signals {
                rest.hear_signals();
            }
            match (sink.as_mut(), tell) {
                (Some(sink), _) => sink(News::Waits(words)),
                (None, Some(tell)) => tell(words),
                (None, None) => {}
            }
        }
        if rest.is_interrupted() { Err(Stop::Interrupted) } else { Ok(()) }
    }
}
