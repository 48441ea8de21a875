//! The C++ of MariaDB's plugin keeps the same habits: sizes, letters, an opening comment, the order
//! of includes; and no circle of units.
//!
//! A unit is a header with the .cc of the same name, and with those of its folder that have no
//! header of their own and include it first (`ha_scan.cc` is of `ha_shale.h`). It relies on another
//! if it includes the header of that, and if the other one defines what its own header declares.
//! Relies on the style of the code: what is of a namespace begins in the first column.

use crate::circles::{Circle, circles_of, told};
use crate::source::{Source, first_word, read, root, strip_comment, walk};
use crate::{FILE_LINES, FUNCTION_LINES, LINE_COLUMNS, report};
use std::collections::{BTreeMap, BTreeSet};

/// The folders of the plugin, in order, with what is in them: a file includes those of its own and
/// of earlier ones only. `server.h` is in none, and before all.
const FOLDERS: [(&str, &str); 11] = [
    ("codec", "rows, keys and values as bytes, and in words"),
    ("engine", "the one database, its catalog and its trees; settings; errors"),
    ("tables", "what all who use a table share; whose a tree is"),
    ("txn", "transactions of connections, and those that are prepared"),
    ("ddl", "what statements change of tables, and what a crash leaves of that"),
    ("load", "filling trees that nobody sees yet"),
    ("backup", "copies of the database, and of a table"),
    ("words", "words of rows, and searches for them"),
    ("show", "what the engine says of itself, for SHOW and information_schema"),
    ("handler", "the server's calls about one use of one table"),
    ("plugin", "the start, the variables, the calls about connections"),
];

/// Where the plugin's code is, and its tests.
const SOURCES: &str = "mariadb/shale/src/";
const TESTS: &str = "mariadb/shale/tests/";

/// All C++ of the plugin and of its tests.
pub fn files() -> Vec<Source> {
    let mut paths = Vec::new();
    for folder in [SOURCES, TESTS] {
        walk(&root().join(folder), &[".cc", ".h"], &mut paths);
    }
    let files: Vec<Source> = paths.iter().map(|path| read(path)).collect();
    assert!(files.len() > 50, "{} files found", files.len());
    files
}

/// The path without the ending, from the folder of all sources, or of all tests.
fn stem(path: &str) -> &str {
    let path = path.strip_prefix(SOURCES).or(path.strip_prefix(TESTS)).unwrap_or(path);
    path.rsplit_once('.').map_or(path, |(stem, _)| stem)
}

fn folder(stem: &str) -> &str {
    stem.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// What is included, with its quotes, and at which line.
fn includes(file: &Source) -> Vec<(usize, &str)> {
    let lines = file.text.lines().enumerate();
    lines.filter_map(|(at, line)| Some((at + 1, line.strip_prefix("#include ")?.trim()))).collect()
}

/// The stem of a header of the plugin that is included; nothing of another one.
fn included<'a>(files: &[Source], include: &'a str) -> Option<&'a str> {
    let path = include.strip_prefix('"')?.strip_suffix('"')?;
    let is_it = |file: &Source| {
        [SOURCES, TESTS].iter().any(|folder| file.path.strip_prefix(folder) == Some(path))
    };
    files.iter().any(is_it).then_some(stem(path))
}

/// The unit that a file belongs to, by the stem of its header.
fn unit_of(files: &[Source], file: &Source) -> String {
    let own = stem(&file.path);
    let has_header = |stem: &str| {
        let is_it = |file: &Source| file.path.ends_with(".h") && self::stem(&file.path) == stem;
        files.iter().any(is_it)
    };
    if file.path.starts_with(SOURCES)
        && !has_header(own)
        && let Some((_, first)) = includes(file).first()
        && let Some(header) = included(files, first)
        && folder(header) == folder(own)
    {
        return header.to_owned();
    }
    own.to_owned()
}

/// What is in a file's namespaces, but for those without a name.
#[derive(Default)]
struct Names {
    /// Functions and variables, with what they are qualified by but for namespaces.
    declared: BTreeSet<String>,
    defined: BTreeSet<String>,
    classes: BTreeSet<String>,
}

/// A name is what comes before the first `(` of a function, or before the value of a variable.
fn names(file: &Source) -> Names {
    let skipped =
        ["namespace", "using", "typedef", "template", "static", "inline", "constexpr", "public"];
    let mut found = Names::default();
    let mut spaces = BTreeSet::new();
    let mut hidden = false;
    let mut statement = String::new();
    for line in file.text.lines() {
        hidden = line == "namespace {" || hidden && line != "}  // namespace";
        if let Some(name) = line.strip_prefix("namespace ") {
            spaces.insert(first_word(name).to_owned());
        }
        let begins = line.starts_with(|c: char| c.is_alphabetic());
        if hidden || statement.is_empty() && (!begins || skipped.contains(&first_word(line))) {
            continue;
        }
        statement.push_str(strip_comment(line));
        statement.push(' ');
        let Some(end) = statement.find([';', '{']) else { continue };
        let (head, has_body) = (&statement[..end], statement[end..].starts_with('{'));
        let is_class = ["class", "struct", "enum"].contains(&first_word(head));
        if is_class && !head.contains('(') && !head.contains('=') {
            let name = head.split(' ').nth(1).unwrap_or_default();
            if has_body && name != "class" {
                found.classes.insert(name.to_owned());
            }
        } else if let Some(name) = last_path(head.split(['(', '=', '[']).next().unwrap_or(head)) {
            let path: Vec<&str> = name.split("::").filter(|name| !spaces.contains(*name)).collect();
            let is_variable = !head.contains('(') && !head.starts_with("extern ");
            let is_defined = has_body || is_variable || head.trim_end().ends_with("= default");
            let names = if is_defined { &mut found.defined } else { &mut found.declared };
            names.insert(path.join("::"));
        }
        statement.clear();
    }
    found
}

/// The name, with what qualifies it, at the end of a text.
fn last_path(text: &str) -> Option<&str> {
    let text = text.trim_end();
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | ':' | '~');
    let start = text.rfind(|c: char| !is_part(c)).map_or(0, |at| at + 1);
    (start < text.len()).then_some(&text[start..])
}

/// Why a unit relies on another that it includes.
const ITS_HEADER: &str = "its header";

/// The units, and on which others each of them relies, by the names that these define.
fn units(files: &[Source]) -> (Vec<String>, Vec<BTreeMap<usize, BTreeSet<String>>>) {
    let unit_of: Vec<String> = files.iter().map(|file| unit_of(files, file)).collect();
    let units: Vec<String> = BTreeSet::from_iter(&unit_of).into_iter().cloned().collect();
    let place = |unit: &str| units.iter().position(|other| other == unit).unwrap();
    let names: Vec<Names> = files.iter().map(names).collect();
    // Who declares a name, or a class, in a header.
    let mut declared: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
    for (at, _) in files.iter().enumerate().filter(|(_, file)| file.path.ends_with(".h")) {
        for name in names[at].declared.iter().chain(&names[at].classes) {
            declared.entry(name).or_default().insert(place(&unit_of[at]));
        }
    }
    let mut arrows = vec![BTreeMap::<usize, BTreeSet<String>>::new(); units.len()];
    for (at, file) in files.iter().enumerate() {
        let own = place(&unit_of[at]);
        for (_, include) in includes(file) {
            if let Some(other) = included(files, include).map(place).filter(|&other| other != own) {
                arrows[own].entry(other).or_default().insert(ITS_HEADER.to_owned());
            }
        }
        for name in &names[at].defined {
            let known = name.split_once("::").map_or(name.as_str(), |(class, _)| class);
            let by = declared.get(known).filter(|by| !by.contains(&own));
            for &other in by.into_iter().flatten() {
                arrows[other].entry(own).or_default().insert(name.clone());
            }
        }
    }
    (units, arrows)
}

fn circles(files: &[Source]) -> Vec<Circle> {
    let (units, arrows) = units(files);
    circles_of(&arrows, |unit| units[unit].clone())
}

#[test]
fn units_are_in_no_circle() {
    report("no unit relies on one that relies on it", told(&circles(&files())));
}

/// Names that one unit's header declares and another one defines.
fn defined_elsewhere(files: &[Source]) -> Vec<String> {
    let (units, arrows) = units(files);
    let mut wrong = Vec::new();
    for (unit, others) in units.iter().zip(&arrows) {
        for (&other, names) in others {
            for name in names.iter().filter(|name| *name != ITS_HEADER) {
                wrong.push(format!("{name} is declared by {unit}, defined by {}", units[other]));
            }
        }
    }
    wrong
}

#[test]
fn what_a_header_declares_its_unit_defines() {
    report("a unit defines what its header declares", defined_elsewhere(&files()));
}

/// Methods that the classes of a header declare, with their lines; not those of classes inside them,
/// nor operators.
fn methods(file: &Source) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let (mut class, mut statement) = ("", String::new());
    for (at, line) in file.text.lines().enumerate() {
        let code = strip_comment(line).trim_end();
        if !line.starts_with(' ') {
            if ["class", "struct"].contains(&first_word(line)) && !code.ends_with(';') {
                class = line.split(' ').skip(1).find(|w| !w.starts_with('[')).unwrap_or_default();
            } else if line.starts_with("};") {
                class = "";
            }
            statement.clear();
            continue;
        }
        let text = line.trim_start();
        let begins = line.len() - text.len() == 2
            && text.starts_with(|c: char| c.is_alphabetic() || c == '~');
        if class.is_empty() || statement.is_empty() && !begins {
            continue;
        }
        statement.push_str(code);
        statement.push(' ');
        let mut open = 0;
        let is_end = |c: char| {
            open += i32::from(c == '(') - i32::from(c == ')');
            open == 0 && [';', '{', '='].contains(&c)
        };
        let Some(end) = statement.find(is_end) else { continue };
        let (head, is_declared) = (&statement[..end], statement[end..].starts_with(';'));
        let (before, is_function) =
            head.split_once('(').map_or((head, false), |(before, _)| (before, true));
        // A call in angles, or a pointer to a function.
        let is_type =
            before.matches('<').count() > before.matches('>').count() || head.contains("(*");
        let is_none = ["using", "friend", "typedef"].contains(&first_word(head.trim_start()));
        if is_declared && is_function && !is_type && !is_none {
            found.extend(last_path(before).map(|name| (at + 1, format!("{class}::{name}"))));
        }
        statement.clear();
    }
    found
}

/// Methods that a header declares and no file defines.
fn defined_nowhere(files: &[Source]) -> Vec<String> {
    let defined: BTreeSet<String> = files.iter().flat_map(|file| names(file).defined).collect();
    let headers = files.iter().filter(|file| file.path.ends_with(".h"));
    let declared = headers.flat_map(|file| methods(file).into_iter().map(move |m| (file, m)));
    let wrong = declared.filter(|(_, (_, name))| !defined.contains(name));
    wrong.map(|(file, (at, name))| format!("{}:{at}: {name} is not defined", file.path)).collect()
}

#[test]
fn what_a_class_declares_is_defined() {
    let files = files();
    let count: usize = files.iter().map(|file| methods(file).len()).sum();
    assert!(count > 200, "{count} methods found");
    report("a method that a class declares is defined", defined_nowhere(&files));
}

#[test]
fn a_method_that_is_not_defined_is_found() {
    let header = "namespace s {\nclass A;\nclass [[x]] A final : public B {\n public:\n  A(int x);\n  ~A();\n  B();\n  void (*p)(int);\n\
                  \x20 // void no();\n  int f() const { return 1; }\n  void g() = delete;\n\
                  \x20 std::function<void(int)> h_;\n  std::atomic<int> i_{0};\n  int j(\n\
                  \x20     int x = f(1), int y = {});\n  bool k(int) const;  // here\n\
                  \x20 struct In {\n    void l();\n  };\n  using M = void();\n  int n_ = 1;\n\
                  };\nvoid o();\n}  // namespace s\n";
    let code = "#include \"a.h\"\n\nnamespace s {\nA::A(int x) : i_(x) {}\nA::B() = default;\nint A::j(int x, int y) {\n\
                \x20 return 1;\n}\n}  // namespace s\n";
    let sources = [source("a.h", header), source("a.cc", code)];
    let expected = ["6: A::~A", "16: A::k"];
    let expected = expected.map(|what| format!("{SOURCES}a.h:{what} is not defined"));
    assert_eq!(defined_nowhere(&sources), expected);
}

/// Units that rely on one of a later folder, or that are in a folder that is not listed.
fn against_the_order(files: &[Source]) -> Vec<String> {
    let place = |unit: &str| FOLDERS.iter().position(|(name, _)| *name == folder(unit));
    let mut wrong = Vec::new();
    for file in files.iter().filter(|file| file.path.starts_with(SOURCES)) {
        if place(stem(&file.path)).is_none() && stem(&file.path) != "server" {
            wrong.push(format!("{} is in no folder of the list", file.path));
        }
    }
    let (units, arrows) = units(files);
    for (unit, others) in units.iter().zip(&arrows) {
        for (&other, names) in others {
            let (from, to) = (place(unit), place(&units[other]));
            // What is in no folder is `server`, or a test.
            if to.is_some() && (unit == "server" || from.is_some() && from < to) {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                let other = &units[other];
                wrong.push(format!("{unit} -> {other}, which is later: {}", names.join(", ")));
            }
        }
    }
    wrong
}

#[test]
fn folders_rely_on_earlier_ones_only() {
    report("the order of folders is FOLDERS", against_the_order(&files()));
}

#[test]
fn folders_are_in_the_readme() {
    let page = read(&root().join("mariadb/README.md")).text;
    let rows: Vec<&str> = page.lines().filter(|line| line.contains("/` | ")).collect();
    let expected = FOLDERS.map(|(name, what)| format!("| `{name}/` | {what} |"));
    assert_eq!(rows, expected);
}

#[test]
fn a_folder_that_relies_on_a_later_one_is_found() {
    let sources = [
        source("server.h", "#include \"codec/a.h\"\n"),
        source("codec/a.h", "#include \"server.h\"\nint f();\n"),
        source("txn/b.h", "#include \"codec/a.h\"\n#include \"show/c.h\"\n"),
        source("show/c.h", "#include \"show/d.h\"\n#include \"txn/b.h\"\n"),
        source("show/d.h", "int g();\n"),
        source("show/d.cc", "#include \"show/d.h\"\n\nint f() { return 0; }\n"),
        source("more/e.h", ""),
    ];
    let expected = [
        format!("{SOURCES}more/e.h is in no folder of the list"),
        "codec/a -> show/d, which is later: f".to_owned(),
        "server -> codec/a, which is later: its header".to_owned(),
        "txn/b -> show/c, which is later: its header".to_owned(),
    ];
    assert_eq!(against_the_order(&sources), expected);
}

/// Where functions begin, and how many lines they have: blocks with parentheses before the `{`, at
/// the first column or of a class.
fn functions(file: &Source) -> Vec<(usize, usize)> {
    let lines: Vec<&str> = file.text.lines().collect();
    let mut found = Vec::new();
    let mut in_class = false;
    for (at, line) in lines.iter().enumerate() {
        let text = line.trim_start();
        let indent = &line[..line.len() - text.len()];
        if indent.is_empty() && !text.is_empty() {
            in_class = ["class", "struct"].contains(&first_word(text));
        }
        if indent.len() > if in_class { 2 } else { 0 }
            || !text.starts_with(|c: char| c.is_alphabetic() || c == '~')
        {
            continue;
        }
        let rest = &lines[at..];
        let head = rest.iter().position(|line| strip_comment(line).contains([';', '{']));
        let is_block = head.is_some_and(|end| strip_comment(rest[end]).trim_end().ends_with('{'))
            && rest[..=head.unwrap()].iter().any(|line| strip_comment(line).contains('('));
        if !is_block {
            continue;
        }
        let end = rest.iter().position(|line| line.strip_prefix(indent) == Some("}"));
        found.push((at + 1, end.map_or(1, |end| end + 1)));
    }
    found
}

/// What is too long in a file, or lacks something.
fn untidy(file: &Source) -> Vec<String> {
    let mut wrong = Vec::new();
    let path = &file.path;
    let count = file.text.lines().count();
    if count > FILE_LINES {
        wrong.push(format!("{path} has {count} lines"));
    }
    if !file.text.starts_with("// ") {
        wrong.push(format!("{path} does not open with what it is for"));
    }
    let mut code = file.text.lines().skip_while(|line| line.starts_with("//"));
    if path.ends_with(".h") && code.next() != Some("#pragma once") {
        wrong.push(format!("{path} has no #pragma once below its comment"));
    }
    for (at, line) in file.text.lines().enumerate() {
        if line.chars().count() > LINE_COLUMNS {
            wrong.push(format!("{path}:{} is longer than {LINE_COLUMNS} columns", at + 1));
        }
        if !line.is_ascii() {
            wrong.push(format!("{path}:{} has letters that are not ASCII", at + 1));
        }
    }
    for (at, length) in functions(file).iter().filter(|(_, length)| *length > FUNCTION_LINES) {
        wrong.push(format!("{path}:{at} is a function of {length} lines"));
    }
    wrong
}

#[test]
fn files_and_functions_are_short_and_say_what_they_are_for() {
    report("C++ is tidy", files().iter().flat_map(untidy).collect());
}

/// The kinds of headers, in the order in which a file includes them, with an empty line between:
/// its unit's own, the server's (`server.h` has most of them), the plugin's, the standard ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Own,
    Server,
    Plugin,
    Standard,
}

fn kind(file: &Source, unit: &str, include: &str) -> Kind {
    let name = &include[1..include.len() - 1];
    // Headers of C++ have no ending, those of the system are few.
    let of_system = ["fcntl.h", "unistd.h", "dirent.h"].contains(&name) || name.starts_with("sys/");
    if name == "server.h" {
        Kind::Server
    } else if include.starts_with('"') {
        let is_own = file.path.ends_with(".cc") && stem(name) == unit;
        if is_own { Kind::Own } else { Kind::Plugin }
    } else if name.ends_with(".h") && !of_system {
        Kind::Server
    } else {
        Kind::Standard
    }
}

/// Includes that are not in order. Those of the server are in the order that it needs.
fn disordered(file: &Source, unit: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let all = includes(file);
    for pair in all.windows(2) {
        let [(at, first), (next, second)] = *pair else { continue };
        let (before, after) = (kind(file, unit, first), kind(file, unit, second));
        let sorted =
            before < after || before == after && (before == Kind::Server || first < second);
        let apart = next - at == if before == after { 1 } else { 2 };
        if !sorted || !apart {
            wrong.push(format!("{}:{next}: {second} after {first}", file.path));
        }
    }
    wrong
}

#[test]
fn includes_are_in_order() {
    let files = files();
    let wrong = files.iter().flat_map(|file| disordered(file, &unit_of(&files, file)));
    report("own header, the server's, the plugin's, the standard ones", wrong.collect());
}

fn source(path: &str, text: &str) -> Source {
    Source { path: format!("{SOURCES}{path}"), text: text.to_owned(), is_test: false }
}

#[test]
fn a_circle_of_units_is_found() {
    let sources = [
        // By includes: a and b. The .cc without a header is of the unit that it includes first.
        source("a/a.h", "#include \"a/b.h\"\n"),
        source("a/b.h", "namespace s {\nclass B {\n  int f();\n};\n}  // namespace s\n"),
        source("a/b_more.cc", "#include \"a/b.h\"\n\n#include \"a/a.h\"\n"),
        // By what is defined elsewhere: a function, a variable, a method.
        source(
            "c.h",
            "namespace s {\n// int none();\nint one(int a,\n        int b);\nextern X two[];\n\
             struct Three {\n  void three();\n};\n}  // namespace s\n",
        ),
        source(
            "d.cc",
            "#include \"c.h\"\n\nnamespace s {\nnamespace {\nint four() { return 0; }\n\
             }  // namespace\nX two[] = {1, 2};\nvoid Three::three() {}\n}  // namespace s\n\
             int s::one(int a, int b) {\n  return four();\n}\n",
        ),
        source("d.h", "#include \"c.h\"\n"),
        // None: names of no header, of the unit's own one too, or only declared again.
        source("e.h", "int four();\nint five();\nint six();\n"),
        source("e.cc", "#include \"e.h\"\n\nint five() { return 0; }\n"),
        source("f.h", "#include \"e.h\"\nint five(int);\n"),
        source("f.cc", "#include \"f.h\"\nint five(int x) { return x; }\nint six();\n"),
    ];
    let lines: Vec<Vec<String>> = circles(&sources).into_iter().map(|c| c.lines).collect();
    let expected = [
        vec!["a/a -> a/b: its header", "a/b -> a/a: its header"],
        vec!["c -> d: Three::three, one, two", "d -> c: its header"],
    ];
    assert_eq!(lines, expected);
    let expected =
        ["Three::three", "one", "two"].map(|name| format!("{name} is declared by c, defined by d"));
    assert_eq!(defined_elsewhere(&sources), expected);
}

#[test]
fn what_is_untidy_is_found() {
    let long = format!("int f() {{\n{}}}\n", "  g();\n".repeat(FUNCTION_LINES - 1));
    let method = format!("class A {{\n  A(int x,\n    int y) {{\n{}  }}\n}};\n", "\n".repeat(78));
    let text = format!("// It.\n#pragma once\n{long}{method}{}\n", "x".repeat(LINE_COLUMNS + 1));
    let found = |path: &str, text: &str| {
        let wrong = untidy(&source(path, text));
        wrong.iter().map(|line| line.replace(SOURCES, "")).collect::<Vec<String>>()
    };
    let expected = [
        "a.h:167 is longer than 100 columns",
        "a.h:3 is a function of 81 lines",
        "a.h:85 is a function of 81 lines",
    ];
    assert_eq!(found("a.h", &text), expected);
    let expected = [
        "a.h does not open with what it is for",
        "a.h has no #pragma once below its comment",
        "a.h:1 has letters that are not ASCII",
    ];
    assert_eq!(found("a.h", "int \u{e4};\n"), expected);
    assert_eq!(found("a.cc", "// It.\n"), [""; 0]);
    assert_eq!(found("a.cc", &format!("// It.\n{}", "\n".repeat(600))), ["a.cc has 601 lines"]);
}

#[test]
fn includes_out_of_order_are_found() {
    let good = "#include \"x/a.h\"\n\n#include \"server.h\"\n#include <log.h>\n#include <key.h>\n\n\
                #include \"x/b.h\"\n#include \"y/a.h\"\n\n#include <map>\n#include <sys/stat.h>\n";
    assert_eq!(disordered(&source("x/a.cc", good), "x/a"), [""; 0]);
    let bad = "#include \"server.h\"\n\n#include \"x/a.h\"\n\n#include \"x/c.h\"\n\
               #include \"x/b.h\"\n#include <map>\n\n#include <set>\n";
    let expected = [
        "3: \"x/a.h\" after \"server.h\"",
        "6: \"x/b.h\" after \"x/c.h\"",
        "7: <map> after \"x/b.h\"",
        "9: <set> after <map>",
    ];
    let expected = expected.map(|text| format!("{SOURCES}x/a.cc:{text}"));
    assert_eq!(disordered(&source("x/a.cc", bad), "x/a"), expected);
}
