//! placeholder
pub struct Drift {
    pub pct: f64,
}
pub struct Change {
    pub at: usize,
    pub factor: f64,
}
pub fn drift(_m: &[f64]) -> Option<Drift> {
    None
}
pub fn burst_ended(_m: &[f64]) -> Option<Change> {
    None
}
