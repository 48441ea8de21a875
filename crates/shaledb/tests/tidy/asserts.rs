//! Assertions are many: a fact is asserted where it is made and where it is relied on.
//!
//! Tests are left out, and so is `fuzz`, which is what tests run.

use crate::report;
use crate::source::{Source, sources};
use std::collections::BTreeMap;

/// How many there are at least in 1,000 lines of code of the engine, and of each of its modules
/// that has more lines than [`SMALL_LINES`].
const IN_ENGINE: usize = 10;
const IN_MODULE: usize = 4;
const SMALL_LINES: usize = 300;

/// Lines of code, without comments and empty lines, and the assertions in them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    lines: usize,
    asserts: usize,
}

impl Count {
    fn add(&mut self, other: Count) {
        self.lines += other.lines;
        self.asserts += other.asserts;
    }

    fn has(self, in_thousand: usize) -> bool {
        self.asserts * 1000 >= self.lines * in_thousand
    }
}

/// How many assertions a line of code begins.
fn asserts(code: &str) -> usize {
    let names = ["assert", "assert_eq", "assert_ne"];
    let is_assert = |word: &&str| names.contains(&word.strip_prefix("debug_").unwrap_or(word));
    let before_marks = code.split("!(").map(|before| {
        let start = before.rfind(|c: char| !c.is_alphanumeric() && c != '_');
        &before[start.map_or(0, |at| at + 1)..]
    });
    // What follows the last mark is before none.
    let marks = code.matches("!(").count();
    before_marks.take(marks).filter(is_assert).count()
}

fn count(source: &Source) -> Count {
    let mut count = Count::default();
    for (_, code) in source.code().filter(|(_, code)| !code.trim().is_empty()) {
        count.add(Count { lines: 1, asserts: asserts(code) });
    }
    count
}

/// The engine's modules.
fn modules<'a>(sources: impl IntoIterator<Item = &'a Source>) -> BTreeMap<&'a str, Count> {
    let mut modules: BTreeMap<&str, Count> = BTreeMap::new();
    for source in sources.into_iter().filter(|source| !source.is_test) {
        let Some(path) = source.engine_path() else { continue };
        let name = path.split(['/', '.']).next().unwrap();
        if name != "fuzz" {
            modules.entry(name).or_default().add(count(source));
        }
    }
    modules
}

/// The modules with too few, and the engine if it has.
fn too_few(modules: &BTreeMap<&str, Count>) -> Vec<String> {
    let mut all = Count::default();
    modules.values().for_each(|count| all.add(*count));
    let large = modules.iter().filter(|(_, count)| count.lines > SMALL_LINES);
    let asked = large.map(|(name, count)| (*name, *count, IN_MODULE));
    let wrong = asked.chain([("the engine", all, IN_ENGINE)]).filter(|of| !of.1.has(of.2));
    let tell = |(name, Count { lines, asserts }, least): (&str, Count, usize)| {
        let needed = (lines * least).div_ceil(1000);
        format!("{name} has {asserts} assertions in {lines} lines and needs {needed}")
    };
    wrong.map(tell).collect()
}

#[test]
fn assertions_are_many() {
    let sources = sources();
    let modules = modules(&sources);
    assert!(modules.len() > 10, "{modules:?}");
    report("assertions are many", too_few(&modules));
}

#[test]
fn too_few_assertions_are_found() {
    let text = "//! assert!(a);\n\nassert!(a); // debug_assert!(b);\n    debug_assert_eq!(a, b);\n\
                my_assert!(a);\nlet assert = !(a);\nassert_ne!(f!(a), b); debug_assert!(!(c));\n\
                #[cfg(all(test, x))]\nmod tests {\n    assert!(a);\n}\n";
    let source = |path: &str, text: &str| Source {
        path: format!("crates/shaledb/src/{path}"),
        text: text.to_owned(),
        is_test: path.ends_with("_tests.rs"),
    };
    let of_text = Count { lines: 5, asserts: 4 };
    let all = [
        source("a/b.rs", text),
        source("a.rs", text),
        source("a/c_tests.rs", text),
        source("fuzz/d.rs", text),
        source("e.rs", "x\n"),
    ];
    let (two, one) = (Count { lines: 10, asserts: 8 }, Count { lines: 1, asserts: 0 });
    assert_eq!(count(&all[0]), of_text);
    assert_eq!(modules(&all), BTreeMap::from([("a", two), ("e", one)]));
    let found = |name, lines, asserts| too_few(&BTreeMap::from([(name, Count { lines, asserts })]));
    assert_eq!(found("m", 1000, 10), Vec::<String>::new());
    assert_eq!(found("m", 1001, 10), ["the engine has 10 assertions in 1001 lines and needs 11"]);
    assert_eq!(found("m", 300, 0).len(), 1, "a small module is not asked");
    assert_eq!(found("m", 1000, 3).len(), 2);
}
