//! The Rust files of the workspace, read once, and the modules that they declare.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// A source file, read once.
#[derive(Clone)]
pub struct Source {
    /// Its path from the root of the workspace.
    pub path: String,
    pub text: String,
    /// Whether it is compiled for tests only.
    pub is_test: bool,
}

impl Source {
    /// The lines of code: without comments, and without the tests at the end of the file.
    pub fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        self.lines().map(|(at, line)| (at, strip_comment(line)))
    }

    /// The lines, numbered from 1, without the tests at the end of the file.
    pub fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        let tests = self.text.find(")]\nmod tests {");
        let end = tests.and_then(|at| self.text[..at].rfind("#[cfg(")).unwrap_or(self.text.len());
        self.text[..end].lines().enumerate().map(|(index, line)| (index + 1, line))
    }

    /// The path inside `crates/shaledb/src`, if it is there.
    pub fn engine_path(&self) -> Option<&str> {
        self.path_in("shaledb")
    }

    /// The path inside the sources of a crate, if it is there.
    pub fn path_in(&self, name: &str) -> Option<&str> {
        self.path.strip_prefix("crates/")?.strip_prefix(name)?.strip_prefix("/src/")
    }
}

/// The part of a line before a `//` that is not inside a string.
pub fn strip_comment(line: &str) -> &str {
    let (mut in_string, mut escaped) = (false, false);
    let bytes = line.as_bytes();
    for (at, &byte) in bytes.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' if at > 0 && bytes[at - 1] == b'\'' => {}
            b'"' => in_string = !in_string,
            b'/' if !in_string && bytes.get(at + 1) == Some(&b'/') => return &line[..at],
            _ => {}
        }
    }
    line
}

/// Whether `line` has `word`, not as the tail of a longer name.
pub fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word)
        .any(|(index, _)| !line[..index].ends_with(|c: char| c.is_alphanumeric() || c == '_'))
}

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All files below a folder whose names end so.
pub fn walk(dir: &Path, ends: &[&str], found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            if name != "target" && !name.starts_with('.') {
                walk(&path, ends, found);
            }
        } else if ends.iter().any(|end| name.ends_with(end)) {
            found.push(path);
        }
    }
}

/// A file of the workspace.
pub fn read(path: &Path) -> Source {
    Source {
        path: path.strip_prefix(root()).unwrap().to_string_lossy().replace('\\', "/"),
        text: fs::read_to_string(path)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display())),
        is_test: false,
    }
}

/// All Rust files of the workspace's crates.
pub fn sources() -> Vec<Source> {
    let root = root();
    let mut paths = Vec::new();
    walk(&root.join("crates"), &[".rs"], &mut paths);
    walk(&root.join("xtask"), &[".rs"], &mut paths);
    walk(&root.join("peers"), &[".rs"], &mut paths);
    walk(&root.join("python"), &[".rs"], &mut paths);
    let mut sources: Vec<Source> = paths.iter().map(|path| read(path)).collect();
    let mut tests: BTreeSet<String> = BTreeSet::new();
    for source in &sources {
        tests.extend(modules(source).into_iter().filter(|m| m.is_test).flat_map(|m| m.files));
    }
    let of_engine = sources.iter().filter(|source| source.engine_path().is_some()).count();
    assert!(of_engine > 100, "{of_engine} files of the engine found");
    for source in &mut sources {
        let path = &source.path;
        source.is_test = tests.contains(path)
            || ["/tests/", "/benches/", "/examples/"].iter().any(|dir| path.contains(dir));
    }
    sources
}

/// A `mod name;` of a file.
pub struct Module {
    pub name: String,
    pub is_test: bool,
    /// Where its file may be.
    pub files: Vec<String>,
}

/// The modules that a file declares.
pub fn modules(source: &Source) -> Vec<Module> {
    let (dir, file) = source.path.rsplit_once('/').unwrap_or(("", &source.path));
    let stem = file.strip_suffix(".rs").unwrap_or(file);
    let own = if matches!(stem, "lib" | "main" | "mod") || dir.ends_with("/tests") {
        dir.to_owned()
    } else {
        format!("{dir}/{stem}")
    };
    let mut found = Vec::new();
    let (mut is_test, mut path) = (false, None);
    for line in source.text.lines().map(str::trim) {
        if let Some(attribute) = line.strip_prefix("#[") {
            is_test |= attribute.starts_with("cfg(") && attribute.contains("test");
            if let Some(rest) = attribute.strip_prefix("path = \"") {
                path = rest.split('"').next();
            }
            continue;
        }
        let words = line.strip_suffix(';').map(|line| line.split(' ').collect::<Vec<&str>>());
        if let Some([.., "mod", name]) = words.as_deref() {
            let files = match path {
                Some(path) => vec![format!("{dir}/{path}")],
                None => vec![format!("{own}/{name}.rs"), format!("{own}/{name}/mod.rs")],
            };
            found.push(Module { name: (*name).to_owned(), is_test, files });
        }
        (is_test, path) = (false, None);
    }
    found
}

/// The word at the start of `text`.
pub fn first_word(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    &text[..end]
}
