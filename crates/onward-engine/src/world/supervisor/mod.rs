//! The hands of a run: a process of its own that holds the children, so that they outlive the
//! engine and nothing of theirs outlives them.
//!
//! - [`supervise`] is the process itself, a single-threaded loop; [`Hands`] is the engine's end,
//!   [`Ears`] how it hears.
//! - [`seals`] is its log `exits.jsonl`, [`orphans`] what to do after its death.
//! - `work` holds the attempts, `attempt` one of them, `descendants` whatever they left behind,
//!   `serve` the socket and the loop, `birth` the beginning of a child. What only Linux can do is
//!   in `linux`.
//!
//! Invariant: no process is signalled whose identity is not proved, and an attempt is sealed only
//! after its last descendant is gone.

mod attempt;
mod birth;
mod capture;
mod cgroup;
mod descendants;
mod ears;
mod hands;
mod linux;
pub mod orphans;
mod place;
pub mod seals;
mod serve;
mod settle;
mod spawn;
mod wire;
mod work;

pub use ears::Ears;
pub use hands::{Hands, HandsConfig, HandsError, HandsEvent, Welcome};
pub(crate) use linux::random;
pub use linux::{Identity, boot_id};
pub use onward_core::launch::StopSignal;
pub use place::{Place, PlaceError, Whereabouts, socket_dir_of_this_user};
pub use serve::{SuperviseConfig, SuperviseError, supervise};
pub(crate) use spawn::is_inside;
pub use wire::{Alive, Stop};
