//! What the simulations share: noise, recorded traces, and groups of cases measured as the
//! engine measures them.

pub(crate) mod blocks;
pub(crate) mod figures;
pub(crate) mod group;
pub(crate) mod noise;
pub(crate) mod traces;
