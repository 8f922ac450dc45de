//! Intervals, paired comparison, drift, histograms: pure functions of numbers.
pub mod drift;
pub mod histogram;
pub mod paired;
pub mod quantile;
