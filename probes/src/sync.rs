#![doc = include_str!("../../docs/probes/sync.md")]

pub(crate) mod behaviour;
pub(crate) mod pattern;
mod plan;
mod walk;
pub(crate) mod way;

use crate::{
    contract::{Card, Case, Group, Lab, Probe, Run, Stop},
    facts::Facts,
    request::Request,
};

use self::{pattern::Pattern, walk::Walk};

/// Which wal_sync_method makes a commit durable soonest?
pub struct Sync;

static CARD: Card = Card {
    id: "sync",
    question: "which wal_sync_method makes a commit durable soonest?",
    needs: &[],
    page: include_str!("../../docs/probes/sync.md"),
};

impl Probe for Sync {
    fn card(&self) -> &'static Card {
        &CARD
    }

    fn plan(&self, request: &Request, _facts: &Facts) -> Vec<Group> {
        plan::groups(request)
    }

    fn open(&self, case: &Case, lab: &mut Lab<'_>) -> Result<Run, Stop> {
        if let Some(study) = behaviour::open(case, lab)? {
            return Ok(Run::Once(study));
        }
        let broken = || Stop::Broken(format!("no case {}", case.name));
        let way = plan::way(case).ok_or_else(broken)?;
        let pattern = Pattern::of(case).ok_or_else(broken)?;
        Ok(Run::Alone(Box::new(Walk::open(case, way, pattern, lab)?)))
    }
}
