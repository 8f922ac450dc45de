//! Owns clock, order, repetition and counters; drives trials and turns what they did into rows.
pub mod lap;
pub mod tally;
