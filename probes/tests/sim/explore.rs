use super::noise::*;
use super::traces::*;
use fastrand::Rng;
use walprobe_probes::report::{Margins, Verdict};
use walprobe_probes::stats::paired::*;

pub fn explore() {
    let m = Margins::default();
    let mut all = MODELS.to_vec();
    all.push(POSITION);
    all.extend(TRACES);
    for cases in [2usize, 4] {
        for effect in [1.0, 1.1] {
            for random_end in [false, true] {
                for model in &all {
                    let runs = 4000;
                    let mut c = [[0usize; 4]; 4]; // strategy x verdict
                    let mut rounds_sum = 0;
                    let mut cover = [0; 4];
                    for seed in 0..runs {
                        let mut rng = Rng::with_seed(seed as u64 * 77 + 1);
                        let end = if random_end { rng.usize(12..=96) } else { 96 };
                        let mut world = (model.make)(cases * 96, &mut rng);
                        let mut logs = vec![Vec::new(); cases];
                        let mut frozen: Vec<Option<Judged>> = vec![None; cases];
                        let mut order: Vec<usize> = (0..cases).collect();
                        let mut r = 0;
                        let mut lastlook: Vec<Option<Judged>> = vec![None; cases];
                        let mut stop_f = 0;
                        while r < end {
                            rng.shuffle(&mut order);
                            let mut t = vec![0.0; cases];
                            for (p, &i) in order.iter().enumerate() {
                                t[i] = world.block(p == 0, &mut rng)
                                    * if i == 1 { effect } else { 1.0 };
                            }
                            for i in 1..cases {
                                logs[i].push((t[i] / t[0]).ln());
                            }
                            r += 1;
                            if is_look(r) {
                                let mut alls = true;
                                let mut allf = true;
                                for i in 1..cases {
                                    let j = judge(&logs[i], &m);
                                    lastlook[i] = Some(j);
                                    alls &= j.settled;
                                    if frozen[i].is_none() && j.settled {
                                        frozen[i] = Some(j);
                                    }
                                    allf &= frozen[i].is_some();
                                }
                                if allf && stop_f == 0 {
                                    stop_f = r;
                                }
                                if alls {
                                    break;
                                }
                            }
                        }
                        rounds_sum += r;
                        let all_j = judge(&logs[1], &m);
                        let f = frozen[1].unwrap_or(all_j);
                        let sticky = judge(&logs[1][..if stop_f > 0 { stop_f } else { r }], &m);
                        let ll = lastlook[1].unwrap_or(all_j);
                        for (k, j) in [f, all_j, sticky, ll].iter().enumerate() {
                            c[k][match j.verdict {
                                Verdict::Faster => 0,
                                Verdict::Slower => 1,
                                Verdict::Tie => 2,
                                _ => 3,
                            }] += 1;
                            let i = j.ratio.unwrap();
                            if i.low <= effect && effect <= i.high {
                                cover[k] += 1;
                            }
                        }
                    }
                    eprintln!(
                        "cases {cases} effect {effect} random_end {random_end} {:34} per 1000:",
                        model.name
                    );
                    for (k, n) in ["freeze", "rejudge", "sticky", "lastlook"]
                        .iter()
                        .enumerate()
                    {
                        let p = |x: usize| x as f64 * 1000.0 / runs as f64;
                        eprintln!(
                            "   {n:9} faster {:6.1} slower {:6.1} tie {:6.1} inc {:6.1} cover {:6.1}  rounds {:.1}",
                            p(c[k][0]),
                            p(c[k][1]),
                            p(c[k][2]),
                            p(c[k][3]),
                            p(cover[k]),
                            rounds_sum as f64 / runs as f64
                        );
                    }
                }
            }
        }
    }
}
