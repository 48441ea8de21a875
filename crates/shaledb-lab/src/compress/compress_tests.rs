use super::*;
use clap::Parser;
use std::collections::BTreeSet;

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    compress: CompressOptions,
    #[command(flatten)]
    campaign: CampaignOptions,
}

fn parse(flags: &[&str]) -> Command {
    Command::parse_from([&["x"], flags].concat())
}

#[test]
fn the_choices_are_all_of_them() {
    let names = |flags: &[&str]| -> Vec<String> {
        parse(flags).compress.choices().unwrap().iter().map(CodecNames::to_string).collect()
    };
    assert_eq!(
        names(&[]),
        [
            "none,lz4,zstd:3",
            "none,lz4,zlib:1",
            "none,lz4,zlib:6",
            "lz4,lz4,zstd:3",
            "lz4,lz4,zlib:1",
            "lz4,lz4,zlib:6",
        ]
    );
    assert_eq!(names(&["--upper", "lz4", "--bottommost", "lz4"]), ["lz4"]);
    let wrong = parse(&["--bottommost", "zstd:3,brotli"]).compress.choices().unwrap_err();
    assert!(wrong.contains("`brotli`"), "{wrong}");
}

#[test]
fn each_workload_is_a_group_in_which_all_choices_take_turns() {
    let command = parse(&["--engines", "shale,rocksdb", "--bottommost", "zstd:3,zlib:1"]);
    let groups = command.compress.groups(&command.campaign, &Setup::default()).unwrap();
    let names: Vec<&str> = groups.iter().map(|group| group.workload.name()).collect();
    assert_eq!(names, ["linkbench", "insert", "kv"]);
    for group in &groups {
        assert_eq!(group.subjects.len(), 8);
        let subject = &group.subjects[5];
        assert_eq!(
            (subject.engine.as_str(), subject.setting.as_str()),
            ("rocksdb", "none,lz4,zlib:1")
        );
        assert_eq!(subject.setup.codecs.bottommost, "zlib:1");
    }
    let steps: Vec<String> = groups[1].workload.steps().into_iter().map(|step| step.name).collect();
    assert_eq!(steps, ["l.i0", "l.x", "l.i1", "qr100"]);
}

#[test]
fn large_objects_are_groups_of_their_own_and_scale() {
    let groups = |scale| {
        let command = parse(&["--workloads", "large", "--bottommost", "zlib:6", "--scale", scale]);
        command.compress.groups(&command.campaign, &Setup::default()).unwrap()
    };
    let (small, large) = (groups("1"), groups("20"));
    assert_eq!(small.len(), 8);
    assert_eq!(small[0].subjects[1].setting, "lz4,lz4,zlib:6; 100-1000 B, 20 % random");
    for (small, large) in small.iter().zip(&large) {
        let ratio = large.workload.data_bytes() as f64 / small.workload.data_bytes() as f64;
        assert!((19.0..21.0).contains(&ratio), "{ratio}");
    }
    let folders: BTreeSet<String> =
        small.iter().flat_map(|group| (0..2).map(|subject| group.folder(subject))).collect();
    assert_eq!(folders.len(), 16);
}

#[test]
fn the_matrix_has_choices_as_columns_and_averages_repeats() {
    let row = |setting: &str, step: &str, rate: f64, repeat| Row {
        workload: "kv".to_owned(),
        step: step.to_owned(),
        engine: "shale".to_owned(),
        setting: setting.to_owned(),
        rate,
        repeat,
        size_bytes: 1_500_000,
        ..Row::default()
    };
    let mut rows = vec![
        row("none,lz4,zstd:3", "fillseq", 1000.0, 0),
        row("none,lz4,zstd:3", "fillseq", 3000.0, 1),
        row("lz4,lz4,lz4", "fillseq", 1000.0, 0),
        row("lz4,lz4,lz4; 1 B", "overwrite", 7.0, 0),
    ];
    rows[2].counted.write_amp = Some(4.0);
    let text = matrix(&rows);
    let line = |start: &str| {
        let line = text.lines().find(|line| line.starts_with(start));
        line.unwrap_or_else(|| panic!("{text}")).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(line("step"), "step measure shale none,lz4,zstd:3 shale lz4,lz4,lz4");
    assert_eq!(line("kv fillseq"), "kv fillseq rate/s 2.00k 1.00k (0.50)");
    assert_eq!(line("kv overwrite 1 B"), "kv overwrite 1 B rate/s 7");
    let lines: Vec<&str> = text.lines().filter(|line| line.contains("w-amp")).collect();
    assert!(lines.len() == 1 && lines[0].trim_end().ends_with("4.00"), "{text}");
    assert!(text.contains("1.50 MB (1.00)") && !text.contains("p95"), "{text}");
}
