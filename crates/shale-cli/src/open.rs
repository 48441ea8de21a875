//! Opening databases as the flags say.

use crate::args::{ReadFlags, TreeFlags};
use crate::exit::Outcome;
use shale::{Codecs, Config, Db, Error, Tree, TreeConfig};

/// Opens for reading: nothing on disk changes. Beside a writer it is read as of now.
pub(crate) fn reading(flags: &ReadFlags) -> Outcome<Db> {
    let config = Config { create: false, ..base(flags) };
    match Db::open_read_only(&flags.db, config.clone()) {
        Err(Error::Locked { .. }) => {
            let db = Db::open_follower(&flags.db, config)?;
            eprintln!(
                "note: another process has {} open; it is read as of now, also what is not durable \
                 yet",
                flags.db.display()
            );
            Ok(db)
        }
        other => Ok(other?),
    }
}

/// Opens for writing a database that exists.
pub(crate) fn existing(flags: &ReadFlags) -> Outcome<Db> {
    let config = Config { create: false, ..base(flags) };
    Ok(Db::open(&flags.db, config)?)
}

/// Opens for writing and makes the database if there is none.
pub(crate) fn writing(flags: &ReadFlags, tree: &TreeFlags) -> Outcome<Db> {
    let config = Config { tree: tree_config(tree)?, ..base(flags) };
    Ok(Db::open(&flags.db, config)?)
}

fn base(flags: &ReadFlags) -> Config {
    Config { memory_bytes: flags.memory.unwrap_or(0), ..Config::default() }
}

/// The settings of a tree that is made.
pub(crate) fn tree_config(flags: &TreeFlags) -> Outcome<TreeConfig> {
    let mut config = TreeConfig::default();
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
pub(crate) fn codecs(names: &shale_lab::options::CodecNames) -> Outcome<Codecs> {
    Ok(Codecs {
        small: names.small.parse()?,
        middle: names.middle.parse()?,
        last: names.last.parse()?,
    })
}

/// The tree of that name, made with the flags' settings if it is missing.
pub(crate) fn tree_or_create(db: &Db, name: &str, flags: &TreeFlags) -> Outcome<Tree> {
    match db.tree(name) {
        Err(Error::NoSuchTree(_)) => Ok(db.create_tree(name, tree_config(flags)?)?),
        other => Ok(other?),
    }
}
