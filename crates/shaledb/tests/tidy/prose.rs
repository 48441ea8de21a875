//! The documents: lines of 100 columns, and links that lead somewhere.

use crate::source::{Source, read, root, sources, walk};
use crate::{LINE_COLUMNS, report};
use std::collections::BTreeSet;

/// Documents with longer lines, and why.
const LONG: [(&str, &str); 3] = [
    ("CHANGELOG.md", "what is written of a release stays as it is"),
    ("docs/compatibility.md", "is written by mariadb/tests/compatibility.py"),
    ("docs/semantics.md", "is written by mariadb/tests/semantics.py"),
];

/// Sources that documents name and that are not here: of others, or of a form.
const ELSEWHERE: [&str; 5] =
    [".cc", "lmdb.h", "lock0lock.cc", "peers/NAME/src/engine.rs", "wiredtiger.h"];

/// All documents of the repository.
pub fn documents() -> Vec<Source> {
    let mut paths = Vec::new();
    walk(&root(), &[".md"], &mut paths);
    paths.iter().map(|path| read(path)).collect()
}

/// The lines of a document that are not code, numbered from 1. Code is fenced, or set off by four
/// columns after an empty line.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let (mut in_fence, mut in_block, mut after_empty) = (false, false, true);
    text.lines().enumerate().filter_map(move |(index, line)| {
        let is_fence = line.trim_start().starts_with("```");
        in_fence ^= is_fence;
        in_block = line.starts_with("    ") && (in_block || after_empty);
        after_empty = line.is_empty();
        (!in_fence && !is_fence && !in_block).then_some((index + 1, line))
    })
}

/// The targets of the links of a line.
fn links(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target)
}

/// The name that a heading has in links, as forges make it.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

fn anchors(text: &str) -> BTreeSet<String> {
    let headings = prose(text).filter_map(|(_, line)| line.strip_prefix('#'));
    headings.map(|heading| anchor(heading.trim_start_matches('#'))).collect()
}

fn too_long(document: &Source) -> Vec<String> {
    let is_long = |line: &str| {
        let targets: usize = links(line).map(|target| target.chars().count()).sum();
        !line.starts_with('|') && line.chars().count() - targets > LINE_COLUMNS
    };
    let long = prose(&document.text).filter(|(_, line)| is_long(line));
    long.map(|(at, _)| format!("{}:{at} is longer than {LINE_COLUMNS} columns", document.path))
        .collect()
}

#[test]
fn lines_of_documents_are_short() {
    let documents = documents();
    assert!(documents.len() > 20, "{} documents", documents.len());
    let wrong = documents
        .iter()
        .filter(|document| LONG.iter().all(|(path, _)| *path != document.path))
        .flat_map(too_long);
    report("lines of documents are short, but for tables, code and links", wrong.collect());
    for (path, why) in LONG {
        assert!(documents.iter().any(|document| document.path == path), "{path}, which {why}");
    }
}

#[test]
fn links_of_documents_lead_somewhere() {
    let mut wrong = Vec::new();
    for document in &documents() {
        for (at, line) in prose(&document.text) {
            for target in links(line).filter(|target| !target.contains("://")) {
                let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
                let mut file = root().join(&document.path);
                if !path.is_empty() {
                    file = file.with_file_name(path);
                }
                let there = if anchor.is_empty() {
                    file.exists()
                } else {
                    file.is_file() && anchors(&read(&file).text).contains(anchor)
                };
                if !there {
                    wrong.push(format!("{}:{at} links to {target}", document.path));
                }
            }
        }
    }
    report("links of documents lead somewhere", wrong);
}

#[test]
fn documents_that_are_named_exist() {
    let mut wrong = Vec::new();
    let tidy = |source: &Source| source.path.contains("tests/tidy/");
    for source in documents().iter().chain(sources().iter().filter(|source| !tidy(source))) {
        for (index, line) in source.text.lines().enumerate() {
            let names = line.match_indices("docs/").filter_map(|(start, _)| {
                let is_part = |c: char| c.is_alphanumeric() || "/-_.".contains(c);
                let end = line[start..].find(|c| !is_part(c)).unwrap_or(line.len() - start);
                let name = &line[start..start + end];
                name.rfind(".md").map(|end| &name[..end + 3])
            });
            for name in names.filter(|name| !root().join(name).exists()) {
                wrong.push(format!("{}:{} names {name}", source.path, index + 1));
            }
        }
    }
    report("documents that are named exist", wrong);
}

/// Such as `read/get.rs`: the last parts of a path.
#[test]
fn sources_that_are_named_exist() {
    let ends = [".rs", ".cc", ".h", ".py"];
    let mut paths = Vec::new();
    walk(&root(), &ends, &mut paths);
    let mut wrong = Vec::new();
    for document in documents().iter().filter(|document| document.path != "CHANGELOG.md") {
        for (at, line) in prose(&document.text) {
            let named = line.split('`').skip(1).step_by(2).filter(|name| {
                ends.iter().any(|end| name.ends_with(end))
                    && !name.contains([' ', '*', '<'])
                    && !ELSEWHERE.contains(name)
            });
            for name in named.filter(|name| !paths.iter().any(|path| path.ends_with(name))) {
                wrong.push(format!("{}:{at} names {name}", document.path));
            }
        }
    }
    report("sources that are named exist", wrong);
}

#[test]
fn what_is_wrong_in_a_document_is_found() {
    let long = "word ".repeat(20);
    let text = format!(
        "# A `name`: it's\n{long}\n{long}x\n| {long}x |\n- [a]({long})\n\n    {long}x\n\n```\n{long}x\n```\n{long}y\n"
    );
    let document = Source { path: "a.md".to_owned(), text, is_test: false };
    let expected = ["a.md:3", "a.md:12"].map(|at| format!("{at} is longer than 100 columns"));
    assert_eq!(too_long(&document), expected);
    assert_eq!(links("[a](b.md#c), [d](e)").collect::<Vec<&str>>(), ["b.md#c", "e"]);
    assert!(anchors(&document.text).contains("a-name-its"));
}
