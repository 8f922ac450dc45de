#![doc = include_str!("../../../docs/probes/recycle.md")]

mod beside;
mod chunks;
mod life;
mod olds;
mod overwrite;
mod plan;
mod walk;

use serde_json::Value;

use crate::{
    contract::{Card, Case, Group, Lab, Probe, Run, Stop},
    facts::Facts,
    request::Request,
    segment::Init,
};

use life::Life;
use overwrite::Overwrite;

/// Is an old segment cheaper to overwrite than a new one is to make?
pub struct Recycle;

static CARD: Card = Card {
    id: "recycle",
    question: "is an old, cold segment cheaper to overwrite than a new one is to make?",
    needs: &[],
    page: include_str!("../../../docs/probes/recycle.md"),
};

/// Lives: how each case gets its segment, an old one or a new one made by a method.
const LIVES: [(&str, Option<Init>); 5] = [
    ("recycle+zero@cold", None),
    ("recycle+zero@warm", None),
    ("recycle+zero", None),
    ("new+zero", Some(Init::ZeroFill)),
    ("new+sparse", Some(Init::Sparse)),
];

impl Probe for Recycle {
    fn card(&self) -> &'static Card {
        &CARD
    }

    fn plan(&self, request: &Request, facts: &Facts) -> Vec<Group> {
        plan::groups(request, facts)
    }

    fn open(&self, case: &Case, lab: &mut Lab<'_>) -> Result<Run, Stop> {
        Ok(
            match LIVES.iter().find(|(name, _)| *name == case.method()) {
                Some((_, init)) => Run::Alone(Box::new(Life::open(case, *init, lab)?)),
                None => Run::Alone(Box::new(Overwrite::open(case, lab)?)),
            },
        )
    }
}

/// A case's param that is a number; 0 where it has none of that name.
fn number(case: &Case, name: &str) -> u64 {
    case.params.get(name).and_then(Value::as_u64).unwrap_or(0)
}
