//! What `shale simulate` foresees for the scenarios of `cargo xtask plan`. A change of the policies
//! changes figures: `SHALE_BLESS=1` writes them anew, and the difference is for the reviewer.

mod common;

use common::done;
use serde_json::Value;
use std::path::Path;

const SCENARIOS: &str = include_str!("plan/scenarios.txt");
/// Figures may differ by this much from those that were kept: machines' `exp` and `ln` differ.
const NEAR: f64 = 0.02;

/// What is kept of a forecast, with how much of it is as good as nothing.
const FIGURES: [(&str, f64); 7] = [
    ("write_amp", 0.01),
    ("space_bytes", 1e6),
    ("space_peak_bytes", 1e6),
    ("cores", 0.01),
    ("device_written_bytes_per_second", 1e3),
    ("slowed_share", 0.005),
    ("most/bytes_per_second", 1e3),
];

fn figures(flags: &str) -> Vec<f64> {
    let ask = ["--json", "simulate", "--care", "little"].into_iter().chain(flags.split(' '));
    let ask: Vec<&str> = ask.collect();
    let value: Value = serde_json::from_str(&done(Path::new("."), &ask)).unwrap();
    let of = |name: &str| value.pointer(&format!("/{name}")).and_then(Value::as_f64).unwrap();
    FIGURES.iter().map(|(name, _)| of(name)).collect()
}

/// As kept: a line for each scenario, four digits of each figure.
fn kept(text: &str) -> Vec<(String, Vec<f64>)> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let figures = |text: &str| text.split_whitespace().map(|word| word.parse().unwrap()).collect();
    lines.filter_map(|line| line.split_once(':')).map(|(n, f)| (n.to_owned(), figures(f))).collect()
}

#[test]
fn figures_are_as_they_were_kept() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plan/figures.txt");
    let scenarios = SCENARIOS.lines().filter(|line| !line.starts_with('#'));
    let told: Vec<(String, Vec<f64>)> = scenarios
        .filter_map(|line| line.split_once(": "))
        .map(|(name, flags)| (name.to_owned(), figures(flags)))
        .collect();
    assert!(told.len() >= 6, "{SCENARIOS}");
    if std::env::var_os("SHALE_BLESS").is_some() {
        let names: Vec<&str> = FIGURES.iter().map(|(name, _)| *name).collect();
        let mut text =
            "# What tests/plan.rs keeps, made by it with SHALE_BLESS=1. After each name:\n"
                .to_owned();
        for names in names.chunks(4) {
            text.push_str(&format!("# {}\n", names.join(" ")));
        }
        for (name, figures) in &told {
            let figures: Vec<String> = figures.iter().map(|one| format!("{one:.3e}")).collect();
            text.push_str(&format!("{name}: {}\n", figures.join(" ")));
        }
        std::fs::write(&path, text).unwrap();
    }
    let kept = kept(&std::fs::read_to_string(&path).unwrap());
    assert_eq!(
        told.iter().map(|one| &one.0).collect::<Vec<_>>(),
        kept.iter().map(|one| &one.0).collect::<Vec<_>>(),
        "the scenarios have changed: SHALE_BLESS=1"
    );
    let mut changed = String::new();
    for ((scenario, told), (_, kept)) in told.iter().zip(&kept) {
        assert_eq!(told.len(), kept.len(), "{scenario}: SHALE_BLESS=1");
        for (((figure, nothing), told), kept) in FIGURES.iter().zip(told).zip(kept) {
            if (told - kept).abs() > NEAR * kept.abs() + nothing {
                changed.push_str(&format!("{scenario}: {figure} was {kept:e}, is {told:e}\n"));
            }
        }
    }
    assert!(
        changed.is_empty(),
        "a policy, or the model, has changed what is foreseen:\n{changed}If that was meant, \
         SHALE_BLESS=1 cargo test -p shaledb-cli --test plan keeps it. `cargo xtask plan --against \
         main` draws it"
    );
}
