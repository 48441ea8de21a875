//! Where the text comes from: a file, or a pipe that may keep its reader waiting for ever.

use crate::exit::{Failure, Outcome};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

const CHUNK_BYTES: usize = 256 << 10;

/// An opened file.
pub(crate) struct Source {
    pub(crate) input: Box<dyn Read>,
    /// The length of the file, if it has one.
    pub(crate) total_bytes: Option<u64>,
    /// How much of it has been read, as it is stored.
    pub(crate) done_bytes: Arc<AtomicU64>,
}

/// Opens a file; `-` is the standard input. Reading from a pipe fails when `stop` is set.
pub(crate) fn open(path: &Path, stop: &Arc<AtomicBool>) -> Outcome<Source> {
    let done_bytes = Arc::new(AtomicU64::new(0));
    let counted = |input: Box<dyn Read>| Counted { input, bytes: done_bytes.clone() };
    if path == Path::new("-") {
        let input = Box::new(pipe(Box::new(io::stdin()), stop)?);
        let input = Box::new(counted(input));
        return Ok(Source { input, total_bytes: None, done_bytes });
    }
    let file = File::open(path).map_err(|error| Failure::file("open", path, &error))?;
    let meta = file.metadata().map_err(|error| Failure::file("read", path, &error))?;
    if meta.is_dir() {
        return Err(Failure::usage(format!(
            "{} is a folder. Name a file, or - for the standard input",
            path.display()
        )));
    }
    let (input, total_bytes): (Box<dyn Read>, _) = match meta.is_file() {
        true => (Box::new(file), Some(meta.len())),
        false => (Box::new(pipe(Box::new(file), stop)?), None),
    };
    Ok(Source { input: Box::new(counted(input)), total_bytes, done_bytes })
}

struct Counted {
    input: Box<dyn Read>,
    bytes: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        self.bytes.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// What a thread reads of a pipe, so that nobody has to wait for it who wants to stop.
struct Pipe {
    chunks: Receiver<io::Result<Vec<u8>>>,
    chunk: Vec<u8>,
    used: usize,
    stop: Arc<AtomicBool>,
}

fn pipe(mut from: Box<dyn Read + Send>, stop: &Arc<AtomicBool>) -> Outcome<Pipe> {
    let (sender, chunks) = sync_channel(2);
    let read = move || {
        loop {
            let mut chunk = vec![0; CHUNK_BYTES];
            let chunk = match from.read(&mut chunk) {
                Ok(0) => return,
                Ok(read) => {
                    chunk.truncate(read);
                    Ok(chunk)
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => Err(error),
            };
            if sender.send(chunk).is_err() {
                return;
            }
        }
    };
    std::thread::Builder::new()
        .name("input".to_owned())
        .spawn(read)
        .map_err(|error| Failure::file("start a thread for", Path::new("-"), &error))?;
    Ok(Pipe { chunks, chunk: Vec::new(), used: 0, stop: stop.clone() })
}

impl Read for Pipe {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.used == self.chunk.len() {
            match self.chunks.recv_timeout(Duration::from_millis(50)) {
                Ok(chunk) => (self.chunk, self.used) = (chunk?, 0),
                Err(RecvTimeoutError::Disconnected) => return Ok(0),
                Err(RecvTimeoutError::Timeout) if self.stop.load(Ordering::Relaxed) => {
                    return Err(io::Error::other("stopped"));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
        let read = buffer.len().min(self.chunk.len() - self.used);
        buffer[..read].copy_from_slice(&self.chunk[self.used..self.used + read]);
        self.used += read;
        Ok(read)
    }
}
