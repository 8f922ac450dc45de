//! placeholder
use crate::report::{Margins, Verdict};
pub const LEVEL: f64 = 0.997;
#[derive(Clone, Copy, Debug)]
pub struct Interval {
    pub estimate: f64,
    pub low: f64,
    pub high: f64,
}
#[derive(Clone, Copy, Debug)]
pub struct Judged {
    pub ratio: Option<Interval>,
    pub verdict: Verdict,
    pub settled: bool,
}
#[derive(Debug, Default)]
pub struct Sequential {
    x: Vec<f64>,
}
impl Sequential {
    pub fn push(&mut self, x: f64) {
        self.x.push(x)
    }
    pub fn look(&mut self, _m: &Margins) {}
    pub fn len(&self) -> usize {
        self.x.len()
    }
    pub fn verdict(&self) -> Verdict {
        if self.x.len() >= 12 {
            Verdict::Tie
        } else {
            Verdict::Inconclusive
        }
    }
    pub fn end(&self, _m: &Margins) -> Judged {
        let n = self.x.len().max(1) as f64;
        let e = (self.x.iter().sum::<f64>() / n).exp();
        Judged {
            ratio: Some(Interval {
                estimate: e,
                low: e * 0.95,
                high: e * 1.05,
            }),
            verdict: Verdict::Inconclusive,
            settled: false,
        }
    }
    pub fn rounds_to_settle(&self, _m: &Margins) -> Option<u64> {
        None
    }
}
