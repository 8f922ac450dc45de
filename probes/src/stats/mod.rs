//! Intervals, paired comparison, drift, histograms: pure functions of numbers.
//!
//! No clock, no files, no randomness but a given seed. `docs/method.md` tells what each
//! rests on and what it was seen to do in the simulations of `tests/simulations.rs`.

pub mod distribution;
pub mod drift;
pub mod histogram;
pub mod hodges_lehmann;
pub mod paired;
pub mod quantile;
