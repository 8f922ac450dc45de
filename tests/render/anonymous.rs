//! Anonymous reports: no name is left, and what is left holds together.

use super::*;
use walprobe::anonymous::anonymous;
use walprobe::render::document;

/// A report full of names, with two directories on one filesystem.
fn named() -> Report {
    let mut report = reports::two_targets();
    report.host.name = Some("quaint-host".to_owned());
    report.tool.argv = ["/opt/quaint/walprobe", "all", "/srv/quaint/a", "quaint-b"]
        .map(str::to_owned)
        .to_vec();
    report.host.facts.insert(
        "host.preload".to_owned(),
        fact("/opt/quaint/libeat.so", "/proc/self/environ"),
    );
    for (target, dir) in report
        .targets
        .iter_mut()
        .zip(["/srv/quaint/a", "/home/quaint-b"])
    {
        target.dir = dir.to_owned();
        target.reason = Some(format!("pwrite of {dir}/seg-1: EIO on quaint-host"));
        target.left_behind = vec![format!("{dir}/.walprobe-01JDW3K9ZQ4T")];
        for (name, value) in [
            ("target.path", dir),
            ("mount.point", "/srv/quaint"),
            ("mount.source", "/dev/mapper/quaint--host-root"),
            ("mount.options", "rw,data=ordered,subvol=/quaint"),
            ("zfs.dataset", "quaint/data"),
            ("overlay.upper", "/var/quaint/upper"),
        ] {
            let source = "/sys/fs/cgroup/quaint.slice/x";
            target.facts.insert(name.to_owned(), fact(value, source));
        }
        for device in &mut target.devices {
            device.backing = device
                .backing
                .as_ref()
                .map(|_| "/srv/quaint.img".to_owned());
        }
        for (at, ground) in target.durability.grounds.iter_mut().enumerate() {
            ground.source = "/srv/quaint.img, /proc/self/mountinfo".to_owned();
            if at == 0 {
                ground.value = "/srv/quaint".into();
            }
        }
        for not in &mut target.not_tested {
            not.hint = Some(format!("walprobe all {dir}; see /usr/quaint/doc"));
        }
    }
    report.targets[0].durability.grounds[0].evidence =
        Some("/targets/0/facts/mount.point/value".to_owned());
    report
}

fn fact(value: &str, source: &str) -> walprobe_probes::report::Fact {
    walprobe_probes::report::Fact {
        value: value.into(),
        source: source.to_owned(),
        why: None,
    }
}

fn given() -> Vec<String> {
    ["/srv/quaint/a", "quaint-b"].map(str::to_owned).to_vec()
}

#[test]
fn no_name_is_left_in_any_format() {
    let open = named();
    let hidden = anonymous(&open, &given()).unwrap();
    assert_eq!(hidden.host.name, None);
    for renderer in RENDERERS {
        let format = renderer.name();
        assert!(render(format, &open, None).contains("quaint"), "{format}");
        let text = render(format, &hidden, None);
        let found = text.lines().find(|l| l.contains("quaint"));
        assert_eq!(found, None, "{format}");
        assert!(text.contains("DIR-1") && text.contains("DIR-2"), "{format}");
    }
}

#[test]
fn what_belongs_together_still_shows() {
    let hidden = anonymous(&named(), &given()).unwrap();
    assert_eq!(hidden.tool.argv, ["walprobe", "all", "DIR-1", "DIR-2"]);
    assert_eq!(hidden.host.facts["host.preload"].value, "libeat.so");
    let of = |at: usize, name: &str| hidden.targets[at].facts[name].value.clone();
    for (name, value) in [
        ("mount.point", "MOUNT-1"),
        ("mount.source", "SOURCE-1"),
        ("mount.options", "rw,data=ordered,subvol=HIDDEN"),
    ] {
        assert_eq!((of(0, name), of(1, name)), (value.into(), value.into()));
    }
    let target = &hidden.targets[0];
    assert_eq!(target.left_behind, ["DIR-1/.walprobe-01JDW3K9ZQ4T"]);
    assert_eq!(
        target.reason.as_deref(),
        Some("pwrite of DIR-1/seg-1: EIO on HOST")
    );
}

#[test]
fn figures_and_evidence_stay() {
    for (name, open) in fixtures().into_iter().chain([("named", named())]) {
        let hidden = anonymous(&open, &[]).unwrap();
        let before = check_evidence(&document(&open).unwrap()).len();
        let wrong = check_evidence(&document(&hidden).unwrap());
        // The name that is stated as evidence of the fixture was never a figure's.
        assert!(wrong.len() <= before, "{name}: {wrong:?}");
        let known = vocabulary::check_vocabulary(&document(&open).unwrap());
        let new = vocabulary::check_vocabulary(&document(&hidden).unwrap());
        assert_eq!(new, known, "{name}");
        for (a, b) in open.targets.iter().zip(&hidden.targets) {
            assert_eq!(a.rows.len(), b.rows.len(), "{name}");
            for (a, b) in a.rows.iter().zip(&b.rows) {
                let ids = |r: &Row| (r.probe.clone(), r.comparison.clone(), r.case.clone());
                assert_eq!((ids(a), a.p50_us, a.ratio), (ids(b), b.p50_us, b.ratio));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_report_can_be_anonymous(report in generated::report()) {
        let dirs: Vec<String> = report.targets.iter().map(|t| t.dir.clone()).collect();
        let hidden = anonymous(&report, &dirs).unwrap();
        prop_assert_eq!(&hidden.host.name, &None);
        for (at, target) in hidden.targets.iter().enumerate() {
            prop_assert_eq!(&target.dir, &walprobe::anonymous::directory(at));
        }
        // Once is enough.
        let again = anonymous(&hidden, &[]).unwrap();
        prop_assert_eq!(again.targets.len(), hidden.targets.len());
    }
}
