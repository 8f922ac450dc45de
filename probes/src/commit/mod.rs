#![doc = include_str!("../../../docs/probes/commit.md")]

mod beside;
mod burst;
mod clients;
mod delay;
mod group;
mod plan;
mod wal;

use crate::{
    contract::{Card, Case, Group, Lab, Probe, Run, Stop},
    facts::Facts,
    request::Request,
};

use self::clients::Clients;

/// What does group commit buy, and would `commit_delay`?
pub struct Commit;

static CARD: Card = Card {
    id: "commit",
    question: "what does group commit buy, and would commit_delay?",
    needs: &[],
    page: include_str!("../../../docs/probes/commit.md"),
};

impl Probe for Commit {
    fn card(&self) -> &'static Card {
        &CARD
    }

    fn plan(&self, request: &Request, _facts: &Facts) -> Vec<Group> {
        plan::groups(request)
    }

    fn open(&self, case: &Case, lab: &mut Lab<'_>) -> Result<Run, Stop> {
        Ok(Run::Alone(Box::new(Clients::open(case, lab)?)))
    }
}
