#[path = "sim/explore.rs"]
mod explore;
#[path = "sim/noise.rs"]
mod noise;
#[path = "sim/traces.rs"]
mod traces;
#[test]
fn explore_it() {
    explore::explore();
}
