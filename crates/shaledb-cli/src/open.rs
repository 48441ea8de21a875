//! Opening databases as the flags say.

use crate::allocator;
use crate::args::{ReadFlags, TreeFlags, WriteFlags};
use crate::exit::{Failure, Outcome};
use crate::reader;
use shaledb::{Codecs, Config, Db, Error, Tree, TreeConfig};
use shaledb_lab::say;
use std::path::Path;

/// Opens for reading: nothing on disk changes. Beside a writer it is read as of now.
pub(crate) fn reading(flags: &ReadFlags) -> Outcome<Db> {
    let (db, is_beside) = reader::open(&flags.db, base(flags))?;
    if is_beside {
        say::note(&format!(
            "note: another process has {} open. It is read as of now, including writes that are \
             not durable yet",
            flags.db.display()
        ));
    }
    suited(db)
}

/// Opens for writing a database that exists.
pub(crate) fn existing(flags: &WriteFlags) -> Outcome<Db> {
    let config = Config { create: false, ..limited(flags) };
    suited(Db::open(&flags.open.db, config)?)
}

/// Has the allocator suit the memory that the database has.
fn suited(db: Db) -> Outcome<Db> {
    allocator::suit(db.stats().memory_bytes);
    Ok(db)
}

/// Opens for writing and makes the database if there is none.
pub(crate) fn writing(flags: &WriteFlags, tree: &TreeFlags) -> Outcome<Db> {
    let config = Config { tree: tree_config(tree)?, ..limited(flags) };
    refuse_foreign(&flags.open.db)?;
    suited(Db::open(&flags.open.db, config)?)
}

/// A folder of somebody else's files is no place for a new database: one that is meant is new,
/// empty, or what a crash left of the making of one.
fn refuse_foreign(path: &Path) -> Outcome<()> {
    // What the system refuses here it refuses the engine too, which says so.
    let Ok(entries) = std::fs::read_dir(path) else { return Ok(()) };
    let mut foreign = None;
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name == "CURRENT" {
            return Ok(());
        }
        // The root of a file system has this folder from its beginning.
        if name != "lost+found" && !is_ours(&name) {
            foreign = Some(name);
        }
    }
    let Some(name) = foreign else { return Ok(()) };
    Err(Failure::usage(format!(
        "{0} is not a database, and has other files in it, such as {name}. Name a new or an \
         empty folder, such as {0}/shale.db",
        path.display()
    )))
}

/// Whether a database has files of this name; its CURRENT is first written under another one.
fn is_ours(name: &str) -> bool {
    let whole = name.strip_suffix(".tmp").unwrap_or(name);
    shaledb::table::format::parse_file_name(whole).is_some()
}

fn base(flags: &ReadFlags) -> Config {
    Config { memory_bytes: flags.memory.unwrap_or(0), ..Config::default() }
}

fn limited(flags: &WriteFlags) -> Config {
    Config { space_limit: flags.space_limit.unwrap_or(0), ..base(&flags.open) }
}

/// The settings of a tree that is made.
fn tree_config(flags: &TreeFlags) -> Outcome<TreeConfig> {
    let mut config = TreeConfig { dictionary: !flags.no_dictionary, ..TreeConfig::default() };
    if let Some(names) = &flags.codecs {
        config.codecs = codecs(names)?;
    }
    if let Some(bytes) = flags.block_bytes {
        config.block_bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
    }
    if let Some(bits) = flags.filter_bits {
        config.filter_bits = bits;
    }
    config.validate()?;
    Ok(config)
}

/// One codec for all levels, or three.
fn codecs(names: &shaledb_lab::options::CodecNames) -> Outcome<Codecs> {
    Ok(Codecs {
        upper: names.upper.parse()?,
        middle: names.middle.parse()?,
        bottommost: names.bottommost.parse()?,
    })
}

/// The tree of that name, made with the flags' settings if it is missing.
pub(crate) fn tree_or_create(db: &Db, name: &str, flags: &TreeFlags) -> Outcome<Tree> {
    match db.tree(name) {
        Err(Error::NoSuchTree(_)) => Ok(db.create_tree(name, tree_config(flags)?)?),
        other => Ok(other?),
    }
}
