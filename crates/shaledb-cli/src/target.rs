//! A file that a command writes. It gets its name when it is complete.

use crate::exit::{Exit, Failure, Outcome};
use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// The file that is written, or the standard output.
pub(crate) struct Target {
    out: Packed,
    to: Place,
}

enum Place {
    StandardOutput,
    /// Or a pipe, of this name.
    Device(PathBuf),
    /// A file, its name, and the one it has until it is complete.
    File(File, PathBuf, PathBuf),
}

type Out = BufWriter<Box<dyn Write>>;

enum Packed {
    Plain(Out),
    Gzip(flate2::write::GzEncoder<Out>),
    Zstd(zstd::stream::write::Encoder<'static, Out>),
}

impl Target {
    /// Begins the file, or the standard output for `-`; what is there already is overwritten with
    /// `force`. `packs`: it is compressed if its name says so.
    pub(crate) fn create(path: &Path, force: bool, packs: bool) -> Outcome<Target> {
        if path == Path::new("-") {
            let out: Box<dyn Write> = Box::new(io::stdout().lock());
            let out = Packed::Plain(BufWriter::new(out));
            return Ok(Target { out, to: Place::StandardOutput });
        }
        let is_there = std::fs::metadata(path).ok();
        if is_there.as_ref().is_some_and(|meta| !meta.is_file() && !meta.is_dir()) {
            // A device or a pipe has no other name meanwhile, and nothing to be lost.
            let wrong = |error: io::Error| Failure::file("write to", path, &error);
            let file = File::options().write(true).open(path).map_err(wrong)?;
            let out = packed(path, packs, Box::new(file)).map_err(wrong)?;
            return Ok(Target { out, to: Place::Device(path.to_owned()) });
        }
        if is_there.as_ref().is_some_and(std::fs::Metadata::is_dir) {
            return Err(Failure::usage(format!(
                "{} is a folder. Name a file in it",
                path.display()
            )));
        }
        // Of a link the file that it leads to.
        let real = &real_path(path)?;
        if is_there.is_some() && !force {
            return Err(Failure::usage(format!(
                "{} exists. Name another file, or overwrite it with --force",
                path.display()
            )));
        }
        let mut name = real.as_os_str().to_owned();
        name.push(".partial");
        let partial = PathBuf::from(name);
        let wrong = |error: io::Error| match error.kind() {
            io::ErrorKind::AlreadyExists => Failure::usage(format!(
                "{} exists: another command writes there, or one was killed. If it was, remove \
                 it{}",
                partial.display(),
                if force { "" } else { ", or write over it with --force" }
            )),
            _ => Failure::file("create", &partial, &error),
        };
        let mut how = File::options();
        // What is there is emptied when nobody else writes to it.
        how.write(true).create(force).create_new(!force).truncate(false);
        let file = how.open(&partial).map_err(wrong)?;
        if file.try_lock().is_err() {
            return Err(wrong(io::ErrorKind::AlreadyExists.into()));
        }
        file.set_len(0).map_err(wrong)?;
        let same = file.try_clone().map_err(wrong)?;
        let out = packed(path, packs, Box::new(file)).map_err(wrong)?;
        Ok(Target { out, to: Place::File(same, real.clone(), partial) })
    }

    pub(crate) fn write(&mut self, text: &[u8]) -> Outcome<()> {
        let written = match &mut self.out {
            Packed::Plain(out) => out.write_all(text),
            Packed::Gzip(out) => out.write_all(text),
            Packed::Zstd(out) => out.write_all(text),
        };
        written.map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &io::Error) -> Failure {
        match &self.to {
            Place::StandardOutput => io::Error::new(error.kind(), error.to_string()).into(),
            Place::Device(device) => Failure::file("write to", device, error),
            Place::File(_, _, partial) if error.kind() == io::ErrorKind::StorageFull => {
                let text = format!(
                    "no space is left on the device for {}. Free space, then run this again",
                    partial.display()
                );
                Failure::new(Exit::DiskFull, text)
            }
            Place::File(_, _, partial) => Failure::file("write", partial, error),
        }
    }

    /// Ends the file and gives it its name, durably.
    pub(crate) fn finish(mut self) -> Outcome<()> {
        let ended = match &mut self.out {
            Packed::Plain(out) => out.flush(),
            Packed::Gzip(out) => out.try_finish().and_then(|()| out.get_mut().flush()),
            Packed::Zstd(out) => out.do_finish().and_then(|()| out.get_mut().flush()),
        };
        let ended = ended.and_then(|()| match &self.to {
            Place::File(file, path, partial) => {
                file.sync_all()?;
                std::fs::rename(partial, path)
            }
            _ => Ok(()),
        });
        ended.map_err(|error| self.failed(&error))?;
        // There is no partial file any more.
        match std::mem::replace(&mut self.to, Place::StandardOutput) {
            Place::File(_, path, _) => sync_name(&path),
            _ => Ok(()),
        }
    }
}

/// Makes the name of a file durable, where that can be done.
fn sync_name(path: &Path) -> Outcome<()> {
    // A name alone is in the working directory.
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    match File::open(folder).and_then(|folder| folder.sync_all()) {
        Ok(()) => Ok(()),
        Err(error) => match error.kind() {
            // Nobody may list it, or its file system has no such sync.
            ErrorKind::PermissionDenied | ErrorKind::InvalidInput => Ok(()),
            _ => Err(Failure::file("make durable the name of", path, &error)),
        },
    }
}

/// Compressed as the name says, if it `packs`.
fn packed(path: &Path, packs: bool, out: Box<dyn Write>) -> io::Result<Packed> {
    let out = BufWriter::with_capacity(256 << 10, out);
    let extension = path.extension().filter(|_| packs).and_then(|extension| extension.to_str());
    Ok(match extension.map(str::to_ascii_lowercase).as_deref() {
        Some("gz") => {
            Packed::Gzip(flate2::write::GzEncoder::new(out, flate2::Compression::default()))
        }
        Some("zst") => {
            let mut encoder = zstd::stream::write::Encoder::new(out, 3)?;
            encoder.include_checksum(true)?;
            Packed::Zstd(encoder)
        }
        _ => Packed::Plain(out),
    })
}

/// The path itself, or of a link the one that it leads to.
fn real_path(path: &Path) -> Outcome<PathBuf> {
    let is_link = std::fs::symlink_metadata(path).is_ok_and(|meta| meta.is_symlink());
    if !is_link {
        return Ok(path.to_owned());
    }
    std::fs::canonicalize(path).map_err(|error| Failure::file("follow the link", path, &error))
}

impl Drop for Target {
    /// A command that failed leaves nothing that could be taken for one that did not.
    fn drop(&mut self) {
        if let Place::File(_, _, partial) = &self.to {
            let _ = std::fs::remove_file(partial);
        }
    }
}
