//! A folder of files of rows as one source: which files, of what kind, and stretches from all over
//! them, by their sizes.

use super::sample::{Sample, Seen, Stretch, stretches_of};
use super::text::{Text, head, refuse_binary, rowless, seekable};
use crate::exit::{Exit, Failure, Outcome};
use crate::row_flags::Format;
use shaledb_cli::rows::Options;
use shaledb_lab::generate::Random;
use std::fs::FileType;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Of files that can be read from their beginning only, no less is read at once: what was read of a
/// packed file is known by its blocks only.
const HEAD_BYTES_MIN: u64 = 4 << 20;
/// So many files of a kind are named.
const NAMED: usize = 2;

/// A file of the folder.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) path: PathBuf,
    /// Its length.
    bytes: u64,
}

/// The files of a folder and of the folders in it, in the order of their names. Hidden ones and
/// those with a name such as `_SUCCESS` are no data.
pub(super) fn parts(folder: &Path) -> Outcome<Vec<Part>> {
    let mut parts = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let failed = |error: &std::io::Error| Failure::file("read", &folder, error);
        for entry in std::fs::read_dir(&folder).map_err(|error| failed(&error))? {
            let entry = entry.map_err(|error| failed(&error))?;
            if entry.file_name().to_string_lossy().starts_with(['.', '_']) {
                continue;
            }
            let path = entry.path();
            // A link to a folder may lead back; one to a file is the file.
            if entry.file_type().as_ref().is_ok_and(FileType::is_dir) {
                folders.push(path);
                continue;
            }
            let meta = path.metadata().map_err(|error| Failure::file("read", &path, &error))?;
            if meta.is_file() && meta.len() > 0 {
                parts.push(Part { path, bytes: meta.len() });
            }
        }
    }
    if parts.is_empty() {
        return Err(Failure::new(
            Exit::BadInput,
            format!(
                "{} is a folder without a file that has data, and no database. Name a folder of \
                 CSV, TSV or JSON files, or one file",
                folder.display()
            ),
        ));
    }
    parts.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(parts)
}

/// Refuses files of several kinds, by their names.
pub(super) fn of_one_kind(folder: &Path, parts: &[Part]) -> Outcome<()> {
    let kinds = [Format::Json, Format::Csv, Format::Tsv, Format::Kv];
    let mut told = Vec::new();
    for kind in kinds {
        let of_kind: Vec<&Part> =
            parts.iter().filter(|part| Format::of(&part.path) == kind).collect();
        if of_kind.is_empty() {
            continue;
        }
        let name = |part: &&Part| {
            part.path.strip_prefix(folder).unwrap_or(&part.path).display().to_string()
        };
        let mut names = of_kind.iter().take(NAMED).map(name).collect::<Vec<_>>().join(", ");
        if of_kind.len() > NAMED {
            names.push_str(&format!(" and {} more", of_kind.len() - NAMED));
        }
        let kind = match kind {
            Format::Json => "JSON",
            Format::Csv => "CSV",
            Format::Tsv => "TSV",
            Format::Kv => "of a kind that their names do not tell",
        };
        told.push(format!("{kind} ({names})"));
    }
    if told.len() < 2 {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "{} has files of {} kinds: {}. Put those of one kind into a folder of their own, or say \
         with --format how all are to be read",
        folder.display(),
        told.len(),
        told.join(", ")
    )))
}

/// Reads some `sample_bytes` of all files together.
pub(super) fn sample(parts: &[Part], options: &Options, sample_bytes: u64) -> Outcome<Sample> {
    let stop = crate::signals::stop_flag()?;
    let mut total = 0;
    let mut packed = 0;
    for part in parts {
        total += part.bytes;
        packed += usize::from(seekable(&part.path, options)?.is_none());
    }
    if total <= sample_bytes && packed == 0 {
        return heads(parts, parts, options, u64::MAX, &stop);
    }
    if packed == 0 {
        return spread(parts, total, options, sample_bytes, &stop);
    }
    let count = (sample_bytes / HEAD_BYTES_MIN).clamp(1, parts.len() as u64);
    let chosen = chosen(parts, total, count);
    let each = sample_bytes / chosen.len() as u64;
    heads(parts, &chosen, options, each, &stop)
}

/// The files at so many places, evenly by sizes; a large one once.
fn chosen(parts: &[Part], total: u64, count: u64) -> Vec<Part> {
    let mut chosen: Vec<Part> = Vec::new();
    let (mut before, mut place) = (0, 0);
    for part in parts {
        before += part.bytes;
        let of_place = |place: u128| u128::from(total) * (2 * place + 1) / (2 * u128::from(count));
        if of_place(place) < u128::from(before) {
            chosen.push(part.clone());
        }
        while of_place(place) < u128::from(before) {
            place += 1;
        }
    }
    chosen
}

/// Stretches from all over files of which any place can be read.
fn spread(
    parts: &[Part],
    total: u64,
    options: &Options,
    sample_bytes: u64,
    stop: &Arc<AtomicBool>,
) -> Outcome<Sample> {
    let count = stretches_of(sample_bytes);
    let length_of_one = sample_bytes / count;
    let mut random = Random::named(1, "advise", 0);
    let mut source = Folder { parts, total, options, head: None, notes: Vec::new(), why: None };
    let (mut stretches, mut lost) = (Vec::new(), 0);
    for number in 0..count {
        let at = |number: u64| (u128::from(total) * u128::from(number) / u128::from(count)) as u64;
        let room = (at(number + 1) - at(number)).saturating_sub(length_of_one);
        let offset = at(number) + random.below(room + 1);
        if stop.load(Ordering::Relaxed) {
            return Err(Failure::new(Exit::Stopped, "stopped: there is no advice"));
        }
        match source.stretch(offset, length_of_one)? {
            Some(stretch) => stretches.push(stretch),
            None => lost += 1,
        }
    }
    let mut notes = std::mem::take(&mut source.notes);
    notes.extend(rowless(&stretches, length_of_one));
    match source.why.take() {
        Some(why) if lost * 4 > count => return Err(why),
        _ if lost > 0 => notes.push(format!(
            "In {lost} of {count} stretches no place was found where a record begins; they were \
             left out."
        )),
        _ => {}
    }
    let sample = Sample::new(stretches, Some(total), Seen::Spread, notes);
    if sample.rows == 0 {
        let what = "no row begins in what was read of the files. Raise --sample";
        return Err(Failure::new(Exit::BadInput, what));
    }
    Ok(sample)
}

/// Files behind each other.
struct Folder<'a> {
    parts: &'a [Part],
    total: u64,
    options: &'a Options,
    /// The first line that names columns, and the file that has it.
    head: Option<(Vec<u8>, String)>,
    notes: Vec<String>,
    /// Why a place was not found where a record begins.
    why: Option<Failure>,
}

impl Folder<'_> {
    /// The records that begin in so many bytes from a place of all files on, which may go on in the
    /// next files.
    fn stretch(&mut self, offset: u64, length: u64) -> Outcome<Option<Stretch>> {
        let mut all = Stretch { at: offset as f64 / self.total as f64, ..Stretch::default() };
        let mut is_first = true;
        let mut before = 0;
        let mut left = length;
        for (number, part) in self.parts.iter().enumerate() {
            let end = before + part.bytes;
            let from = offset.max(before) - before;
            before = end;
            if from >= part.bytes || left == 0 {
                continue;
            }
            let name = part.path.display().to_string();
            let Some((mut file, bytes)) = seekable(&part.path, self.options)? else { continue };
            refuse_binary(&mut file, &name, self.options)?;
            let mut text = Text::open(file, bytes, &name, self.options)?;
            let length = left.min(part.bytes - from);
            // What is in the first line is a part of all files' bytes too, in which there is no
            // row.
            let of_head = (text.head().len() as u64).saturating_sub(from).min(length);
            let mut here = Some(Stretch::default());
            if of_head < length {
                here = text.stretch(from + of_head, length - of_head)?;
            }
            if here.is_none() {
                self.why = Some(text.no_begin()?);
            }
            let head = text.head().to_vec();
            self.columns(head, name);
            let Some(here) = here else { return Ok(None) };
            // By places, not by what begins there: else a row of the next file would come, too.
            left -= length;
            all.units += of_head;
            if std::mem::take(&mut is_first) {
                all.file = number;
            }
            all.units += here.units;
            all.rows.extend(here.rows);
        }
        Ok(Some(all))
    }

    /// Notes that files name different columns, once.
    fn columns(&mut self, head: Vec<u8>, name: String) {
        match &self.head {
            None => self.head = Some((head, name)),
            Some((first, of)) if *first != head && self.notes.is_empty() => {
                self.notes.push(format!("{name} names other columns than {of}."));
            }
            Some(_) => {}
        }
    }
}

/// The beginnings of some of the files, or these as a whole.
fn heads(
    parts: &[Part],
    chosen: &[Part],
    options: &Options,
    each: u64,
    stop: &Arc<AtomicBool>,
) -> Outcome<Sample> {
    let total: u64 = parts.iter().map(|part| part.bytes).sum();
    let is_all = chosen.len() == parts.len();
    let (mut stretches, mut before) = (Vec::new(), 0);
    let (mut whole, mut stored) = (0.0, 0);
    let mut is_whole = is_all;
    let mut bound: f64 = 0.0;
    for (number, part) in chosen.iter().enumerate() {
        let name = part.path.display().to_string();
        if let Some((mut file, _)) = seekable(&part.path, options)? {
            refuse_binary(&mut file, &name, options)?;
        }
        let sample = head(&part.path, &name, options, each, stop)?;
        is_whole &= sample.seen == Seen::All;
        // Bytes of rows in all of the file, as far as its beginning tells.
        whole += sample.total_units;
        stored += part.bytes;
        bound = bound.max(sample.total_bound);
        for mut stretch in sample.stretches {
            stretch.file = number;
            stretch.at = (before as f64 + stretch.at * part.bytes as f64) / total as f64;
            stretches.push(stretch);
        }
        before += part.bytes;
    }
    if is_whole {
        return Ok(Sample::new(stretches, Some(whole as u64), Seen::All, Vec::new()));
    }
    let note = format!(
        "Files can be read from their beginnings only (they are compressed, or one JSON array \
         each), so {} of {} were read so, and nothing is known of the rest: the bounds are wide. \
         Unpack them for better ones.",
        chosen.len(),
        parts.len()
    );
    let rows = whole * total as f64 / stored.max(1) as f64;
    let sample = Sample::new(stretches, Some(rows as u64), Seen::Head, vec![note]);
    Ok(Sample { total_bound: bound, ..sample.of_files(parts.len()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_chosen_by_their_sizes() {
        let part = |name: &str, bytes| Part { path: name.into(), bytes };
        let parts = [part("a", 10), part("b", 1), part("c", 1000), part("d", 480), part("e", 9)];
        let names = |count| -> Vec<String> {
            let chosen = chosen(&parts, 1500, count);
            chosen.iter().map(|part| part.path.display().to_string()).collect()
        };
        assert_eq!(names(1), ["c"]);
        assert_eq!(names(3), ["c", "d"]);
        assert_eq!(names(1500), ["a", "b", "c", "d", "e"]);
    }
}
