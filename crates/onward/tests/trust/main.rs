//! What broke when strangers attacked the program, each as a test named by its number in the list
//! of findings: `a1_…` to `a27_…` the plan, `b1_…` to `b9_…` what is finished, `c1_…` to `c8_…`
//! strangers, `d_…` manners, `e3_…` to `e22_…` a second attack; `f_promises` has what a third one
//! found about them; `g_rows` and `g_undo` what a fourth one found about rows of a plan and undos;
//! `h_writers` what a fifth one found about files that several steps write; `i_whens` conditions of
//! steps to come; `i_living` steps that write while the run is looked at; `i_effects` work in
//! flight that rests on what changed, or is half done; `j_hands` what people change where a plan
//! could not see it.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod a_commands;
mod a_groups;
mod a_plan;
mod a_random;
mod b_power;
mod b_removed;
mod b_seals;
mod b_tail;
mod b_work;
mod c_bounds;
mod c_files;
mod c_looking;
mod c_secrets;
mod c_shell;
mod chance;
mod d_counts;
mod d_face;
mod d_json;
mod d_keys;
mod d_limits;
mod d_manners;
mod d_narrow;
mod d_newcomer;
mod d_pictures;
mod d_reader;
mod d_resize;
mod d_screens;
mod d_shells;
mod d_stumbles;
mod d_watch;
mod d_words;
mod e_ahead;
mod e_copies;
mod e_counts;
mod e_limits;
mod e_links;
mod e_shell;
mod e_undo;
mod f_hands;
mod f_promises;
mod g_rows;
mod g_undo;
mod h_writers;
mod i_effects;
mod i_living;
mod i_redo;
mod i_whens;
mod j_hands;
mod paste;
mod soak;
#[expect(dead_code, reason = "other tests use the rest")]
#[path = "../support/mod.rs"]
mod support;

use support::bench;
