//! `import`: what is in the file is in the tree, or the row is refused with its line.

mod common;

use common::{Ran, done, run, run_with, start};
use std::io::Write;
use std::path::Path;

/// Imports text and gives what is in the tree then.
fn imported(file: &str, text: &[u8], flags: &[&str]) -> (Ran, String) {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join(file), text).unwrap();
    let mut arguments = vec!["import", "db", file];
    arguments.extend(flags);
    let ran = run(dir.path(), &arguments);
    let scan = run(dir.path(), &["scan", "db"]);
    (ran, scan.out)
}

/// Imports text that must be taken.
#[track_caller]
fn taken(file: &str, text: impl AsRef<[u8]>, flags: &[&str]) -> String {
    let (ran, rows) = imported(file, text.as_ref(), flags);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    rows
}

/// Imports text that must be refused, for this reason and naming this place.
#[track_caller]
fn refused(file: &str, text: impl AsRef<[u8]>, flags: &[&str], place: &str, why: &str) {
    let (ran, rows) = imported(file, text.as_ref(), flags);
    assert_eq!(ran.code, Some(7), "taken: {rows}{}", ran.err);
    assert!(ran.err.contains(place), "`{place}` is not in: {}", ran.err);
    assert!(ran.err.contains(why), "`{why}` is not in: {}", ran.err);
}

#[test]
fn columns_of_one_name_are_refused() {
    let text = "id,x,y,x\n1,a,b,c\n";
    refused(
        "f.csv",
        text,
        &["--key", "id"],
        "f.csv: line 1",
        "columns 2 and 4 are both called `x`",
    );
    refused("f.tsv", text.replace(',', "\t"), &["--key", "id"], "line 1", "both called `x`");
    refused("f.csv", "id,,\n1,a,b\n", &["--key", "id"], "line 1", "both called ``");
}

#[test]
fn numbers_are_kept_digit_by_digit() {
    let numbers = [
        "18446744073709551617",
        "-9223372036854775809",
        "1.10",
        "1.1",
        "1e400",
        "0.1000000000000000055511151231257827",
        "1E2",
        "-0.0",
    ];
    for number in numbers {
        let line = format!("{{\"id\":{number},\"v\":{number}}}");
        let rows = taken("f.json", &line, &["--key", "id"]);
        assert_eq!(rows, format!("{number}\t{line}\n"));
        let rows = taken("f.json", &line, &["--key", "id", "--value", "v"]);
        assert_eq!(rows, format!("{number}\t{number}\n"));
        let rows = taken("f.csv", format!("id,v\n{number},{number}\n"), &["--key", "id"]);
        assert_eq!(rows, format!("{number}\t{{\"id\":\"{number}\",\"v\":\"{number}\"}}\n"));
    }
}

#[test]
fn a_key_is_a_string_or_a_number() {
    for (value, why) in [
        ("null", "`id` is null"),
        ("{\"a\":1}", "`id` is {\"a\":1}"),
        ("[1]", "`id` is [1]"),
        ("\"\"", "the key is empty"),
    ] {
        let text = format!("{{\"id\":1}}\n{{\"id\":{value}}}\n");
        refused("f.json", text, &["--key", "id"], "f.json: line 2", why);
    }
    assert_eq!(taken("f.json", "{\"id\":\"null\"}", &["--key", "id"]), "null\t{\"id\":\"null\"}\n");
    refused("f.csv", "id,x\n1,a\n,b\n", &["--key", "id"], "line 3", "the key is empty");
    let value = ["--key", "id", "--value", "v"];
    refused("f.json", "{\"id\":1,\"v\":null}", &value, "line 1", "`v` is null");
    refused("f.json", "{\"key\":null,\"value\":\"v\"}", &[], "line 1", "`key`");
    // Empty keys that are meant are kept.
    assert_eq!(taken("f.json", "{\"key\":\"\",\"value\":\"v\"}", &[]), "\tv\n");
    assert_eq!(taken("f.txt", "\tv\n", &[]), "\tv\n");
    let help = run(Path::new("."), &["import", "--help"]);
    assert!(help.out.contains("null, an object or, with --key, empty"), "{}", help.out);
}

#[test]
fn a_string_and_a_number_are_not_one_key() {
    let why = "of another type";
    refused("f.json", "{\"id\":1}\n{\"id\":\"1\"}\n", &["--key", "id"], "line 2", why);
    refused(
        "f.json",
        "{\"id\":\"1\"}\n{\"id\":\"a\"}\n{\"id\":2}\n",
        &["--key", "id"],
        "line 3",
        why,
    );
    refused("f.json", "{\"id\":true}\n{\"id\":\"true\"}\n", &["--key", "id"], "line 2", why);
    // One that is skipped says nothing of those after it, whichever of its fields is wrong.
    let two = "{\"a\":1,\"b\":null}\n{\"a\":\"2\",\"b\":3}\n";
    assert_eq!(taken("f.json", two, &["--key", "a,b", "--value", "b", "--skip-bad"]), "2/3\t3\n");
    let no_value = "{\"a\":1}\n{\"a\":\"2\",\"b\":3}\n";
    assert_eq!(taken("f.json", no_value, &["--key", "a", "--value", "b", "--skip-bad"]), "2\t3\n");
    let mixed = "{\"id\":1}\n{\"id\":\"2\"}\n{\"id\":3}\n{\"id\":\"abc\"}\n";
    let rows = taken("f.json", mixed, &["--key", "id", "--skip-bad"]);
    assert_eq!(rows, "1\t{\"id\":1}\n3\t{\"id\":3}\nabc\t{\"id\":\"abc\"}\n");
    let rows = taken("f.json", "{\"id\":1}\n{\"id\":\"a1\"}\n", &["--key", "id"]);
    assert_eq!(rows, "1\t{\"id\":1}\na1\t{\"id\":\"a1\"}\n");
}

#[test]
fn two_rows_do_not_become_one_key() {
    let text = "x,y\na/b,c\na,b/c\n";
    let why = "has the separator `/`";
    refused("f.csv", text, &["--key", "x,y"], "f.csv: line 2", why);
    let flags = ["--key", "x,y", "--key-separator", "|", "--value", "x"];
    assert_eq!(taken("f.csv", text, &flags), "a/b|c\ta/b\na|b/c\ta\n");
    // What overlaps the separator collides too: xa aa y and x aa ay.
    let flags = ["--key", "x,y", "--key-separator", "aa"];
    refused("f.csv", "x,y\nx,ay\nxa,y\n", &flags, "line 3", "has the separator `aa`");
    let json = "{\"x\":\"a/b\",\"y\":\"c\"}\n";
    refused("f.json", json, &["--key", "x,y"], "line 1", why);
    let (ran, _) = imported("f.csv", text.as_bytes(), &["--key", "x,y", "--key-separator", ""]);
    assert_eq!(ran.code, Some(2), "{}", ran.err);
}

#[test]
fn every_kind_of_line_end() {
    let rows = "1\t{\"id\":\"1\",\"x\":\"a\"}\n2\t{\"id\":\"2\",\"x\":\"b\"}\n";
    for end in ["\n", "\r\n", "\r"] {
        for (file, delimiter) in [("f.csv", ","), ("f.tsv", "\t")] {
            let lines = ["id,x", "1,a", "", "2,b"].map(|line| line.replace(',', delimiter));
            let text = lines.join(end);
            assert_eq!(taken(file, &text, &["--key", "id"]), rows, "{text:?}");
            assert_eq!(taken(file, text.clone() + end, &["--key", "id"]), rows, "{text:?}");
            let bad = text + end + "3" + end;
            refused(file, bad, &["--key", "id"], "line 5", "1 fields, but the first line has 2");
        }
    }
    assert_eq!(taken("f.txt", "a\t1\r\nb\t2\r\n", &[]), "a\t1\nb\t2\n");
    refused("f.txt", "a\t1\rb\t2\r", &[], "f.txt: line 1", "carriage return");
    refused("f.txt", "a\t1\nb\t2\r\n", &[], "f.txt: line 2", "ends with CR LF");
    assert_eq!(taken("f.txt", "a\t1\nb\t2\\r\r\n", &["--escaped"]), "a\t1\nb\t2\\r\n");
    refused(
        "f.json",
        "{\"key\":\"a\",\"value\":\"\"}\r{\"key\":\"b\",\"value\":\"\"}\r",
        &[],
        "line 1",
        "CR alone",
    );
}

#[test]
fn columns_stay_in_order_and_names_as_they_are() {
    let text = "z, a,\"m,n\",\"q\"\"r\"\n1,2,3,4\n";
    let rows = taken("f.csv", text, &["--key", "\"m,n\",z"]);
    assert_eq!(rows, "3/1\t{\"z\":\"1\",\" a\":\"2\",\"m,n\":\"3\",\"q\\\\\"r\":\"4\"}\n");
    let (ran, _) = imported("f.csv", text.as_bytes(), &["--key", "a"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("` a`"), "the space can be seen: {}", ran.err);
}

#[test]
fn marks_of_encoding() {
    let mark = "\u{feff}";
    let row = "1\t{\"id\":\"1\",\"x\":\"a\"}\n";
    assert_eq!(taken("f.csv", format!("{mark}id,x\n1,a\n"), &["--key", "id"]), row);
    assert_eq!(taken("f.csv", format!("{mark}\"id\",x\n1,a\n"), &["--key", "id"]), row);
    assert_eq!(taken("f.tsv", format!("{mark}id\tx\n1\ta\n"), &["--key", "id"]), row);
    assert_eq!(taken("f.json", format!("{mark}{{\"id\":1}}"), &["--key", "id"]), "1\t{\"id\":1}\n");
    assert_eq!(taken("f.txt", format!("{mark}a\t1\n"), &["--escaped"]), "a\t1\n");
    refused("f.txt", format!("{mark}a\t1\n"), &[], "f.txt: line 1", "byte order mark");
    let utf16: Vec<u8> = "\u{feff}id,x\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    refused("f.csv", utf16, &["--key", "id"], "f.csv", "iconv -f UTF-16");
}

#[test]
fn text_that_is_not_utf8() {
    refused("f.csv", b"id,x\n1,a\n2,\xe9\n", &["--key", "id"], "line 3", "column `x` is not UTF-8");
    refused("f.csv", b"id,caf\xe9\n1,a\n", &["--key", "id"], "line 1", "column 2 is not UTF-8");
    refused("f.json", b"{\"id\":\"\xe9\"}\n", &["--key", "id"], "line 1", "not valid JSON");
    refused("f.json", b"{\"id\":\"\\ud800\"}\n", &["--key", "id"], "line 1", "cannot be text");
    let flags = ["--key", "id", "--value", "x"];
    assert_eq!(taken("f.csv", b"id,x\n2,\xe9\x00\n", &flags), "2\t\\xe9\\x00\n");
    assert_eq!(taken("f.txt", b"\x00\xff\t\xfe\n", &[]), "\\x00\\xff\t\\xfe\n");
    let rows = taken("f.csv", b"id,x\n1,a\x00b\n", &["--key", "id"]);
    assert_eq!(rows, "1\t{\"id\":\"1\",\"x\":\"a\\\\u0000b\"}\n");
}

#[test]
fn quotes_that_are_wrong() {
    let place = "f.csv: line 4";
    let text = "id,x\n1,\"a\nb\"\n2,\"open\n3,c\n4,d\n";
    refused("f.csv", text, &["--key", "id"], place, "does not end");
    // The rest of the file is no row to be passed over.
    refused("f.csv", text, &["--key", "id", "--skip-bad"], place, "does not end");
    refused("f.csv", "id,x\n1,\"", &["--key", "id"], "line 2", "does not end");
    let stray = "id,x\n1,\"a\"b\n2,c\n";
    refused("f.csv", stray, &["--key", "id"], "line 2", "follows a closing quote");
    let flags = ["--key", "id", "--value", "x"];
    assert_eq!(taken("f.csv", stray, &[&flags[..], &["--skip-bad"]].concat()), "2\tc\n");
    assert_eq!(taken("f.csv", "id,x\n1,5\" pipe\n", &flags), "1\t5\" pipe\n");
    assert_eq!(taken("f.csv", "id,x\n1,\"a\r\n\"\"b\"\"\"\n", &flags), "1\ta\\r\\n\"b\"\n");
    assert_eq!(taken("f.tsv", "id\tx\n1\t\"a\n", &flags), "1\t\"a\n");
}

#[test]
fn the_line_of_a_bad_row_is_right() {
    for end in ["\n", "\r\n"] {
        let text = ["id,x", "", "1,\"a", "", "b\"", "", "2"].join(end);
        refused("f.csv", &text, &["--key", "id"], "f.csv: line 7:", "1 fields");
        refused("f.csv", text + end + end, &["--key", "id"], "f.csv: line 7:", "1 fields");
    }
    let long = format!("id,x\n1,a\n{},b\n", "k".repeat(70_000));
    refused("f.csv", long, &["--key", "id"], "f.csv: line 3:", "70000 bytes, more than 65536");
    let text = "[\n {\"id\":1},\n\n {\"id\":null}]";
    refused("f.json", text, &["--key", "id"], "f.json: line 4:", "null");
}

#[test]
fn a_row_cannot_take_all_memory() {
    let row = "1,".to_owned() + &"a".repeat(3 << 20);
    let flags = ["--key", "id", "--max-row", "1M"];
    let why = "more than 1048576 bytes";
    refused("f.csv", format!("id,x\n0,b\n{row}\n"), &flags, "line 3", why);
    refused("f.csv", format!("id,x\n0,b\n\"{row}\n"), &flags, "line 3", why);
    refused("f.txt", format!("a\tb\n{row}"), &flags[2..], "line 2", why);
    refused("f.json", format!("{{\"key\":\"{row}\"}}"), &flags[2..], "line 1", why);
    refused("f.json", format!("[{{\"key\":\"{row}\"}}]"), &flags[2..], "line 1", why);
    let rows = taken("f.csv", format!("id,x\n{row}\n"), &["--key", "id", "--value", "x"]);
    assert_eq!(rows.len(), row.len() + 1);
}

#[test]
fn keys_that_come_again_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    std::fs::write(dir.join("f.csv"), "id,x\n1,a\n2,b\n1,c\n1,d\n").unwrap();
    let flags = ["import", "db", "f.csv", "--key", "id", "--value", "x"];
    let text = done(dir, &flags);
    assert!(text.contains("4 records") && text.contains(", 2 of them replaced"), "{text}");
    assert_eq!(done(dir, &["scan", "db"]), "1\td\n2\tb\n");
    let json = done(dir, &[&["--json"], &flags[..]].concat());
    assert!(json.contains("\"repeated_keys\":2,\"repeated_keys_at_least\":false"), "{json}");
}

#[test]
fn fields_twice_in_an_object() {
    let flags = ["--key", "id"];
    refused("f.json", "{\"id\":1,\"id\":2}\n", &flags, "line 1", "two fields `id`");
    refused("f.json", "{\"id\":1,\"i\\u0064\":2}\n", &flags, "line 1", "two fields `id`");
    refused("f.json", "{\"a\":{\"id\":1,\"id\":2}}\n", &["--key", "a.id"], "line 1", "two fields");
    // The whole object is kept as it stands.
    let line = "{\"id\":1,\"x\":1,\"x\":2, \"n\":{\"b\":[1.0,{}],\"a\":1}}";
    assert_eq!(taken("f.json", line, &flags), format!("1\t{line}\n"));
    let pair = "{\"key\":\"a\",\"value\":\"b\",\"ttl\":5}";
    refused("f.json", pair, &[], "line 1", "a field `ttl` beside key and value");
    refused("f.json", "{\"key\":\"a\",\"key_hex\":\"61\",\"value\":\"\"}", &[], "line 1", "both");
}

#[test]
fn arrays_of_objects() {
    let rows = "1\t{\"id\":1}\n2\t{ \"id\" : 2, \"s\": \"],}\\\\\"[\" }\n";
    let text = " \n[ {\"id\":1} ,\n{ \"id\" : 2, \"s\": \"],}\\\"[\" }\n]\n";
    assert_eq!(taken("f.json", text, &["--key", "id"]), rows);
    assert_eq!(taken("f.json", "[]", &["--key", "id"]), "");
    let flags = ["--key", "id", "--skip-bad"];
    for (text, place, why) in [
        ("[{\"id\":1}", "line 1", "a `]` is missing"),
        ("[{\"id\":1}\n{\"id\":2}]", "line 2", "this is not valid JSON"),
        ("[{\"id\":1},\n]", "line 2", "this is not valid JSON"),
        ("[{\"id\":1}]\nx", "line 2", "after the end of the array"),
        ("[{\"id\":1}][{\"id\":2}]", "line 1", "after the end of the array"),
        ("[{\"id\":1},{\"id\":[}]", "line 1", "this is not valid JSON"),
    ] {
        refused("f.json", text, &flags, place, why);
    }
    let many: Vec<String> = (0..20_000).map(|n| format!("{{\"id\":\"{n:05}\"}}")).collect();
    let rows = taken("f.json", format!("[{}]", many.join(",\n")), &["--key", "id"]);
    assert_eq!(rows.lines().count(), 20_000);
}

#[test]
fn garbage_after_json() {
    refused("f.json", "{\"id\":1} x\n", &["--key", "id"], "line 1", "trailing characters");
    refused("f.json", "{\"id\":1}{\"id\":2}\n", &["--key", "id"], "line 1", "trailing characters");
    refused("f.json", "{\"id\":1}\n7\n", &["--key", "id"], "line 2", "an object");
}

fn packed(name: &str, text: &[u8]) -> Vec<u8> {
    if name == "zst" {
        return zstd::encode_all(text, 1).unwrap();
    }
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn compressed_files() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let lines: String = (0..3000).map(|n| format!("{n:04},{}\n", n * n)).collect();
    let rows: String = (0..3000).map(|n| format!("{n:04}\t{}\n", n * n)).collect();
    let flags = ["--key", "id", "--value", "x"];
    for name in ["gz", "zst"] {
        let mut two = packed(name, b"id,x\n");
        two.extend(packed(name, lines.as_bytes()));
        assert_eq!(taken(&format!("f.csv.{name}"), &two, &flags), rows);
        // The content tells, not the name.
        assert_eq!(taken("f.csv", &two, &flags), rows);
        let stdin = ["import", name, "-", "--format", "csv", "--key", "id", "--value", "x"];
        assert_eq!(run_with(dir, &stdin, &two).code, Some(0));
        assert_eq!(done(dir, &["scan", name]), rows);
        let cut = &two[..two.len() - 9];
        refused(
            "f.csv",
            cut,
            &flags,
            "f.csv",
            &format!(
                "the {} data is damaged or cut off",
                if name == "gz" { "gzip" } else { "zstd" }
            ),
        );
        two.extend(b"garbage!");
        refused("f.csv", &two, &flags, "f.csv", "damaged or cut off");
    }
    assert_eq!(taken("f.csv.gz", "id,x\n1,2\n", &flags), "1\t2\n");
    refused("f.csv", b"\xfd7zXZ\0....", &flags, "f.csv", "xz -dc");
}

#[test]
fn delimiters_and_files_without_a_header() {
    let flags = ["--delimiter", ";", "--no-header", "--key", "3,1"];
    let rows = taken("f.csv", "a;\"b;c\";d\n\"\";y;z\n", &flags);
    assert_eq!(
        rows,
        "d/a\t{\"1\":\"a\",\"2\":\"b;c\",\"3\":\"d\"}\nz/\t{\"1\":\"\",\"2\":\"y\",\"3\":\"z\"}\n"
    );
    let tab = ["--format", "csv", "--delimiter", "tab", "--key", "id", "--value", "x"];
    assert_eq!(taken("f", "id\tx\n1\t\"a\tb\"\n", &tab), "1\ta\\tb\n");
    let (ran, _) = imported("f.csv", b"a,b\n", &["--no-header", "--key", "3"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("`1`, `2`"), "{}", ran.err);
    for wrong in ["\"", "ab", "\n", "\u{e9}", ""] {
        let (ran, _) = imported("f.csv", b"a,b\n", &["--delimiter", wrong, "--key", "a"]);
        assert_eq!(ran.code, Some(2), "{wrong:?}");
    }
    assert_eq!(taken("f.csv", "", &["--no-header", "--key", "1"]), "");
}

#[test]
fn an_import_leaves_nothing_to_replay() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let lines: String = (0..50_000).map(|n| format!("{n:06}\t{}\n", "v".repeat(60))).collect();
    let flags = ["import", "db", "-", "--format", "kv"];
    assert_eq!(run_with(dir, &flags, lines.as_bytes()).code, Some(0));
    let files = std::fs::read_dir(dir.join("db")).unwrap().flatten();
    let logs = files.filter(|file| file.path().extension().is_some_and(|e| e == "wal"));
    let bytes: u64 = logs.map(|file| file.metadata().unwrap().len()).sum();
    assert!(bytes < 64 << 10, "{bytes} bytes of log");
}

fn signal(pid: u32, name: &str) {
    let kill = std::process::Command::new("kill").args([name, &pid.to_string()]).status().unwrap();
    assert!(kill.success());
}

fn wait_for(path: &Path) {
    for _ in 0..12_000 {
        if path.exists() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("waited for {} in vain", path.display());
}

#[test]
fn an_import_that_is_stopped_says_what_is_in() {
    for name in ["-INT", "-TERM"] {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        let lines: String = (0..30_000).map(|n| format!("{n:06}\t{n}\n")).collect();
        let mut child = start(dir, &["--json", "import", "db", "-", "--format", "kv"]);
        // The pipe stays open: the import waits for more.
        let mut pipe = child.stdin.take().unwrap();
        pipe.write_all(lines.as_bytes()).unwrap();
        wait_for(&dir.join("db/CURRENT"));
        signal(child.id(), name);
        let ran: Ran = child.wait_with_output().unwrap().into();
        drop(pipe);
        assert_eq!(ran.code, Some(130), "{name}: {}", ran.err);
        let said: serde_json::Value = serde_json::from_str(ran.err.trim()).unwrap();
        let count = said["records"].as_u64().unwrap();
        assert_eq!(said["skip_rows"].as_u64(), Some(count), "{said}");
        let text = said["error"].as_str().unwrap();
        assert!(text.contains("durable") && text.contains("--skip-rows"), "{text}");
        assert_eq!(done(dir, &["scan", "db", "--count"]), format!("{count}\n"));
        // The rest, as the message says.
        let skip = count.to_string();
        let rest = ["--json", "import", "db", "-", "--format", "kv", "--skip-rows", &skip];
        let ran = run_with(dir, &rest, lines.as_bytes());
        let records = format!("{{\"records\":{},", 30_000 - count);
        assert!(ran.out.starts_with(&records), "{} {}", ran.out, ran.err);
        assert_eq!(done(dir, &["scan", "db"]), lines);
    }
}

#[test]
fn errors_of_the_input_as_json() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    std::fs::write(dir.join("f.csv"), "id,x\n1,a\n2\n").unwrap();
    let ran = run(dir, &["--json", "import", "db", "f.csv", "--key", "id"]);
    let said: serde_json::Value = serde_json::from_str(ran.err.trim()).unwrap();
    assert_eq!((&said["code"], &said["file"]), (&7.into(), &"f.csv".into()), "{said}");
    assert_eq!((&said["line"], &said["records"]), (&3.into(), &1.into()), "{said}");
}
