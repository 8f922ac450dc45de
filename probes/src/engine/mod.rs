//! Owns clock, order, repetition and counters; drives trials and turns what they did into rows.
//!
//! [`rounds`] drives one group: calibration ([`sizing`]), then rounds of blocks in seeded random
//! order, each block settled before the next; after each look the judged comparisons are asked
//! whether they are settled. [`rows`] turns what a case yielded into the report's rows.
//! [`schedule`] shares time and budget among groups. Everything the engine needs of the world
//! stands behind the traits of [`crate::contract`], so a scripted fake target drives all of it.
pub mod case;
pub mod clock;
pub mod counters;
pub mod doubts;
mod knee;
pub mod lap;
pub mod rounds;
pub mod rows;
pub mod schedule;
pub mod settle;
pub mod sizing;
pub mod tally;
pub mod world;
