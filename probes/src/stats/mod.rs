//! Intervals, paired comparison, drift, histograms: pure functions of numbers.
pub mod histogram;
