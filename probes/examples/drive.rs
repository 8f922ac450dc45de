use walprobe_probes::{contract::Pulse, request::*, event::Event, worker};
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let profile = match a.get(2).map(String::as_str) { Some("quick") => Profile::Quick, Some("thorough") => Profile::Thorough, _ => Profile::Normal };
    let r = Request { dir: a[1].clone(), run_id: "0123456789AB".into(), probes: ["durability","sync","prealloc","recycle"].map(String::from).to_vec(), only: a.iter().skip(3).cloned().collect(), skip: vec![], profile, time_s: profile.seconds(), budget_bytes: profile.budget_bytes(), seed: 7, drop_caches: DropCaches::Auto, commit_bytes: None, segment_bytes: 16<<20, force: false, dry_run: false, op_timeout_s: 60.0 };
    let start = std::time::Instant::now();
    worker::run(&r, &Pulse::default(), &|e: &Event| match e {
        Event::Rows { rows, done: true } => for r in rows {
            println!("{:6.1}s {}/{}/{} {:?} {} ops={} rounds={} mean={:?} p50={:?} p99={:?} ratio={:?} [{:?},{:?}] {:?} fl/op={:?} dbw={:?} cold={:?} unw={:?} ext={:?} obs={} doubts={:?}", start.elapsed().as_secs_f64(), r.probe, r.comparison, r.case, r.status, r.reason.clone().unwrap_or_default(), r.ops, r.rounds, r.mean_us.map(|u| u.as_us()), r.p50_us.map(|u| u.as_us()), r.p99_us.map(|u|u.as_us()), r.ratio, r.ratio_low, r.ratio_high, r.verdict, r.flushes_per_op, r.device_bytes_written.map(|b| b / r.ops.max(1)), r.cold, r.unwritten_pct, r.extents, serde_json::to_string(&r.observations).unwrap(), r.doubts.iter().map(|d| format!("{}={:?}", d.code, d.value)).collect::<Vec<_>>());
        },
        Event::Durability { durability } => println!("{}", serde_json::to_string(durability).unwrap()),
        Event::Done { .. } | Event::Refused { .. } | Event::Note { .. } => println!("{:6.1}s {}", start.elapsed().as_secs_f64(), serde_json::to_string(e).unwrap()),
        _ => {}
    });
}
