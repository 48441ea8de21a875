//! Programs as text: one operation a line, words and numbers, so that a failing one can be read,
//! cut down by hand and run again.

use crate::data::Value;
use crate::model::Change;
use crate::ops::{Move, Op};
use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

/// Writes a program down.
pub fn write(program: &[Op]) -> String {
    program.iter().map(|op| format!("{op}\n")).collect()
}

/// Reads a program. Empty lines and those that begin with `#` are skipped.
pub fn read(text: &str) -> Result<Vec<Op>, String> {
    let lines = text.lines().map(str::trim);
    lines.filter(|line| !line.is_empty() && !line.starts_with('#')).map(str::parse).collect()
}

struct List<'a, T>(&'a [T]);

impl<T: Display> Display for List<'_, T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|item| write!(f, " {item}"))
    }
}

struct Maybe<T>(Option<T>);

impl<T: Display> Display for Maybe<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(item) => item.fmt(f),
            None => f.write_str("-"),
        }
    }
}

impl Display for Value {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.number, self.bytes)
    }
}

impl Display for Change {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Change::Put(tree, key, value) => write!(f, "put {tree} {key} {value}"),
            Change::Delete(tree, key) => write!(f, "delete {tree} {key}"),
            Change::DeleteRange(tree, from, to) => write!(f, "range {tree} {from} {to}"),
        }
    }
}

impl Display for Move {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Move::First => f.write_str("first"),
            Move::Last => f.write_str("last"),
            Move::Seek(key) => write!(f, "seek {key}"),
            Move::SeekBack(key) => write!(f, "back {key}"),
            Move::Next(count) => write!(f, "next {count}"),
            Move::Prev(count) => write!(f, "prev {count}"),
        }
    }
}

impl Display for Op {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Op::Write(changes, false) => write!(f, "write{}", List(changes)),
            Op::Write(changes, true) => write!(f, "write_sync{}", List(changes)),
            Op::Transaction(changes, memory_bytes, sync) => {
                let name = if *sync { "transaction_sync" } else { "transaction" };
                write!(f, "{name} {memory_bytes}{}", List(changes))
            }
            Op::PutReader(tree, key, value) => write!(f, "put_reader {tree} {key} {value}"),
            Op::Ingest(tree, keys, value) => write!(f, "ingest {tree} {value}{}", List(keys)),
            Op::Get(tree, key, at) => write!(f, "get {tree} {key} {}", Maybe(*at)),
            Op::MultiGet(tree, keys) => write!(f, "multi_get {tree}{}", List(keys)),
            Op::Scan(tree, from, to, at, moves) => {
                let (from, to, at) = (Maybe(*from), Maybe(*to), Maybe(*at));
                write!(f, "scan {tree} {from} {to} {at}{}", List(moves))
            }
            Op::OpenScan(slot, tree, from, to) => {
                write!(f, "open_scan {slot} {tree} {} {}", Maybe(*from), Maybe(*to))
            }
            Op::MoveScan(slot, moves) => write!(f, "move_scan {slot}{}", List(moves)),
            Op::Prefix(tree, key) => write!(f, "prefix {tree} {key}"),
            Op::Check => f.write_str("check"),
            Op::Snapshot(slot) => write!(f, "snapshot {slot}"),
            Op::Release(slot) => write!(f, "release {slot}"),
            Op::Create(tree) => write!(f, "create {tree}"),
            Op::Drop(tree) => write!(f, "drop {tree}"),
            Op::Renew(tree) => write!(f, "renew {tree}"),
            Op::Flush(tree) => write!(f, "flush {}", Maybe(*tree)),
            Op::Compact(tree) => write!(f, "compact {}", Maybe(*tree)),
            Op::CompactRange(tree, from, to) => write!(f, "compact_range {tree} {from} {to}"),
            Op::Sync => f.write_str("sync"),
            Op::Step(count) => write!(f, "step {count}"),
            Op::Idle => f.write_str("idle"),
            Op::Reopen => f.write_str("reopen"),
            Op::Checkpoint => f.write_str("checkpoint"),
            Op::Verify => f.write_str("verify"),
        }
    }
}

/// The words of one line.
struct Words<'a> {
    line: &'a str,
    words: std::str::SplitWhitespace<'a>,
}

impl<'a> Words<'a> {
    fn wrong(&self) -> String {
        format!("not an operation: `{}`", self.line)
    }

    fn word(&mut self) -> Result<&'a str, String> {
        self.words.next().ok_or_else(|| self.wrong())
    }

    fn number<T: FromStr>(&mut self) -> Result<T, String> {
        self.word()?.parse().map_err(|_| self.wrong())
    }

    fn maybe<T: FromStr>(&mut self) -> Result<Option<T>, String> {
        match self.word()? {
            "-" => Ok(None),
            word => word.parse().map(Some).map_err(|_| self.wrong()),
        }
    }

    fn value(&mut self) -> Result<Value, String> {
        let (number, bytes) = self.word()?.split_once(':').ok_or_else(|| self.wrong())?;
        match (number.parse(), bytes.parse()) {
            (Ok(number), Ok(bytes)) => Ok(Value { number, bytes }),
            _ => Err(self.wrong()),
        }
    }

    fn at_end(&self) -> bool {
        self.words.clone().next().is_none()
    }

    fn list<T>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<T, String>,
    ) -> Result<Vec<T>, String> {
        let mut list = Vec::new();
        while !self.at_end() {
            list.push(item(self)?);
        }
        Ok(list)
    }

    fn change(&mut self) -> Result<Change, String> {
        match self.word()? {
            "put" => Ok(Change::Put(self.number()?, self.number()?, self.value()?)),
            "delete" => Ok(Change::Delete(self.number()?, self.number()?)),
            "range" => Ok(Change::DeleteRange(self.number()?, self.number()?, self.number()?)),
            _ => Err(self.wrong()),
        }
    }

    fn movement(&mut self) -> Result<Move, String> {
        match self.word()? {
            "first" => Ok(Move::First),
            "last" => Ok(Move::Last),
            "seek" => Ok(Move::Seek(self.number()?)),
            "back" => Ok(Move::SeekBack(self.number()?)),
            "next" => Ok(Move::Next(self.number()?)),
            "prev" => Ok(Move::Prev(self.number()?)),
            _ => Err(self.wrong()),
        }
    }

    fn op(&mut self) -> Result<Op, String> {
        Ok(match self.word()? {
            "write" => Op::Write(self.list(Words::change)?, false),
            "write_sync" => Op::Write(self.list(Words::change)?, true),
            name @ ("transaction" | "transaction_sync") => {
                let memory_bytes = self.number()?;
                let sync = name == "transaction_sync";
                Op::Transaction(self.list(Words::change)?, memory_bytes, sync)
            }
            "put_reader" => Op::PutReader(self.number()?, self.number()?, self.value()?),
            "ingest" => {
                let (tree, value) = (self.number()?, self.value()?);
                Op::Ingest(tree, self.list(Words::number)?, value)
            }
            "get" => Op::Get(self.number()?, self.number()?, self.maybe()?),
            "multi_get" => Op::MultiGet(self.number()?, self.list(Words::number)?),
            "scan" => {
                let (tree, from, to) = (self.number()?, self.maybe()?, self.maybe()?);
                Op::Scan(tree, from, to, self.maybe()?, self.list(Words::movement)?)
            }
            "open_scan" => {
                let (slot, tree) = (self.number()?, self.number()?);
                Op::OpenScan(slot, tree, self.maybe()?, self.maybe()?)
            }
            "move_scan" => Op::MoveScan(self.number()?, self.list(Words::movement)?),
            "prefix" => Op::Prefix(self.number()?, self.number()?),
            "check" => Op::Check,
            "snapshot" => Op::Snapshot(self.number()?),
            "release" => Op::Release(self.number()?),
            "create" => Op::Create(self.number()?),
            "drop" => Op::Drop(self.number()?),
            "renew" => Op::Renew(self.number()?),
            "flush" => Op::Flush(self.maybe()?),
            "compact" => Op::Compact(self.maybe()?),
            "compact_range" => Op::CompactRange(self.number()?, self.number()?, self.number()?),
            "sync" => Op::Sync,
            "step" => Op::Step(self.number()?),
            "idle" => Op::Idle,
            "reopen" => Op::Reopen,
            "checkpoint" => Op::Checkpoint,
            "verify" => Op::Verify,
            _ => return Err(self.wrong()),
        })
    }
}

impl FromStr for Op {
    type Err = String;

    fn from_str(line: &str) -> Result<Op, String> {
        let mut words = Words { line, words: line.split_whitespace() };
        let op = words.op()?;
        if words.at_end() { Ok(op) } else { Err(words.wrong()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::Generator;

    #[test]
    fn programs_read_as_they_are_written() {
        for seed in 0..50 {
            let program = Generator::new(seed).program(300);
            assert_eq!(read(&write(&program)).unwrap(), program);
        }
        let text = "# a story\n\nwrite put 0 1 2:3 range 0 1 2\nscan 0 - 5 - first next 3\n";
        assert_eq!(read(text).unwrap().len(), 2);
        assert!(read("write putt 0 1 2:3").is_err() && read("check 1").is_err());
    }
}
