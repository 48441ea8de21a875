use super::*;
use crate::campaign::Plan;
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

fn conditions(flags: &[&str]) -> Result<Vec<Group>, String> {
    let command = parse(&[&["--matrix"], flags].concat());
    command.compress.groups(&command.campaign, &Setup::default())
}

fn settings(group: &Group) -> Vec<String> {
    group.subjects.iter().map(|subject| format!("{} {}", subject.engine, subject.setting)).collect()
}

#[test]
fn each_cell_is_a_group_in_which_all_choices_take_turns() {
    let groups = conditions(&[]).unwrap();
    assert_eq!(groups.len(), 5 * 2 * 2 * 3);
    assert!(groups.iter().all(|group| group.subjects.len() == 7));
    let folders: BTreeSet<String> =
        groups.iter().flat_map(|group| (0..7).map(|subject| group.folder(subject))).collect();
    assert_eq!(folders.len(), 60 * 7);
    let steps: Vec<String> = groups[0].workload.steps().into_iter().map(|step| step.name).collect();
    assert_eq!(steps, ["filluniquerandom", "readrandomwriterandom"]);
    for group in &groups {
        let megabytes = group.workload.data_bytes() as f64 / 1e6;
        assert!((198.0..202.0).contains(&megabytes), "{megabytes}");
    }
}

#[test]
fn cells_have_what_they_are_short_of() {
    let flags = ["--data", "json", "--read-shares", "0.5", "--choices", "auto;none,lz4,zstd:3"];
    let groups = conditions(&flags).unwrap();
    let cells: Vec<&str> =
        groups.iter().map(|group| group.subjects[1].setting.split_once("; ").unwrap().1).collect();
    assert_eq!(
        cells,
        [
            "json, unlimited, cpu short, 50 % reads",
            "json, 10 MB/s, cpu short, 50 % reads",
            "json, unlimited, storage short, 50 % reads",
            "json, 10 MB/s, storage short, 50 % reads",
        ]
    );
    let of = |group: usize| {
        let Setup { memory, memtable, busy_threads, device_bound, .. } =
            groups[group].subjects[0].setup.resolved();
        (memory, memtable, busy_threads, device_bound)
    };
    assert_eq!(of(0), (64 << 20, 4 << 20, 2, None));
    assert_eq!(of(3), (64 << 20, 4 << 20, 0, Some(60 << 20)));
    assert_eq!(groups[0].subjects[1].setup.codecs.to_string(), "none,lz4,zstd:3");
    let Workload::Kv(options) = &groups[3].workload else { panic!("{:?}", groups[3]) };
    assert_eq!((options.write_rate, options.read_share), (Some(10.0), 0.5));
    assert_eq!((options.duration, options.idle_after), (Some(6.0), true));
}

#[test]
fn another_engine_gets_the_fixed_choices() {
    let flags = ["--data", "half", "--write-rates", "2.5", "--short", "storage", "--read-shares"];
    let more = ["0", "--engines", "shale,rocksdb", "--choices", "auto;lz4", "--choices", "zstd:1"];
    let groups = conditions(&[&flags[..], &more].concat()).unwrap();
    let cell = "half, 2.5 MB/s, storage short, 0 % reads";
    assert_eq!(groups.len(), 1);
    assert_eq!(
        settings(&groups[0]),
        ["shale auto", "shale lz4", "shale zstd:1", "rocksdb lz4", "rocksdb zstd:1"]
            .map(|name| format!("{name}; {cell}"))
    );
}

#[test]
fn choices_of_a_cell_are_next_to_each_other_in_time() {
    let groups = conditions(&["--data", "json", "--choices", "none;lz4;zstd:3"]).unwrap();
    let command = parse(&[]);
    let plan: Plan = serde_json::from_value(serde_json::json!({
        "schema": 1, "made_by": "", "machine": "", "command": [], "groups": groups,
        "repeats": command.campaign.repeats, "seed": 1, "base": null, "stores": "", "keep": false,
        "memory_bound": null, "cold": false, "patience": 1.0,
    }))
    .unwrap();
    plan.check().unwrap();
    let turns: Vec<(usize, usize, usize)> =
        plan.turns().iter().map(|turn| (turn.group, turn.step, turn.subject)).collect();
    let first = [(0, 0, 0), (0, 0, 1), (0, 0, 2), (0, 1, 1), (0, 1, 2), (0, 1, 0), (1, 0, 0)];
    assert_eq!(turns[..7], first);
}

#[test]
fn what_cannot_be_planned_is_refused_by_name() {
    let cases: [(&[&str], &str); 7] = [
        (&["--matrix", "--read-shares", "0,2"], "`2` is not a share from 0 to 1"),
        (&["--matrix", "--write-rates", "fast"], "`fast` is neither `unlimited` nor a rate"),
        (&["--matrix", "--short", "sleep"], "sleep"),
        (&["--matrix", "--data", "poems"], "poems"),
        (&["--matrix", "--choices", "auto;brotli"], "there is no codec `brotli`"),
        (&["--matrix", "--upper", "lz4"], "--upper"),
        (&["--read-shares", "0"], "--matrix"),
    ];
    for (flags, part) in cases {
        let error = Command::try_parse_from([&["x"], flags].concat()).err();
        let error = error.unwrap_or_else(|| panic!("{flags:?}")).to_string();
        assert!(error.contains(part), "{flags:?}: {error}");
    }
    let command = parse(&["--engines", "shale,shale-sql", "--workloads", "insert"]);
    let why = command.compress.groups(&command.campaign, &Setup::default()).unwrap_err();
    assert!(why.contains("make no difference to `shale-sql`"), "{why}");
    let refused = |flags: &[&str]| conditions(flags).unwrap_err();
    let why = refused(&["--engines", "shale,fjall"]);
    assert!(why.contains("`fjall`") && why.contains("--short cpu"), "{why}");
    assert!(conditions(&["--engines", "fjall", "--short", "cpu"]).is_ok());
    assert!(refused(&["--choices", "lz4;lz4,lz4,lz4"]).contains("`lz4` is named twice"));
    assert!(refused(&["--engines", "rocksdb", "--choices", "auto"]).contains("`rocksdb`"));
}
