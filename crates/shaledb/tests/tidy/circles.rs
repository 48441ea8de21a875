//! No circle of files: whoever reads a file finds what it relies on in files that do not rely on it.
//!
//! A file relies on another if it names something that is defined there, by a `use` or in passing.
//! What a module merely shows on (`pub use`) counts as named where it is defined, so a child may use
//! what its parent shows of another child.

use crate::report;
use crate::source::{Source, first_word, modules, sources};
use std::collections::{BTreeMap, BTreeSet};

/// Crates whose list of modules has another order: that of the C header, which is made from it.
const IN_ANOTHER_ORDER: [&str; 1] = ["crates/shaledb-capi/src/lib.rs"];

/// A crate: its files by number, and which module each of them is.
struct Tree<'a> {
    files: Vec<&'a Source>,
    /// What a file is without comments, texts and tests.
    bare: Vec<String>,
    /// The numbers of its parts, by their names.
    children: Vec<BTreeMap<String, usize>>,
    parent: Vec<usize>,
    /// What a `use` has given a name, and the path to it.
    uses: Vec<Vec<Use>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Use {
    name: String,
    path: Vec<String>,
    /// Whether it is there to be used from elsewhere.
    shown: bool,
}

/// The code of a file, with blanks for comments and for what is between quotes.
fn bare(source: &Source) -> String {
    let text: Vec<char> =
        source.lines().flat_map(|(_, line)| line.chars().chain(std::iter::once('\n'))).collect();
    let mut code = String::new();
    let mut at = 0;
    while let Some(&c) = text.get(at) {
        let next = text.get(at + 1).copied().unwrap_or(' ');
        match c {
            '/' if next == '/' => {
                while at < text.len() && text[at] != '\n' {
                    at += 1;
                }
            }
            '"' => {
                // A raw text ends with as many `#` as it begins with.
                let start = code.trim_end_matches('#');
                let raw = start.ends_with('r');
                let hashes = if raw { code.len() - start.len() } else { 0 };
                let ends = |at: usize| {
                    let tail = &text[at + 1..];
                    text[at] == '"'
                        && tail.len() >= hashes
                        && tail[..hashes].iter().all(|&c| c == '#')
                };
                at += 1;
                while at < text.len() && !ends(at) {
                    at += if text[at] == '\\' && !raw { 2 } else { 1 };
                }
                at += 1 + hashes;
                code.push(' ');
            }
            '\'' if text.get(at + 2) == Some(&'\'') => at += 3,
            '\'' if next == '\\' => {
                at += 3;
                while at < text.len() && text[at] != '\'' {
                    at += 1;
                }
                at += 1;
            }
            // `pub(in crate::a)` says who may name it.
            'i' if next == 'n' && code.ends_with("pub(") => {
                while at < text.len() && text[at] != ')' {
                    at += 1;
                }
            }
            _ => {
                code.push(c);
                at += 1;
            }
        }
    }
    code
}

/// The `use`s of some code.
fn uses(code: &str) -> Vec<Use> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("use ") {
        let line = code[..at].rfind('\n').map_or(0, |end| end + 1);
        let before = code[line..at].trim();
        if !(before.is_empty() || before == "pub" || before.starts_with("pub(")) {
            continue;
        }
        let Some(end) = code[at..].find(';') else { continue };
        let tree: String = code[at + 4..at + end].split_whitespace().collect::<Vec<_>>().join(" ");
        expand(&tree, &[], !before.is_empty(), &mut found);
    }
    found
}

/// Adds the paths of `a::{b, c as d}`.
fn expand(tree: &str, prefix: &[String], shown: bool, found: &mut Vec<Use>) {
    let tree = tree.trim();
    let mut path = prefix.to_vec();
    if let Some((head, rest)) = tree.split_once('{') {
        path.extend(head.split("::").map(str::trim).filter(|s| !s.is_empty()).map(str::to_owned));
        let inner = rest.rsplit_once('}').map_or(rest, |(inner, _)| inner);
        let (mut depth, mut start) = (0, 0);
        for (index, c) in inner.char_indices().chain([(inner.len(), ',')]) {
            depth += i32::from(c == '{') - i32::from(c == '}');
            if c == ',' && depth == 0 {
                if !inner[start..index].trim().is_empty() {
                    expand(&inner[start..index], &path, shown, found);
                }
                start = index + 1;
            }
        }
        return;
    }
    let (tree, alias) = tree.split_once(" as ").map_or((tree, None), |(t, a)| (t, Some(a.trim())));
    path.extend(tree.split("::").map(|s| s.trim().to_owned()).filter(|s| !s.is_empty()));
    if path.last().is_some_and(|last| last == "self") {
        path.pop();
    }
    let Some(last) = path.last().cloned() else { return };
    found.push(Use { name: alias.map_or(last, str::to_owned), path, shown });
}

/// The paths `a::b::C` of some code that are not part of a `use`, nor single names.
fn paths(code: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let mut rest = code;
    let mut last = ' ';
    while let Some(start) = rest.find(is_name) {
        let before = rest[..start].chars().next_back().unwrap_or(last);
        let tail = &rest[start..];
        let mut end = first_word(tail).len();
        let mut path = vec![tail[..end].to_owned()];
        while let Some(more) = tail[end..].strip_prefix("::") {
            let word = first_word(more);
            if word.is_empty() {
                break;
            }
            path.push(word.to_owned());
            end += 2 + word.len();
        }
        if path.len() == 1 && path[0] == "use" {
            end = tail.find(';').unwrap_or(tail.len());
        } else if path.len() > 1 && before != '.' && before != ':' {
            found.push(path);
        }
        last = tail[..end].chars().next_back().unwrap_or(' ');
        rest = &tail[end..];
    }
    found
}

/// Whether some code defines an item of this name.
fn defines(code: &str, name: &str) -> bool {
    let kinds =
        ["struct", "enum", "fn", "trait", "type", "const", "static", "macro_rules!", "union"];
    code.match_indices(name).any(|(at, _)| {
        let before = code[..at].trim_end();
        first_word(&code[at..]) == name && kinds.iter().any(|kind| before.ends_with(kind))
    })
}

impl<'a> Tree<'a> {
    /// The crate whose root is this file.
    fn new(all: &'a [Source], root: &'a Source) -> Tree<'a> {
        let mut tree = Tree {
            files: vec![root],
            bare: Vec::new(),
            children: Vec::new(),
            parent: vec![0],
            uses: Vec::new(),
        };
        let mut at = 0;
        while at < tree.files.len() {
            let file = tree.files[at];
            let mut children = BTreeMap::new();
            for module in modules(file) {
                let is_it = |source: &&Source| module.files.contains(&source.path);
                if let Some(source) = all.iter().find(is_it).filter(|source| !source.is_test) {
                    children.insert(module.name, tree.files.len());
                    tree.files.push(source);
                    tree.parent.push(at);
                }
            }
            tree.children.push(children);
            let code = bare(file);
            tree.uses.push(uses(&code));
            tree.bare.push(code);
            at += 1;
        }
        tree
    }

    /// The file that defines what a path names, as seen from a file. None if it is not of this
    /// crate.
    fn resolve(&self, from: usize, path: &[String], depth: usize) -> Option<usize> {
        let first = path.first().filter(|_| depth < 8)?;
        let (mut module, mut rest) = match first.as_str() {
            "crate" => (0, &path[1..]),
            "super" => (self.parent[from], &path[1..]),
            "self" => (from, &path[1..]),
            name if self.children[from].contains_key(name) => (from, path),
            name => {
                // What a `use` here has named; the `use` itself counts as well.
                let named = self.uses[from].iter().find(|used| used.name == name)?;
                let mut whole = named.path.clone();
                whole.extend_from_slice(&path[1..]);
                let is_crate = |name: &str| ["crate", "super", "self"].contains(&name);
                let own = is_crate(&whole[0]) || self.children[from].contains_key(&whole[0]);
                return if own { self.resolve(from, &whole, depth + 1) } else { None };
            }
        };
        while let Some(name) = rest.first() {
            if name == "super" {
                module = self.parent[module];
            } else if let Some(&child) = self.children[module].get(name) {
                module = child;
            } else {
                break;
            }
            rest = &rest[1..];
        }
        let Some(item) = rest.first() else { return Some(module) };
        if item == "*" || defines(&self.bare[module], item) {
            return Some(module);
        }
        let mut named = self.uses[module].iter().filter(|used| used.name == *item);
        if let Some(found) = named.find_map(|used| self.resolve(module, &used.path, depth + 1)) {
            return Some(found);
        }
        for used in self.uses[module].iter().filter(|used| used.shown && used.name == "*") {
            let mut path = used.path.clone();
            path.pop();
            path.push(item.clone());
            let found = self.resolve(module, &path, depth + 1);
            if found.is_some_and(|file| defines(&self.bare[file], item)) {
                return found;
            }
        }
        Some(module)
    }

    /// Which files a file relies on, and by which names.
    fn relies_on(&self, file: usize) -> BTreeMap<usize, BTreeSet<String>> {
        let named = paths(&self.bare[file]);
        let mut all: Vec<Vec<String>> = Vec::new();
        for used in &self.uses[file] {
            // A module that is named by a `use` counts by what is then taken from it.
            if !named.iter().any(|path| path[0] == used.name) {
                all.push(used.path.clone());
            }
        }
        all.extend(named);
        let mut found: BTreeMap<usize, BTreeSet<String>> = BTreeMap::new();
        for path in &all {
            if let Some(other) = self.resolve(file, path, 0).filter(|&other| other != file) {
                found.entry(other).or_default().insert(path.last().unwrap().clone());
            }
        }
        found
    }

    /// From the root down to a file.
    fn place(&self, file: usize) -> Vec<usize> {
        let mut place = vec![file];
        while place[0] != 0 {
            place.insert(0, self.parent[place[0]]);
        }
        place
    }

    /// Where a file names something of a module that comes later in the same list of modules than
    /// its own.
    fn against_the_order(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        if IN_ANOTHER_ORDER.contains(&self.files[0].path.as_str()) {
            return wrong;
        }
        for file in 0..self.files.len() {
            let own = self.place(file);
            for (other, names) in self.relies_on(file) {
                let others = self.place(other);
                let fork = own.iter().zip(&others).position(|(a, b)| a != b);
                // Numbers are given in the order of the lists.
                if fork.is_some_and(|at| own[at] < others[at]) {
                    let names: Vec<&str> = names.iter().map(String::as_str).collect();
                    let (from, to) = (&self.files[file].path, &self.files[other].path);
                    wrong.push(format!("{from} -> {to}: {}", names.join(", ")));
                }
            }
        }
        wrong
    }

    fn circles(&self) -> Vec<Circle> {
        let arrows: Vec<_> = (0..self.files.len()).map(|file| self.relies_on(file)).collect();
        circles_of(&arrows, |file| self.files[file].path.clone())
    }
}

/// The circles among things of which each relies on others by some names.
pub fn circles_of(
    arrows: &[BTreeMap<usize, BTreeSet<String>>],
    path: impl Fn(usize) -> String,
) -> Vec<Circle> {
    let reach: Vec<BTreeSet<usize>> = (0..arrows.len())
        .map(|start| {
            let mut seen = BTreeSet::new();
            let mut next: Vec<usize> = arrows[start].keys().copied().collect();
            while let Some(file) = next.pop() {
                if seen.insert(file) {
                    next.extend(arrows[file].keys());
                }
            }
            seen
        })
        .collect();
    let mut found = Vec::new();
    let mut done = BTreeSet::new();
    for start in (0..arrows.len()).filter(|&start| reach[start].contains(&start)) {
        if !done.insert(start) {
            continue;
        }
        let circle: BTreeSet<usize> =
            reach[start].iter().copied().filter(|&f| reach[f].contains(&start)).collect();
        done.extend(&circle);
        let mut lines = Vec::new();
        for &file in &circle {
            for (other, names) in arrows[file].iter().filter(|(f, _)| circle.contains(f)) {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                lines.push(format!("{} -> {}: {}", path(file), path(*other), names.join(", ")));
            }
        }
        found.push(Circle { files: circle.iter().map(|&file| path(file)).collect(), lines });
    }
    found
}

/// A report of circles: the files, and what makes each.
pub fn told(circles: &[Circle]) -> Vec<String> {
    let mut lines = Vec::new();
    for circle in circles {
        let files: Vec<&str> = circle.files.iter().map(String::as_str).collect();
        lines.push(format!("a circle of {}: {}", files.len(), files.join(", ")));
        lines.extend(circle.lines.iter().map(|line| format!("    {line}")));
    }
    lines
}

pub struct Circle {
    pub files: BTreeSet<String>,
    /// What makes it one.
    pub lines: Vec<String>,
}

/// All crates.
fn trees(sources: &[Source]) -> impl Iterator<Item = Tree<'_>> {
    let is_root = |source: &&Source| {
        ["/src/lib.rs", "/src/main.rs"].iter().any(|end| source.path.ends_with(end))
    };
    sources.iter().filter(is_root).map(|root| Tree::new(sources, root))
}

/// The circles of all crates.
fn all_circles(sources: &[Source]) -> Vec<Circle> {
    trees(sources).flat_map(|tree| tree.circles()).collect()
}

#[test]
fn modules_name_only_earlier_ones() {
    let sources = sources();
    let wrong = trees(&sources).flat_map(|tree| tree.against_the_order()).collect();
    report("a list of modules is their order: each names only earlier ones", wrong);
}

#[test]
fn a_later_module_is_found() {
    let source = |path: &str, text: &str| Source {
        path: format!("crates/c/src/{path}"),
        text: text.to_owned(),
        is_test: false,
    };
    let sources = [
        source("lib.rs", "mod a;\nmod b;\n"),
        source("a/mod.rs", "mod x;\nmod y;\npub use y::Y;\n"),
        source("a/x.rs", "use super::y::Y;\npub struct X(Y);\n"),
        source("a/y.rs", "pub struct Y(pub crate::b::B);\n"),
        source("b.rs", "pub struct B;\nfn f(_: crate::a::Y) {}\n"),
    ];
    let wrong: Vec<String> = trees(&sources).flat_map(|tree| tree.against_the_order()).collect();
    let expected = ["a/x.rs -> crates/c/src/a/y.rs: Y", "a/y.rs -> crates/c/src/b.rs: B"];
    assert_eq!(wrong, expected.map(|text| format!("crates/c/src/{text}")));
}

#[test]
fn files_are_in_no_circle() {
    let wrong = told(&all_circles(&sources()));
    report("no file relies on one that relies on it", wrong);
}

#[test]
fn a_circle_is_found() {
    let source = |path: &str, text: &str| Source {
        path: format!("crates/c/src/{path}"),
        text: text.to_owned(),
        is_test: false,
    };
    let sources = [
        source("lib.rs", "mod a;\nmod b;\nmod c;\npub mod d;\npub use b::Shown;\n"),
        // What the root shows of b is b's; the texts and comments are none of the code.
        source(
            "a.rs",
            "use crate::{Shown, c::{self, C as X}};\n// crate::d\nconst T: &str = \"crate::d\";\n\
             const R: &str = r#\"\"crate::d\"\"#;\n",
        ),
        source("b.rs", "pub struct Shown;\nfn f() { super::a::g(); }\n"),
        source("c.rs", "pub struct C;\n#[cfg(test)]\nmod tests {\n    use crate::a;\n}\n"),
        source("d/mod.rs", "mod e;\nuse e::E;\npub struct D;\n"),
        source("d/e.rs", "use super::D;\npub struct E(D);\n"),
    ];
    let lines: Vec<Vec<String>> = all_circles(&sources).into_iter().map(|c| c.lines).collect();
    let arrow = |from: &str, to: &str| format!("crates/c/src/{from} -> crates/c/src/{to}");
    let expected = [
        vec![arrow("a.rs", "b.rs: Shown"), arrow("b.rs", "a.rs: g")],
        vec![arrow("d/mod.rs", "d/e.rs: E"), arrow("d/e.rs", "d/mod.rs: D")],
    ];
    assert_eq!(lines, expected);
}
