//! A run of the worker in this process, and what it measured.

use std::{collections::BTreeMap, sync::Mutex};

use walprobe_probes::{
    PROBES, contract::Pulse, event::Event, report::Row, request::Request, worker,
};

/// The last rows told, by `COMPARISON/CASE`.
pub(crate) fn measured(request: &Request) -> BTreeMap<String, Row> {
    measured_until(request, &Pulse::default())
}

/// The same of a run that `pulse` may end.
pub(crate) fn measured_until(request: &Request, pulse: &Pulse) -> BTreeMap<String, Row> {
    let rows = Mutex::new(BTreeMap::new());
    worker::run(PROBES, request, pulse, &|event| match event {
        Event::Rows { rows: told, .. } => {
            let named = told
                .iter()
                .map(|row| (format!("{}/{}", row.comparison, row.case), row.clone()));
            rows.lock().unwrap().extend(named);
        }
        Event::Refused { message, .. } => panic!("refused: {message}"),
        _ => {}
    });
    rows.into_inner().unwrap()
}
