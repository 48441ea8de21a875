//! Real records of this machine: packages, the files in them, documentation; or what the user
//! names.

use crate::exit::{Exit, Failure, Outcome};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Files larger than this are passed over: a record is a page, not an archive.
const FILE_BYTES_MAX: u64 = 512 << 10;

/// Less than this is no demonstration.
const TOTAL_BYTES_MIN: u64 = 1 << 20;

/// Where some of the records come from.
#[derive(Debug, Serialize)]
pub(super) struct Part {
    pub(super) what: String,
    pub(super) records: u64,
    pub(super) bytes: u64,
}

/// The records, in order of their keys.
pub(super) struct Source {
    pub(super) parts: Vec<Part>,
    pub(super) records: Vec<(Vec<u8>, Vec<u8>)>,
    pub(super) bytes: u64,
}

struct Collector {
    records: BTreeMap<Vec<u8>, Vec<u8>>,
    parts: Vec<Part>,
    bytes: u64,
    limit: u64,
}

/// Reads up to `limit` bytes of records.
pub(super) fn collect(named: Option<&Path>, limit: u64) -> Outcome<Source> {
    let mut collector = Collector { records: BTreeMap::new(), parts: Vec::new(), bytes: 0, limit };
    match named {
        Some(path) => collector.named(path)?,
        None => collector.machine(),
    }
    if named.is_none() && collector.bytes < TOTAL_BYTES_MIN {
        return Err(Failure::new(
            Exit::BadInput,
            "this machine has no package or documentation files to load. Name a file or a folder: \
             `shale demo FILE`",
        ));
    }
    if collector.records.is_empty() {
        let what = "there is nothing to load. Name a file with text, or a folder of text files";
        return Err(Failure::new(Exit::BadInput, what));
    }
    let records = collector.records.into_iter().collect();
    Ok(Source { parts: collector.parts, records, bytes: collector.bytes })
}

impl Collector {
    fn is_full(&self) -> bool {
        self.bytes >= self.limit
    }

    /// Adds a record, unless its key is there already or there is enough.
    fn add(&mut self, key: Vec<u8>, value: Vec<u8>) {
        if self.is_full() || key.len() > shaledb::base::key::KEY_BYTES_MAX {
            return;
        }
        let bytes = (key.len() + value.len()) as u64;
        if let std::collections::btree_map::Entry::Vacant(entry) = self.records.entry(key) {
            entry.insert(value);
            self.bytes += bytes;
        }
    }

    /// Runs one way of finding records and notes what it gave.
    fn part(&mut self, what: String, find: impl FnOnce(&mut Collector)) {
        let (records, bytes) = (self.records.len() as u64, self.bytes);
        find(self);
        let records = self.records.len() as u64 - records;
        if records > 0 {
            self.parts.push(Part { what, records, bytes: self.bytes - bytes });
        }
    }

    fn machine(&mut self) {
        self.part("installed packages (/var/lib/dpkg/status)".into(), |to| {
            if let Ok(text) = fs::read("/var/lib/dpkg/status") {
                to.packages("installed", &text);
            }
        });
        self.part("files of packages (/var/lib/dpkg/info)".into(), Collector::package_files);
        self.part("documentation (/usr/share/doc)".into(), |to| {
            to.folder("doc", Path::new("/usr/share/doc"));
        });
        self.part("packages to be had (apt-cache dumpavail, /var/lib/apt/lists)".into(), |to| {
            if let Some(text) = apt_packages() {
                to.packages("available", &text);
            }
        });
        // Elsewhere than on Debian, and on images without documentation.
        if self.bytes < 16 * TOTAL_BYTES_MIN {
            for folder in ["/usr/share", "/usr/include", "/usr/lib/python3"] {
                self.part(format!("text files of {folder}"), |to| {
                    to.folder("text", Path::new(folder));
                });
            }
        }
    }

    /// Paragraphs of a package list, by the name of the package.
    fn packages(&mut self, prefix: &str, text: &[u8]) {
        let mut start = 0;
        while start < text.len() && !self.is_full() {
            let rest = &text[start..];
            let end = rest.windows(2).position(|pair| pair == b"\n\n").unwrap_or(rest.len());
            let paragraph = &rest[..end];
            let name = paragraph
                .split(|&byte| byte == b'\n')
                .find_map(|line| line.strip_prefix(b"Package: "));
            if let Some(name) = name {
                let key = [prefix.as_bytes(), b"/", name].concat();
                self.add(key, paragraph.to_vec());
            }
            start += end + 2;
        }
    }

    /// Every file of every package: its path, the package and the checksum.
    fn package_files(&mut self) {
        for path in sorted_files(Path::new("/var/lib/dpkg/info")) {
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
            if let Some(package) = name.strip_suffix(".md5sums") {
                let Ok(text) = fs::read(&path) else { continue };
                for line in text.split(|&byte| byte == b'\n') {
                    // 32 digits, two spaces, the path without its first slash.
                    if let (Some(sum), Some(file)) = (line.get(..32), line.get(34..)) {
                        let key = [b"file//", file].concat();
                        self.add(key, [package.as_bytes(), b" ", sum].concat());
                    }
                }
            }
        }
    }

    /// The text files under a folder, each a record.
    fn folder(&mut self, prefix: &str, folder: &Path) {
        let mut folders = vec![folder.to_owned()];
        while let Some(folder) = folders.pop() {
            let Ok(entries) = fs::read_dir(&folder) else { continue };
            let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
            paths.sort();
            for path in paths {
                if self.is_full() {
                    return;
                }
                // Links are not followed: what they name is found where it is.
                let Ok(meta) = path.symlink_metadata() else { continue };
                if meta.is_dir() {
                    folders.push(path);
                } else if meta.is_file() && (1..=FILE_BYTES_MAX).contains(&meta.len()) {
                    self.text_file(prefix, &path);
                }
            }
        }
    }

    fn text_file(&mut self, prefix: &str, path: &Path) {
        if let Ok(text) = fs::read(path)
            && !text[..text.len().min(4096)].contains(&0)
            && !text.starts_with(b"\x1f\x8b")
        {
            let key = [prefix.as_bytes(), path.as_os_str().as_encoded_bytes()].concat();
            self.add(key, text);
        }
    }

    /// A file, line by line, or a folder, file by file.
    fn named(&mut self, path: &Path) -> Outcome<()> {
        let meta = fs::metadata(path).map_err(|error| Failure::file("read", path, &error))?;
        if meta.is_dir() {
            self.part(format!("files of {}", path.display()), |to| to.folder("file", path));
            return Ok(());
        }
        let file = fs::File::open(path).map_err(|error| Failure::file("open", path, &error))?;
        let mut reader = std::io::BufReader::with_capacity(1 << 18, file);
        let mut failure = None;
        self.part(format!("lines of {}", path.display()), |to| {
            let mut number = 0u64;
            while !to.is_full() {
                let mut line = Vec::new();
                match std::io::BufRead::read_until(&mut reader, b'\n', &mut line) {
                    Ok(0) => break,
                    Ok(_) => {
                        if line.last() == Some(&b'\n') {
                            line.pop();
                        }
                        number += 1;
                        to.add(format!("line/{number:012}").into_bytes(), line);
                    }
                    Err(error) => {
                        failure = Some(Failure::file("read", path, &error));
                        break;
                    }
                }
            }
        });
        failure.map_or(Ok(()), Err)
    }
}

fn sorted_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// What apt knows; it reads its lists whatever they are compressed with.
fn apt_packages() -> Option<Vec<u8>> {
    let output = Command::new("apt-cache")
        .arg("dumpavail")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    if let Ok(output) = output
        && output.status.success()
        && !output.stdout.is_empty()
    {
        return Some(output.stdout);
    }
    let lists = sorted_files(Path::new("/var/lib/apt/lists"));
    let plain = lists.into_iter().filter(|path| path.to_string_lossy().ends_with("_Packages"));
    let text: Vec<u8> = plain.filter_map(|path| fs::read(path).ok()).flatten().collect();
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_are_packages() {
        let mut collector =
            Collector { records: BTreeMap::new(), parts: Vec::new(), bytes: 0, limit: 1 << 20 };
        collector.packages("p", b"Package: a\nVersion: 1\n\nSource: x\n\nPackage: b\nX: y\n");
        let keys: Vec<&[u8]> = collector.records.keys().map(Vec::as_slice).collect();
        assert_eq!(keys, [b"p/a", b"p/b"]);
        assert_eq!(collector.records[&b"p/a"[..]], b"Package: a\nVersion: 1");
    }

    #[test]
    fn a_file_is_its_lines_up_to_the_limit() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lines");
        fs::write(&path, "one\n\nthree").unwrap();
        let source = collect(Some(&path), 1 << 20).unwrap();
        assert_eq!(source.records.len(), 3);
        assert_eq!(source.records[2].1, b"three");
        assert_eq!(collect(Some(&path), 1).unwrap().records.len(), 1);
        assert!(collect(Some(&dir.path().join("none")), 1).is_err());
    }
}
