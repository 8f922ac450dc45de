#![doc = include_str!("../../../docs/probes/align.md")]

mod direct;
mod ground;
mod plan;
mod record;
mod sweep;

use serde_json::Value;

use crate::{
    contract::{Card, Case, Group, Lab, Probe, Run, Stop},
    facts::Facts,
    request::Request,
};

/// What is the smallest write that needs no read first?
pub struct Align;

static CARD: Card = Card {
    id: "align",
    question: "what is the smallest write that needs no read first, and is the reported block size true?",
    needs: &[],
    page: include_str!("../../../docs/probes/align.md"),
};

impl Probe for Align {
    fn card(&self) -> &'static Card {
        &CARD
    }

    fn plan(&self, request: &Request, facts: &Facts) -> Vec<Group> {
        plan::groups(request, facts)
    }

    fn open(&self, case: &Case, lab: &mut Lab<'_>) -> Result<Run, Stop> {
        Ok(match case.name.as_str() {
            plan::RECORD => Run::Once(Box::new(record::Record::open(case, lab)?)),
            plan::DIRECT => Run::Once(Box::new(direct::Direct::open(case, lab)?)),
            _ => Run::Alone(Box::new(sweep::Sweep::open(case, lab)?)),
        })
    }
}

/// A case's param that is a number; 0 where it has none of that name.
fn number(case: &Case, name: &str) -> u64 {
    case.params.get(name).and_then(Value::as_u64).unwrap_or(0)
}
