//! The field's words: what has a name in the field is called by it, in code and in documents.
//!
//! Names are taken apart (`small_codec`, `SmallCodec`), so that a word is found inside one.

use super::source::{Source, read, root, sources, walk};
use super::{cpp, prose, report};

/// A word, or words in a row, that the field does not know, and what to say.
const WORDS: [(&str, &str); 12] = [
    ("settle", "say what happens: wait_idle, install, drain, decide"),
    ("settles", "say what happens: wait_idle, install, drain, decide"),
    ("settled", "say what happens: idle, installed, drained, decided"),
    ("stratum", "snapshot stripe"),
    ("strata", "snapshot stripes"),
    ("judge", "version filter"),
    ("carry over", "reuse a block"),
    ("carries over", "reuses a block"),
    ("carried over", "reused"),
    ("late decision", "in-doubt decision"),
    ("late decisions", "in-doubt decisions"),
    ("in force", "installed"),
];

/// Names, as a whole, that say less than they should.
const NAMES: [(&str, &str); 4] = [
    ("number_of", "consume_error"),
    ("go_on", "resume_scan"),
    ("in_row", "end_row_savepoint"),
    ("look_at_entry", "decode_entry"),
];

/// Where the old words are quoted.
const QUOTED: [&str; 2] = ["crates/shaledb/tests/tidy/words.rs", "CHANGELOG.md"];

/// The words of a line, in lower case; those of a name one by one.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut after_lower = false;
    for letter in line.chars() {
        if !letter.is_alphabetic() || letter.is_uppercase() && after_lower {
            words.push(String::new());
        }
        if letter.is_alphabetic() {
            words.last_mut().unwrap().extend(letter.to_lowercase());
        }
        after_lower = letter.is_lowercase();
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Whether `name` stands in the line and is no part of a longer one.
fn has_name(line: &str, name: &str) -> bool {
    line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|part| part == name)
}

fn old_words(file: &Source) -> Vec<String> {
    let mut found = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        let spaced = format!(" {} ", words(line).join(" "));
        let of_words = WORDS.iter().filter(|(old, _)| spaced.contains(&format!(" {old} ")));
        let of_names = NAMES.iter().filter(|(old, _)| has_name(line, old));
        for (old, new) in of_words.chain(of_names) {
            found.push(format!("{}:{} has `{old}`: {new}", file.path, index + 1));
        }
    }
    found
}

#[test]
fn words_are_the_fields() {
    let mut paths = Vec::new();
    walk(&root().join("python"), &[".py", ".pyi"], &mut paths);
    let python: Vec<Source> = paths.iter().map(|path| read(path)).collect();
    let files = [sources(), cpp::files(), prose::documents(), python].concat();
    let files = files.iter().filter(|file| !QUOTED.contains(&file.path.as_str()));
    report("words are the field's", files.flat_map(old_words).collect());
}

#[test]
fn an_old_word_is_found() {
    let text =
        "fn settle_all() {}\nlet x = WillSettle;\n// what is carried over\nunsettled\nin_force\n";
    let file = Source { path: "a.rs".into(), text: text.into(), is_test: false };
    let found = old_words(&file);
    let lines: Vec<&str> = found.iter().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(lines, ["a.rs:1", "a.rs:2", "a.rs:3", "a.rs:5"]);
}
