//! Every public item has an example that runs.
//!
//! What is public is found where rustdoc finds it: from `lib.rs` through `pub mod` and `pub use`,
//! without what is hidden; then the methods of those types and traits, in whatever file they are.
//! So there is no list that somebody must remember. That the examples are right is for
//! `cargo test --doc`; here it is asked whether they are there, whether they are run, and whether
//! the example of a function calls it. Reads sources by their lines and relies on rustfmt.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The sources of a crate: text by path from `src`.
struct Sources(BTreeMap<String, String>);

/// A public item, by where it is declared.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Item {
    file: String,
    /// The index of its line.
    at: usize,
    /// `struct`, `fn` and so on.
    kind: String,
    /// Its name; a method's with its type.
    name: String,
}

/// The first word of a text.
fn word(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    &text[..end]
}

/// The kind and the name that a line declares, if it does, after `pub `.
fn declared(line: &str) -> Option<(&str, &str)> {
    let mut rest = line;
    for modifier in ["const ", "unsafe ", "async "] {
        // A constant is followed by its name, a modifier by what it modifies.
        let stripped = rest.strip_prefix(modifier);
        rest = stripped.filter(|r| word(r).chars().all(char::is_lowercase)).unwrap_or(rest);
    }
    let (kind, rest) = rest.split_once(' ')?;
    let kinds = ["struct", "enum", "union", "trait", "fn", "type", "const", "static", "mod"];
    (kinds.contains(&kind) && !word(rest).is_empty()).then(|| (kind, word(rest)))
}

/// The lines of documentation and attributes right above a line, in order.
fn above<'a>(lines: &[&'a str], at: usize) -> Vec<&'a str> {
    let mut first = at;
    // Whether the line above is inside an attribute of several lines.
    let mut inside = false;
    while first > 0 {
        let line = lines[first - 1].trim_start();
        let starts = line.starts_with("#[");
        if !inside && !starts && !line.starts_with("///") && line != ")]" {
            break;
        }
        inside = (inside || line == ")]") && !starts;
        first -= 1;
    }
    lines[first..at].iter().map(|line| line.trim_start()).collect()
}

/// The code of the examples that are run, without their hidden lines.
fn examples(docs: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    let mut open: Option<(bool, String)> = None;
    for line in docs.iter().filter_map(|line| line.strip_prefix("///")) {
        let text = line.strip_prefix(' ').unwrap_or(line);
        match (text.strip_prefix("```"), open.take()) {
            (Some(info), None) => open = Some((["", "rust"].contains(&info), String::new())),
            (Some(_), Some((runs, code))) if runs && !code.trim().is_empty() => found.push(code),
            (None, Some((runs, code))) if text.starts_with("# ") => open = Some((runs, code)),
            (None, Some((runs, code))) => open = Some((runs, code + text + "\n")),
            _ => {}
        }
    }
    found
}

/// The paths that a `pub use` of one or several lines names: its groups taken apart.
fn used_paths(text: &str) -> Vec<Vec<String>> {
    let text = text.trim();
    let Some((head, group)) = text.split_once('{') else {
        let path = text.split(" as ").next().unwrap_or(text);
        return vec![path.split("::").map(|part| part.trim().to_owned()).collect()];
    };
    let prefix: Vec<String> =
        head.split("::").map(|part| part.trim().to_owned()).filter(|p| !p.is_empty()).collect();
    let inner = group.trim_end().strip_suffix('}').unwrap_or(group);
    let (mut parts, mut depth) = (vec![String::new()], 0);
    for c in inner.chars() {
        depth += i32::from(c == '{') - i32::from(c == '}');
        match c {
            ',' if depth == 0 => parts.push(String::new()),
            c => parts.last_mut().unwrap().push(c),
        }
    }
    let parts = parts.iter().filter(|part| !part.trim().is_empty());
    let paths = parts.flat_map(|part| used_paths(part));
    paths
        .map(|rest| {
            let rest = rest.into_iter().filter(|part| part != "self");
            prefix.iter().cloned().chain(rest).collect()
        })
        .collect()
}

impl Sources {
    fn read() -> Sources {
        let mut texts = BTreeMap::new();
        read_dir(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), "", &mut texts);
        Sources(texts)
    }

    /// The file of a module.
    fn file(&self, module: &[String]) -> Option<String> {
        let path = module.join("/");
        let names = match module {
            [] => vec!["lib.rs".to_owned()],
            _ => vec![format!("{path}.rs"), format!("{path}/mod.rs")],
        };
        names.into_iter().find(|name| self.0.contains_key(name))
    }

    fn lines(&self, file: &str) -> Vec<&str> {
        let text = &self.0[file];
        let end = text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len());
        text[..end].lines().collect()
    }

    /// Everything that a module shows.
    fn show_module(&self, module: &[String], found: &mut BTreeSet<Item>) {
        let file = self.file(module).unwrap_or_else(|| panic!("no file of {module:?}"));
        let lines = self.lines(&file);
        for (at, line) in lines.iter().enumerate() {
            let Some(rest) = line.strip_prefix("pub ") else { continue };
            if is_hidden(&lines, at) {
                continue;
            }
            if let Some(first) = rest.strip_prefix("use ") {
                for path in used_paths(&statement(&lines, at, first)) {
                    self.show_path(module, &path, found);
                }
            } else if let Some(("mod", name)) = declared(rest) {
                self.show_module(&[module, &[name.to_owned()]].concat(), found);
            } else if let Some((kind, name)) = declared(rest) {
                found.insert(item(&file, at, kind, name));
            }
        }
    }

    /// What a path in a `pub use` of `module` names.
    fn show_path(&self, module: &[String], path: &[String], found: &mut BTreeSet<Item>) {
        let (name, parents) = path.split_last().expect("a path");
        let mut owner = module.to_vec();
        for (index, part) in parents.iter().enumerate() {
            match part.as_str() {
                "crate" => owner.clear(),
                "self" => {}
                "super" => drop(owner.pop()),
                _ if index == 0 && !self.has_module(&owner, part) => {
                    panic!("`pub use` of {module:?} names {path:?}, which is of another crate")
                }
                _ => owner.push(part.clone()),
            }
        }
        if name == "*" {
            return self.show_module(&owner, found);
        }
        if self.has_module(&owner, name) {
            owner.push(name.clone());
            return self.show_module(&owner, found);
        }
        let file = self.file(&owner).unwrap_or_else(|| panic!("no file of {owner:?}"));
        let lines = self.lines(&file);
        for (at, line) in lines.iter().enumerate() {
            let Some(rest) = line.strip_prefix("pub ") else { continue };
            match declared(rest) {
                Some((kind, own)) if own == name => {
                    if !is_hidden(&lines, at) {
                        found.insert(item(&file, at, kind, name));
                    }
                    return;
                }
                _ => {}
            }
            if let Some(first) = rest.strip_prefix("use ") {
                let paths = used_paths(&statement(&lines, at, first));
                if let Some(path) = paths.iter().find(|path| path.last() == Some(name)) {
                    return self.show_path(&owner, path, found);
                }
            }
        }
        panic!("{name} is not found in {file}");
    }

    fn has_module(&self, module: &[String], name: &str) -> bool {
        self.file(&[module, &[name.to_owned()]].concat()).is_some()
    }

    /// The methods of a type or trait, wherever they are.
    fn methods(&self, of: &Item, found: &mut BTreeSet<Item>) {
        if of.kind == "trait" {
            return self.members(of, &of.file, of.at, "fn ", found);
        }
        for (file, _) in self.0.iter().filter(|(_, text)| text.contains(&of.name)) {
            let lines = self.lines(file);
            let is_other = |line: &&str| {
                let rest = line.strip_prefix("pub ").unwrap_or(line);
                declared(rest).is_some_and(|(kind, name)| name == of.name && kind != "mod")
            };
            if *file != of.file && lines.iter().any(is_other) {
                continue;
            }
            for (at, line) in lines.iter().enumerate() {
                if implements(line) == Some(&of.name) && !is_hidden(&lines, at) {
                    self.members(of, file, at, "pub ", found);
                }
            }
        }
    }

    /// The functions and constants of the block that starts at a line.
    fn members(&self, of: &Item, file: &str, at: usize, start: &str, found: &mut BTreeSet<Item>) {
        let lines = self.lines(file);
        let inside = lines.iter().enumerate().skip(at + 1).take_while(|(_, line)| **line != "}");
        for (at, line) in inside {
            let Some(line) = line.strip_prefix("    ") else { continue };
            if line.starts_with(start)
                && let Some((kind, name)) = declared(line.strip_prefix("pub ").unwrap_or(line))
                && !is_hidden(&lines, at)
            {
                found.insert(item(file, at, kind, &format!("{}::{name}", of.name)));
            }
        }
    }

    /// All public items.
    fn items(&self) -> BTreeSet<Item> {
        let mut found = BTreeSet::new();
        self.show_module(&[], &mut found);
        for of in found.clone() {
            self.methods(&of, &mut found);
        }
        found
    }

    /// What is wrong with the examples of an item, if anything is.
    fn check(&self, item: &Item) -> Option<String> {
        let examples = examples(&above(&self.lines(&item.file), item.at));
        let name = item.name.rsplit("::").next().unwrap_or(&item.name);
        let uses = |code: &String| code.split(|c| !is_name(c)).any(|part| part == name);
        let what = match examples.is_empty() {
            true => "has no example that runs",
            false if item.kind == "fn" && !examples.iter().any(uses) => {
                "has an example that does not call it"
            }
            false => return None,
        };
        Some(format!("src/{}:{}: {} {} {what}", item.file, item.at + 1, item.kind, item.name))
    }

    fn wrong(&self) -> Vec<String> {
        self.items().iter().filter_map(|item| self.check(item)).collect()
    }
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn item(file: &str, at: usize, kind: &str, name: &str) -> Item {
    Item { file: file.to_owned(), at, kind: kind.to_owned(), name: name.to_owned() }
}

/// Whether an item is left out of the documentation.
fn is_hidden(lines: &[&str], at: usize) -> bool {
    let attributes = above(lines, at);
    attributes.iter().any(|line| line.starts_with("#[") && line.contains("doc(hidden)"))
}

/// The type that an `impl` line gives methods of its own.
fn implements(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("impl")?;
    if line.contains(" for ") {
        return None;
    }
    let rest = match rest.strip_prefix('<') {
        Some(generics) => generics.split_once("> ")?.1,
        None => rest.strip_prefix(' ')?,
    };
    Some(word(rest))
}

/// A statement from its first line up to its `;`.
fn statement(lines: &[&str], at: usize, first: &str) -> String {
    let mut text = first.to_owned();
    for line in &lines[at + 1..] {
        if text.contains(';') {
            break;
        }
        text += line;
    }
    text.split(';').next().unwrap_or_default().to_owned()
}

fn read_dir(dir: &Path, prefix: &str, texts: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = format!("{prefix}{}", path.file_name().unwrap().to_string_lossy());
        if path.is_dir() {
            read_dir(&path, &format!("{name}/"), texts);
        } else if name.ends_with(".rs") && !name.ends_with("_tests.rs") {
            texts.insert(name, fs::read_to_string(&path).unwrap());
        }
    }
}

#[test]
fn every_public_item_has_an_example_that_runs() {
    let sources = Sources::read();
    let names: BTreeSet<String> = sources.items().into_iter().map(|item| item.name).collect();
    // One of each way to become public: here, through a module, through two, a method elsewhere.
    for known in ["Db::open", "Codec::validate", "TableInspection", "RepairReport::is_clean"] {
        assert!(names.contains(known), "{known} was not found among {names:?}");
    }
    let wrong = sources.wrong();
    assert!(
        wrong.is_empty(),
        "{} of {} public items lack an example:\n  {}\n",
        wrong.len(),
        names.len(),
        wrong.join("\n  ")
    );
}

/// A crate of two files, all of whose items have examples.
fn small() -> Sources {
    let lib = "\
pub mod seen;
/// Not shown.
#[doc(hidden)]
pub mod unseen;
pub use unseen::{
    Thing,
    run,
};
";
    let seen = "\
/// A trait.
/// ```
/// # use small::seen::Act;
/// assert!(().act());
/// ```
pub trait Act {
    /// Acts.
    /// ```rust
    /// assert!(().act());
    /// ```
    fn act(&self) -> bool;
}
";
    let unseen = "\
/// A thing.
///
/// ```
/// let thing = small::Thing::new();
/// ```
#[derive(Clone)]
pub struct Thing;

impl<'a> Other<'a> {
    pub fn of_another() {}
}

/// Not named by lib.rs.
pub struct Other<'a>(&'a ());

/// Runs.
/// ```
/// small::run();
/// ```
#[expect(
    clippy::nothing
)]
pub fn run() {}
";
    let methods = "\
impl Thing {
    /// New.
    /// ```
    /// small::Thing::new();
    /// ```
    pub const fn new() -> Thing {
        Thing
    }
    pub(crate) fn inside() {}
}
";
    let files = [
        ("lib.rs", lib),
        ("seen.rs", seen),
        ("unseen/mod.rs", unseen),
        ("unseen/methods.rs", methods),
    ];
    Sources(files.map(|(name, text)| (name.to_owned(), text.to_owned())).into())
}

#[test]
fn what_is_public_is_found_and_a_lost_example_is_noticed() {
    let sources = small();
    let names: Vec<String> = sources.items().into_iter().map(|item| item.name).collect();
    assert_eq!(names, ["Act", "Act::act", "Thing::new", "Thing", "run"]);
    assert_eq!(sources.wrong(), Vec::<String>::new());
    for item in sources.items() {
        let lines = sources.lines(&item.file);
        // The last line of code of its example, and the fence before it.
        let example = lines[..item.at].iter().rposition(|line| line.contains("()")).unwrap();
        let fence = lines[..example].iter().rposition(|line| line.contains("```")).unwrap();
        let mut changes = vec![
            (fence, "///"),
            (fence, "/// ```ignore"),
            (fence, "/// ```no_run"),
            (fence, "/// ```text"),
            (example, "/// # let hidden = ();"),
        ];
        if item.kind == "fn" {
            changes.push((example, "/// call_of_another();"));
        }
        for (at, new) in changes {
            let mut changed = lines.clone();
            changed[at] = new;
            let mut sources = small();
            sources.0.insert(item.file.clone(), changed.join("\n") + "\n");
            let wrong = sources.wrong();
            let named = format!(" {} has ", item.name);
            assert!(wrong.len() == 1 && wrong[0].contains(&named), "{new} in {named}: {wrong:?}");
        }
    }
}
