//! Where the drivers are: this program itself for Shale, a program of its own for each peer.

use crate::problem::{Kind, Problem};
use crate::stores::engine::Result;
use std::path::PathBuf;
use std::process::Command;

/// The engines that there are, each with the program that has it; `null` does nothing.
pub const ENGINES: [(&str, &str); 12] = [
    ("shale", ""),
    ("null", ""),
    ("rocksdb", "rocksdb"),
    ("fjall", "fjall"),
    ("lmdb", "lmdb"),
    ("wiredtiger", "wiredtiger"),
    ("sqlite", "sqlite"),
    ("innodb", "mariadb"),
    ("innodb-compressed", "mariadb"),
    ("innodb-punch", "mariadb"),
    ("myrocks", "mariadb"),
    ("shale-sql", "mariadb"),
];

/// Whether an engine is a database server: one that SQL is sent to.
pub fn is_server(engine: &str) -> bool {
    let peer = ENGINES.iter().find(|(name, _)| *name == engine).map(|(_, peer)| *peer);
    peer == Some("mariadb")
}

/// The command that runs a driver of an engine.
///
/// # Errors
///
/// There is no such engine, or its program is not there: the error says how to get it.
pub fn driver(engine: &str) -> Result<Command> {
    let Some((_, peer)) = ENGINES.iter().find(|(name, _)| *name == engine) else {
        let names: Vec<&str> = ENGINES.iter().map(|(name, _)| *name).collect();
        let text = format!("there is no engine `{engine}`; the engines are {}", names.join(", "));
        return Err(Problem::new(Kind::Usage, text).into());
    };
    if peer.is_empty() {
        let mut command = Command::new(
            std::env::current_exe()
                .map_err(|error| format!("could not find the path of this program: {error}"))?,
        );
        command.args(["bench", "job", "--engine", engine]);
        return Ok(command);
    }
    let program = peers_folder()?.join(format!("shale-peer-{peer}"));
    if !program.exists() {
        return Err(format!(
            "there is no driver for {engine} at {}. Build it once with `cargo xtask peers \
             {peer}`, or set SHALE_PEERS to the folder that has it",
            program.display()
        )
        .into());
    }
    Ok(Command::new(program))
}

/// `$SHALE_PEERS`, else where `cargo xtask peers` puts them.
///
/// # Errors
///
/// Neither SHALE_PEERS nor HOME is set.
pub fn peers_folder() -> Result<PathBuf> {
    if let Some(folder) = std::env::var_os("SHALE_PEERS") {
        return Ok(PathBuf::from(folder));
    }
    let home = std::env::var_os("HOME").ok_or(
        "neither SHALE_PEERS nor HOME is set. Set SHALE_PEERS to the folder of the drivers",
    )?;
    Ok(PathBuf::from(home).join(".cache/shale/peers/release"))
}
