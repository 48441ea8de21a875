//! The habits of this code base, checked: a style that no tool checks does not hold.
//!
//! The laws of all crates: modules name only earlier ones (`circles`), files are short, words are
//! the field's. Those of `crates/shaledb`: one door to disk, clock, chance and threads, and many
//! assertions (`asserts`). Those of the plugin's C++ are in `cpp`. What is allowed in spite of a
//! rule is listed, with the reason; the lists only shrink.

mod asserts;
mod circles;
mod cpp;
mod prose;
mod source;
mod words;

use source::{first_word, has_word, modules, root, sources, strip_comment};
use std::collections::BTreeSet;
use std::fs;

/// The longest file, function (in lines) and line (in columns). Tests may be longer.
const FILE_LINES: usize = 600;
const FUNCTION_LINES: usize = 80;
const LINE_COLUMNS: usize = 100;

/// Files of `crates/shaledb/src` that may touch disk, clock, chance or threads.
const DOORS: [&str; 4] = ["fs/os.rs", "fs/linux.rs", "fs/log_file.rs", "db/background/threads.rs"];

/// What only the doors may use.
const BEHIND_DOORS: [&str; 7] = [
    "std::fs",
    "Instant::now",
    "SystemTime",
    "thread::spawn",
    "thread::Builder",
    "thread::{",
    "rand::",
];

/// Files of `crates/shaledb/src` that may have unsafe code: shared memory without locks, calls of C.
const UNSAFE: [&str; 14] = [
    "base/prefetch.rs",
    "fs/linux.rs",
    "fs/log_file.rs",
    "fs/os.rs",
    "fs/process.rs",
    "memtable/arena.rs",
    "memtable/chunk.rs",
    "memtable/landmarks.rs",
    "memtable/list_cursor.rs",
    "memtable/node.rs",
    "memtable/sample.rs",
    "memtable/search.rs",
    "memtable/skiplist.rs",
    "table/format/compress.rs",
];

/// Files with lines that are too long, or too many of them.
const LONG: [&str; 0] = [];

fn report(rule: &str, wrong: Vec<String>) {
    assert!(wrong.is_empty(), "{rule}:\n  {}\n", wrong.join("\n  "));
}

#[test]
fn disk_clock_chance_and_threads_have_one_door() {
    let mut wrong = Vec::new();
    let mut looked_at = 0;
    for source in sources().iter().filter(|source| !source.is_test) {
        let Some(path) = source.engine_path() else { continue };
        looked_at += 1;
        if DOORS.contains(&path) {
            continue;
        }
        for (at, line) in source.code() {
            for word in BEHIND_DOORS.iter().filter(|word| has_word(line, word)) {
                wrong.push(format!("{}:{at} uses {word}", source.path));
            }
        }
    }
    assert!(looked_at > 100, "{looked_at} files of the engine");
    report(
        "disk, clock, chance and threads are reached through fs and db/background/threads only",
        wrong,
    );
}

#[test]
fn unsafe_code_is_rare_and_explained() {
    let words = ["unsafe {", "unsafe impl", "unsafe fn"];
    let mut wrong = Vec::new();
    for source in sources().iter().filter(|source| !source.path.contains("tests/tidy/")) {
        let lines: Vec<(usize, &str)> = source.lines().collect();
        for (index, (at, line)) in lines.iter().enumerate() {
            let code = strip_comment(line);
            if !words.iter().any(|word| has_word(code, word)) {
                continue;
            }
            let near = &lines[index.saturating_sub(15)..=index];
            if !near.iter().any(|(_, l)| l.contains("SAFETY:") || l.contains("# Safety")) {
                wrong.push(format!("{}:{at} has no SAFETY comment", source.path));
            }
            let listed = source.engine_path().is_none_or(|path| UNSAFE.contains(&path));
            if !listed && !source.is_test {
                wrong.push(format!("{}:{at} is not in a file listed for it", source.path));
            }
        }
    }
    report("unsafe code is listed and explained", wrong);
}

#[test]
fn files_functions_and_lines_are_short() {
    let mut wrong = Vec::new();
    for source in sources().iter().filter(|source| !source.is_test) {
        let lines: Vec<(usize, &str)> = source.lines().collect();
        if LONG.contains(&source.path.as_str()) {
            continue;
        }
        if lines.len() > FILE_LINES {
            wrong.push(format!("{} has {} lines", source.path, lines.len()));
        }
        for (at, _) in lines.iter().filter(|(_, line)| line.chars().count() > LINE_COLUMNS) {
            wrong.push(format!("{}:{at} is longer than {LINE_COLUMNS} columns", source.path));
        }
        for (at, length) in functions(&lines) {
            if length > FUNCTION_LINES {
                wrong.push(format!("{}:{at} is a function of {length} lines", source.path));
            }
        }
    }
    report("files, functions and lines are short", wrong);
}

/// Where functions begin and how many lines they have. Relies on rustfmt: a function ends at the
/// first `}` that is indented as its first line is.
fn functions(lines: &[(usize, &str)]) -> Vec<(usize, usize)> {
    let starts = ["fn ", "pub ", "pub(", "const ", "unsafe ", "async ", "extern "];
    let mut found = Vec::new();
    for (index, (at, line)) in lines.iter().enumerate() {
        let text = strip_comment(line.trim_start()).trim_end();
        let is_function = starts.iter().any(|start| text.starts_with(start))
            && text.split(' ').take(6).any(|word| word == "fn");
        if !is_function || text.ends_with(['}', ';']) {
            continue;
        }
        let indent = &line[..line.len() - line.trim_start().len()];
        let end = lines[index..].iter().position(|(_, line)| {
            let rest = line.strip_prefix(indent).unwrap_or_default();
            rest == "}" || rest.starts_with(')') && rest.ends_with(';')
        });
        found.push((*at, end.map_or(1, |end| end + 1)));
    }
    found
}

#[test]
fn words_and_letters() {
    let banned = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("dbg", "!(")];
    let mut wrong = Vec::new();
    for source in &sources() {
        if !source.is_test && !source.text.starts_with("//!") {
            wrong.push(format!("{} does not open with what it is for", source.path));
        }
        for (index, line) in source.text.lines().enumerate() {
            let at = index + 1;
            if !line.is_ascii() {
                wrong.push(format!("{}:{at} has letters that are not ASCII", source.path));
            }
            for word in banned.iter().filter(|word| has_word(line, word)) {
                wrong.push(format!("{}:{at} has {word}", source.path));
            }
            if line.trim_start().strip_prefix("//").is_some_and(is_module_line) {
                wrong.push(format!("{}:{at} is a module commented out", source.path));
            }
        }
    }
    report("words and letters", wrong);
}

/// Whether the text is `mod name;`.
fn is_module_line(text: &str) -> bool {
    let text = text.trim();
    let text = text.strip_prefix("pub ").unwrap_or(text);
    let name = text.strip_prefix("mod ").and_then(|name| name.strip_suffix(';'));
    name.is_some_and(|name| first_word(name) == name)
}

#[test]
fn every_file_is_part_of_a_crate() {
    let sources = sources();
    let named: BTreeSet<String> =
        sources.iter().flat_map(modules).flat_map(|module| module.files).collect();
    let stray = sources.iter().filter(|source| {
        let (dir, file) = source.path.rsplit_once('/').unwrap_or(("", &source.path));
        let is_root = ["lib.rs", "main.rs", "build.rs"].contains(&file)
            || ["bin", "tests", "benches", "examples"].iter().any(|name| dir.ends_with(name));
        !is_root && !named.contains(&source.path)
    });
    report("every file is named by a mod", stray.map(|source| source.path.clone()).collect());
}

#[test]
fn every_setting_is_documented() {
    let root = root();
    let config = fs::read_to_string(root.join("crates/shaledb/src/base/config.rs")).unwrap();
    let page = fs::read_to_string(root.join("docs/settings.md")).unwrap_or_default();
    let mut wrong = Vec::new();
    let mut fields = 0;
    for name in ["Config", "TreeConfig", "Codecs"] {
        let start = config.find(&format!("pub struct {name} {{")).unwrap();
        let body = config[start..].split("\n}").next().unwrap();
        for line in body.lines() {
            let field = line.strip_prefix("    pub ").and_then(|line| line.split_once(':'));
            let Some((field, _)) = field else { continue };
            fields += 1;
            if !page.contains(&format!("`{field}`")) {
                wrong.push(format!("{name}.{field} is not in docs/settings.md"));
            }
        }
    }
    assert!(fields > 10, "{fields} settings found");
    report("every setting is documented", wrong);
}
