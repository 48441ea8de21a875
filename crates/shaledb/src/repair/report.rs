//! What a repair found and did, for programs (serde) and for people (`Display`).

use crate::table::inspect::key_text;
use crate::table::salvage::LostPart;
use crate::version::TreeId;
use serde::Serialize;
use std::fmt;

/// How much was left of the manifest.
///
/// ```
/// # let env = shaledb::Env::memory();
/// # let options = shaledb::OpenOptions { env: env.clone(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// # db.tree_or_create("t")?.put(b"a", b"1")?;
/// # db.close()?;
/// # let (from, to) = ("/db".as_ref(), "/saved".as_ref());
/// # let options = shaledb::repair::RepairOptions { env, ..Default::default() };
/// use shaledb::repair::{CatalogStanding, repair};
///
/// let report = repair(from, to, &options, &mut |_| ())?;
/// assert_eq!(report.catalog, CatalogStanding::Sound);
/// # Ok::<(), shaledb::Error>(())
/// ```
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
///
/// ```
/// # let env = shaledb::Env::memory();
/// # let options = shaledb::OpenOptions { env: env.clone(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// # db.tree_or_create("t")?.put(b"a", b"1")?;
/// # db.close()?;
/// # let (from, to) = ("/db".as_ref(), "/saved".as_ref());
/// # let options = shaledb::repair::RepairOptions { env, ..Default::default() };
/// let report = shaledb::repair::repair(from, to, &options, &mut |_| ())?;
/// let tree = &report.trees[0];
/// assert_eq!((tree.name.as_str(), tree.named, tree.rows, tree.log_ops), ("t", true, 1, 1));
/// # Ok::<(), shaledb::Error>(())
/// ```
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
///
/// ```
/// # let env = shaledb::Env::memory();
/// # let options = shaledb::OpenOptions { env: env.clone(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// # let tree = db.tree_or_create("t")?;
/// # tree.put(b"a", b"1")?;
/// # db.flush()?;
/// # let files = shaledb::inspect::directory_in(&env, "/db".as_ref())?.files;
/// # db.close()?;
/// # let name = &files.iter().find(|file| file.level.is_some()).unwrap().name;
/// # let path = std::path::Path::new("/db").join(name);
/// # let mut bytes = shaledb::fs::read_all(&*env.fs, &path)?;
/// # bytes[10] ^= 1; // in its only block
/// # env.fs.create(&path)?.append(&bytes)?;
/// # let (from, to) = ("/db".as_ref(), "/saved".as_ref());
/// # let options = shaledb::repair::RepairOptions { env, ..Default::default() };
/// let report = shaledb::repair::repair(from, to, &options, &mut |_| ())?;
/// let lost = &report.files[0].lost[0];
/// assert_eq!((lost.offset, lost.entries), (0, Some(1)));
/// println!("{lost}");
/// # Ok::<(), shaledb::Error>(())
/// ```
#[derive(Clone, Debug, Serialize)]
pub struct LostRange {
    /// Its first byte in the file.
    pub offset: u64,
    /// Its length in bytes.
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
///
/// ```
/// # let env = shaledb::Env::memory();
/// # let options = shaledb::OpenOptions { env: env.clone(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// # let tree = db.tree_or_create("t")?;
/// # tree.put(b"a", b"1")?;
/// # db.flush()?;
/// # let files = shaledb::inspect::directory_in(&env, "/db".as_ref())?.files;
/// # db.close()?;
/// # let name = &files.iter().find(|file| file.level.is_some()).unwrap().name;
/// # let path = std::path::Path::new("/db").join(name);
/// # let mut bytes = shaledb::fs::read_all(&*env.fs, &path)?;
/// # bytes[10] ^= 1; // in its only block
/// # env.fs.create(&path)?.append(&bytes)?;
/// # let (from, to) = ("/db".as_ref(), "/saved".as_ref());
/// # let options = shaledb::repair::RepairOptions { env, ..Default::default() };
/// let report = shaledb::repair::repair(from, to, &options, &mut |_| ())?;
/// let damaged = &report.files[0];
/// assert_eq!(damaged.tree.as_deref(), Some("t"));
/// println!("{}: {}", damaged.name, damaged.what);
/// # Ok::<(), shaledb::Error>(())
/// ```
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

/// What a repair found and did. It prints as text (`Display`) and as JSON (serde).
///
/// ```
/// # let env = shaledb::Env::memory();
/// # let options = shaledb::OpenOptions { env: env.clone(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// # db.tree_or_create("t")?.put(b"a", b"1")?;
/// # db.close()?;
/// # let (from, to) = ("/db".as_ref(), "/saved".as_ref());
/// # let options = shaledb::repair::RepairOptions { env, ..Default::default() };
/// use shaledb::repair::{RepairReport, repair};
///
/// let report: RepairReport = repair(from, to, &options, &mut |_| ())?;
/// println!("{report}");
/// assert_eq!((report.trees.len(), report.files.len()), (1, 0));
/// # Ok::<(), shaledb::Error>(())
/// ```
#[derive(Clone, Debug, Default, Serialize)]
pub struct RepairReport {
    /// How much was left of the manifest.
    pub catalog: CatalogStanding,
    /// The trees of the new database.
    pub trees: Vec<RepairedTree>,
    /// The files with damage, in the order in which they were read.
    pub files: Vec<FileDamage>,
    /// The names of trees that are left out because their build had not ended: an open would drop
    /// them too, so that is no damage.
    pub unfinished: Vec<String>,
}

impl RepairReport {
    /// Whether there was no damage, so that the new database has all that the old one had.
    ///
    /// ```
    /// # let env = shaledb::Env::memory();
    /// # let options = shaledb::OpenOptions { env: env.clone(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # db.tree_or_create("t")?.put(b"a", b"1")?;
    /// # db.close()?;
    /// # let (from, to) = ("/db".as_ref(), "/saved".as_ref());
    /// # let options = shaledb::repair::RepairOptions { env, ..Default::default() };
    /// let report = shaledb::repair::repair(from, to, &options, &mut |_| ())?;
    /// assert!(report.is_clean());
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn is_clean(&self) -> bool {
        self.files.is_empty() && self.catalog == CatalogStanding::Sound
    }

    /// Rows salvaged, of all trees.
    ///
    /// ```
    /// # let env = shaledb::Env::memory();
    /// # let options = shaledb::OpenOptions { env: env.clone(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # db.tree_or_create("t")?.put(b"a", b"1")?;
    /// # db.close()?;
    /// # let (from, to) = ("/db".as_ref(), "/saved".as_ref());
    /// # let options = shaledb::repair::RepairOptions { env, ..Default::default() };
    /// let report = shaledb::repair::repair(from, to, &options, &mut |_| ())?;
    /// assert_eq!(report.rows(), 1);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn rows(&self) -> u64 {
        self.trees.iter().map(|tree| tree.rows).sum()
    }

    /// Bytes of files that could not be read or made no sense.
    ///
    /// ```
    /// # let env = shaledb::Env::memory();
    /// # let options = shaledb::OpenOptions { env: env.clone(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// # tree.put(b"a", b"1")?;
    /// # db.flush()?;
    /// # let files = shaledb::inspect::directory_in(&env, "/db".as_ref())?.files;
    /// # db.close()?;
    /// # let name = &files.iter().find(|file| file.level.is_some()).unwrap().name;
    /// # let path = std::path::Path::new("/db").join(name);
    /// # let mut bytes = shaledb::fs::read_all(&*env.fs, &path)?;
    /// # bytes[10] ^= 1; // in its only block
    /// # env.fs.create(&path)?.append(&bytes)?;
    /// # let (from, to) = ("/db".as_ref(), "/saved".as_ref());
    /// # let options = shaledb::repair::RepairOptions { env, ..Default::default() };
    /// let report = shaledb::repair::repair(from, to, &options, &mut |_| ())?;
    /// assert!(report.lost_bytes() > 0);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
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
                "manifest: lost; trees were found by their tables, and files that were no longer \
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
        for tree in &self.unfinished {
            writeln!(f, "tree `{tree}`: left out, its build had not ended; build it again")?;
        }
        let damage = self.files.len();
        if self.is_clean() {
            writeln!(f, "no damage found")
        } else {
            writeln!(f, "{damage} damaged files, {} bytes lost", self.lost_bytes())
        }
    }
}
