//! What a repair found and did, for programs (serde) and for people (`Display`).

use crate::table::inspect::key_text;
use crate::table::salvage::LostPart;
use crate::version::TreeId;
use serde::Serialize;
use std::fmt;

/// How much was left of the manifest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CatalogStanding {
    /// All of it.
    #[default]
    Sound,
    /// Some of its edits.
    Partial,
    /// Nothing: trees have no names, and old files may have been taken in.
    Lost,
}

/// A tree of the repaired database.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RepairedTree {
    /// Its name: its own, or `recovered-` and its number.
    pub name: String,
    /// The number that it had.
    pub id: TreeId,
    /// Whether it kept its name and settings.
    pub named: bool,
    /// Rows salvaged.
    pub rows: u64,
    /// Bytes of their keys and values.
    pub bytes: u64,
    /// Rows whose values were in blob files.
    pub blobs: u64,
    /// Tables read.
    pub tables: u64,
    /// Operations taken from the log.
    pub log_ops: u64,
}

/// A part of a file that is lost.
#[derive(Clone, Debug, Serialize)]
pub struct LostRange {
    /// Its first byte in the file.
    pub offset: u64,
    /// Its length.
    pub bytes: u64,
    /// What is wrong with it.
    pub what: String,
    /// If rows are lost: no key lost is before this one, as text; `None`: any from the start.
    pub after: Option<String>,
    /// If rows are lost: no key lost is after this one, as text; `None`: any up to the end.
    pub through: Option<String>,
    /// How many entries are lost; `None` if that is not known.
    pub entries: Option<u64>,
}

impl From<&LostPart> for LostRange {
    fn from(part: &LostPart) -> LostRange {
        LostRange {
            offset: part.offset,
            bytes: part.bytes,
            what: part.what.clone(),
            after: part.after.as_deref().map(key_text),
            through: part.through.as_deref().map(key_text),
            entries: part.entries,
        }
    }
}

/// A file with damage.
#[derive(Clone, Debug, Serialize)]
pub struct FileDamage {
    /// Its name.
    pub name: String,
    /// The tree that it belongs to, if that is known.
    pub tree: Option<String>,
    /// What is wrong with it as a whole.
    pub what: String,
    /// What is lost of it.
    pub lost: Vec<LostRange>,
}

/// What a repair found and did.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RepairReport {
    /// How much was left of the manifest.
    pub catalog: CatalogStanding,
    /// The trees of the new database.
    pub trees: Vec<RepairedTree>,
    /// The files with damage, in the order in which they were read.
    pub files: Vec<FileDamage>,
}

impl RepairReport {
    /// Whether there was no damage, so that the new database has all that the old one had.
    pub fn is_clean(&self) -> bool {
        self.files.is_empty() && self.catalog == CatalogStanding::Sound
    }

    /// Rows salvaged, of all trees.
    pub fn rows(&self) -> u64 {
        self.trees.iter().map(|tree| tree.rows).sum()
    }

    /// Bytes of files that could not be read.
    pub fn lost_bytes(&self) -> u64 {
        self.files.iter().flat_map(|file| &file.lost).map(|lost| lost.bytes).sum()
    }

    /// Adds a file that is damaged as a whole.
    pub(super) fn note(&mut self, name: &str, tree: Option<&str>, what: impl Into<String>) {
        self.note_lost(name, tree, what, Vec::new());
    }

    pub(super) fn note_lost(
        &mut self,
        name: &str,
        tree: Option<&str>,
        what: impl Into<String>,
        lost: Vec<LostRange>,
    ) {
        let (name, tree) = (name.to_owned(), tree.map(str::to_owned));
        self.files.push(FileDamage { name, tree, what: what.into(), lost });
    }
}

impl fmt::Display for LostRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "bytes {} to {}: {}", self.offset, self.offset + self.bytes, self.what)?;
        match (self.entries, &self.after, &self.through) {
            (Some(0), ..) => return f.write_str("; no rows lost"),
            (Some(entries), ..) => write!(f, "; {entries} entries lost")?,
            (None, None, None) => return Ok(()),
            (None, ..) => f.write_str("; an unknown number of entries lost")?,
        }
        match (&self.after, &self.through) {
            (Some(after), Some(through)) => write!(f, ", keys from `{after}` to `{through}`"),
            (Some(after), None) => write!(f, ", keys from `{after}` on"),
            (None, Some(through)) => write!(f, ", keys up to `{through}`"),
            (None, None) => Ok(()),
        }
    }
}

impl fmt::Display for RepairReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.catalog {
            CatalogStanding::Sound => writeln!(f, "manifest: sound")?,
            CatalogStanding::Partial => writeln!(
                f,
                "manifest: damaged; what is left of it, and what the tables say, was used"
            )?,
            CatalogStanding::Lost => writeln!(
                f,
                "manifest: lost; trees were told from their tables, and files that were no longer \
                 needed may have been taken in"
            )?,
        }
        for file in &self.files {
            write!(f, "damaged: {}", file.name)?;
            if let Some(tree) = &file.tree {
                write!(f, " of tree `{tree}`")?;
            }
            writeln!(f, ": {}", file.what)?;
            for lost in &file.lost {
                writeln!(f, "  {lost}")?;
            }
        }
        for tree in &self.trees {
            writeln!(
                f,
                "tree `{}`: {} rows, {} bytes, from {} tables and {} operations of the log",
                tree.name, tree.rows, tree.bytes, tree.tables, tree.log_ops
            )?;
        }
        let damage = self.files.len();
        if self.is_clean() {
            writeln!(f, "no damage found")
        } else {
            writeln!(f, "{damage} damaged files, {} bytes lost", self.lost_bytes())
        }
    }
}
