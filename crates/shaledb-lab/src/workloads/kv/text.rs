//! Text as a package manager keeps it: of each package its fields, and a description in sentences.
//!
//! Words are made of syllables. How often one comes falls with its rank, as Zipf's law has it, and
//! some words like to follow others, so that phrases come again as they do in real text.

use crate::generate::Random;
use std::fmt::Write;

/// How many words there are.
const WORDS: usize = 6000;

/// How many packages there are to depend on.
const PACKAGES: u64 = 900;

/// The chance that a word is followed by one that likes to follow it.
const PHRASES: f64 = 0.55;

/// A line of a description ends after so many characters.
const LINE: usize = 70;

const BEGINS: [&str; 20] = [
    "b", "c", "d", "f", "g", "l", "m", "n", "p", "r", "s", "t", "v", "w", "st", "tr", "pr", "ch",
    "", "th",
];
const VOWELS: [&str; 8] = ["a", "e", "i", "o", "u", "e", "ea", "io"];
const ENDS: [&str; 10] = ["", "", "n", "r", "s", "t", "l", "ng", "nd", "ck"];
const SECTIONS: [&str; 8] =
    ["libs", "libdevel", "perl", "python", "utils", "admin", "net", "devel"];

/// Text of at least so many bytes, all of them ASCII.
pub(super) fn text(random: &mut Random, bytes: usize) -> Vec<u8> {
    let words: Vec<String> = (0..WORDS).map(|rank| word(random, rank)).collect();
    let names: Vec<String> = (0..PACKAGES).map(|_| name(random, &words)).collect();
    let mut text = String::with_capacity(bytes + 8192);
    while text.len() < bytes {
        stanza(random, &words, &names, &mut text);
    }
    text.into_bytes()
}

fn pick<'a>(random: &mut Random, of: &[&'a str]) -> &'a str {
    of[random.below(of.len() as u64) as usize]
}

/// A number below `count`, the chance of which falls with its rank.
fn ranked(random: &mut Random, count: usize) -> usize {
    ((count as f64).powf(random.unit()) as usize).clamp(1, count) - 1
}

/// The most frequent words are short.
fn word(random: &mut Random, rank: usize) -> String {
    let syllables = 1 + u64::from(rank > 60) + random.below(2 + u64::from(rank > 600));
    let mut word = String::new();
    for _ in 0..syllables {
        word.push_str(pick(random, &BEGINS));
        word.push_str(pick(random, &VOWELS));
    }
    word.push_str(pick(random, &ENDS));
    word
}

fn name(random: &mut Random, words: &[String]) -> String {
    let stem = &words[ranked(random, WORDS)];
    match random.below(4) {
        0 => format!("lib{stem}{}", random.below(10)),
        1 => format!("lib{stem}-{}-perl", words[ranked(random, WORDS)]),
        2 => format!("{stem}-{}", words[ranked(random, WORDS)]),
        _ => format!("lib{stem}-dev"),
    }
}

fn version(random: &mut Random) -> String {
    let (major, minor) = (random.below(9), random.below(30));
    format!("{major}.{minor}.{}-{}", random.below(20), 1 + random.below(5))
}

/// One package.
fn stanza(random: &mut Random, words: &[String], names: &[String], to: &mut String) {
    let package = &names[random.below(PACKAGES) as usize];
    // Writing to a text does not fail.
    let _ = write!(
        to,
        "Package: {package}\nStatus: install ok installed\nPriority: optional\nSection: {}\n\
         Installed-Size: {}\nMaintainer: {} maintainers <{}@packages.example.org>\n\
         Architecture: amd64\nMulti-Arch: same\nVersion: {}\nDepends: ",
        pick(random, &SECTIONS),
        20 + random.below(9000),
        words[ranked(random, WORDS)],
        words[ranked(random, WORDS)],
        version(random),
    );
    for at in 0..=random.below(6) {
        let other = &names[ranked(random, names.len())];
        let _ = write!(to, "{}{other} (>= {})", if at > 0 { ", " } else { "" }, version(random));
    }
    to.push_str("\nDescription: ");
    description(random, words, to);
    to.push_str("\n\n");
}

/// Sentences, in lines that are set in by a blank.
fn description(random: &mut Random, words: &[String], to: &mut String) {
    let (mut column, mut rank) = (0, ranked(random, WORDS));
    for at in 1..=20 + random.below(90) {
        let word = &words[rank];
        to.push_str(word);
        column += word.len() + 1;
        let ends = random.below(12);
        to.push_str(match ends {
            0 if at > 6 => ".",
            1 => ",",
            _ => "",
        });
        if column > LINE {
            to.push('\n');
            column = 0;
        }
        to.push(' ');
        rank = if random.unit() < PHRASES {
            // The first of those that follow is the most frequent.
            let follower = ranked(random, 6);
            (rank * 31 + follower * follower * 127 + 17) % WORDS
        } else {
            ranked(random, WORDS)
        };
    }
}
