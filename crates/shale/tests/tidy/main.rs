//! The habits of this code base, checked: a style that no tool checks does not hold.
//!
//! The laws of `crates/shale` (the order of its modules, which lab and sim have too; the doors
//! to disk, clock, chance and threads) and the habits of all crates (sizes, words, documentation).
//! What is allowed in spite of a rule is listed here, with the reason; the lists only shrink.

mod circles;
mod cpp;
mod source;

use source::{Source, first_word, has_word, modules, root, sources, strip_comment};
use std::collections::BTreeSet;
use std::fs;

/// The longest file, function (in lines) and line (in columns). Tests may be longer.
const FILE_LINES: usize = 600;
const FUNCTION_LINES: usize = 80;
const LINE_COLUMNS: usize = 100;

/// Files of `crates/shale/src` that may touch disk, clock, chance or threads.
const DOORS: [&str; 2] = ["fs/os.rs", "db/background/threads.rs"];

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

/// Files of `crates/shale/src` that may have unsafe code: shared memory without locks, calls of C.
const UNSAFE: [&str; 6] = [
    "fs/os.rs",
    "memtable/arena.rs",
    "memtable/node.rs",
    "memtable/skiplist.rs",
    "table/format/compress.rs",
    "table/format/prefetch.rs",
];

/// Files with lines that are too long, or too many of them.
const LONG: [&str; 0] = [];

/// The modules that a lib.rs or mod.rs declares, in its order.
fn order(root: &Source) -> Vec<&str> {
    let names = root.lines().filter_map(|(_, line)| {
        let line = line.strip_prefix("pub(crate) ").or(line.strip_prefix("pub ")).unwrap_or(line);
        line.strip_prefix("mod ")?.strip_suffix(';')
    });
    names.collect()
}

fn report(rule: &str, wrong: Vec<String>) {
    assert!(wrong.is_empty(), "{rule}:\n  {}\n", wrong.join("\n  "));
}

/// The names that follow a path such as `crate::` in a line: one, or those of a `{}` group.
fn names_after<'a>(path: &str, line: &'a str) -> Vec<&'a str> {
    let mut names = Vec::new();
    for (at, path) in line.match_indices(path) {
        if !has_word(&line[at..], path) || line[..at].ends_with(['_', ':']) {
            continue;
        }
        let rest = &line[at + path.len()..];
        let Some(group) = rest.strip_prefix('{') else {
            names.push(first_word(rest));
            continue;
        };
        let mut depth = 0;
        for (index, c) in group.char_indices() {
            let begins = index == 0 || group[..index].trim_end().ends_with(',');
            if depth == 0 && begins && c.is_alphabetic() {
                names.push(first_word(&group[index..]));
            }
            depth += i32::from(c == '{') - i32::from(c == '}');
            if depth < 0 {
                break;
            }
        }
    }
    names
}

/// Crates in whose lib.rs the list of modules is the architecture.
const ORDERED: [&str; 3] = ["shale", "shale-lab", "shale-sim"];

/// Of these, those where it is in the mod.rs of each folder as well.
const ORDERED_INSIDE: [&str; 1] = ["shale-lab"];

/// Where a module uses one that is below it, of those that the lib.rs or a mod.rs of a crate
/// declares. `folder` is the path of the modules above it: none of a lib.rs.
fn against_the_order(
    sources: &[Source],
    name: &str,
    root: &Source,
    folder: &[&str],
) -> Vec<String> {
    let order = order(root);
    let place = |module: &str| order.iter().position(|name| *name == module);
    let whole: String = folder.iter().map(|module| format!("{module}::")).collect();
    let whole = format!("crate::{whole}");
    let mut wrong = Vec::new();
    for source in sources.iter().filter(|source| !source.is_test) {
        let Some(modules) = source.modules_in(name) else { continue };
        let Some(below) = modules.strip_prefix(folder) else { continue };
        let Some(own) = below.first().and_then(|module| place(module)) else { continue };
        let short = "super::".repeat(below.len());
        for (at, line) in source.code() {
            for used in names_after(&whole, line).into_iter().chain(names_after(&short, line)) {
                if place(used).is_some_and(|used| used > own) {
                    wrong.push(format!("{}:{at} uses {used}, which is below it", source.path));
                }
            }
        }
    }
    wrong
}

/// The same of a crate.
fn against_the_orders(sources: &[Source], name: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    for root in sources.iter().filter(|source| !source.is_test) {
        let is_lib = root.path_in(name) == Some("lib.rs");
        if is_lib {
            assert!(order(root).len() > 10, "the modules of {name}'s lib.rs: {:?}", order(root));
        }
        let is_mod = root.path.ends_with("/mod.rs") && ORDERED_INSIDE.contains(&name);
        if let Some(folder) = root.modules_in(name).filter(|_| is_lib || is_mod) {
            wrong.extend(against_the_order(sources, name, root, &folder));
        }
    }
    wrong
}

#[test]
fn modules_use_only_those_above_them() {
    let sources = sources();
    let wrong = ORDERED.iter().flat_map(|name| against_the_orders(&sources, name)).collect();
    report("the order of modules in lib.rs is the architecture", wrong);
}

#[test]
fn a_use_of_a_module_below_is_found() {
    let source = |path: &str, text: &str| Source {
        path: format!("crates/shale-lab/src/{path}"),
        text: text.to_owned(),
        is_test: false,
    };
    let mods: String = ('a'..='k').map(|name| format!("pub mod {name};\n")).collect();
    let sources = [
        source("lib.rs", &mods),
        source("b.rs", "use crate::a::X;\nuse crate::{a, c::Y};\n// crate::k\n"),
        source(
            "d/mod.rs",
            "fn x() {\n    crate::e::y();\n}\n#[cfg(test)]\nmod tests {\n    use crate::k;\n}\n",
        ),
        // The same in a folder and in a folder of that.
        source("e/mod.rs", "mod one;\npub mod two;\npub(crate) mod three;\n"),
        source("e/one.rs", "use super::three::X;\nuse crate::e::{one, two::Y};\n"),
        source("e/two/mod.rs", "mod x;\nmod y;\nuse super::{one, three};\nuse y::Z;\n"),
        source("e/two/x.rs", "use super::super::one;\nuse super::y;\nuse super::super::three;\n"),
        source("e/three.rs", "use super::one;\nuse super::two::y;\n"),
    ];
    let wrong = against_the_orders(&sources, "shale-lab");
    let expected = [
        "b.rs:2 uses c",
        "d/mod.rs:2 uses e",
        "e/one.rs:1 uses three",
        "e/one.rs:2 uses two",
        "e/two/mod.rs:3 uses three",
        "e/two/x.rs:3 uses three",
        "e/two/x.rs:2 uses y",
    ]
    .map(|text| format!("crates/shale-lab/src/{text}, which is below it"));
    assert_eq!(wrong, expected);
}

#[test]
fn disk_clock_chance_and_threads_have_one_door() {
    let mut wrong = Vec::new();
    for source in sources().iter().filter(|source| !source.is_test) {
        let Some(path) = source.engine_path() else { continue };
        if DOORS.contains(&path) {
            continue;
        }
        for (at, line) in source.code() {
            for word in BEHIND_DOORS.iter().filter(|word| has_word(line, word)) {
                wrong.push(format!("{}:{at} uses {word}", source.path));
            }
        }
    }
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
    let config = fs::read_to_string(root.join("crates/shale/src/base/config.rs")).unwrap();
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
