//! `advise`: what the user's data would take under each codec, block size and dictionary, from a
//! sample of it, and how far off that may be (docs/advise.md).

mod stretch;
mod layers;
mod sample;
mod records;
mod text;
mod folder;
mod mariadb_places;
mod mariadb_rows;
mod mariadb;
mod tree;
mod shale_tree;
mod database;
mod choice;
mod build;
mod everything;
mod bound;
mod amp;
mod scale;
mod predict;
mod recommend;
mod check;
mod fit;
mod engines;
mod engines_table;
mod report;
mod page;

use crate::args::AdviseOptions;
use crate::exit::{Exit, Failure, Outcome};
use crate::screen;
use build::Workshop;
use choice::{Choice, USUAL_BLOCK_BYTES};
use engines::Engines;
use everything::Everything;
use predict::Predicted;
use report::Report;
use sample::{SAMPLE_BYTES_MIN, Sample};
use shaledb::Codec;
use shaledb_lab::units::setting;
use std::cell::RefCell;
use std::path::Path;

/// What is tried, if the user does not say.
const CODECS: [Codec; 5] =
    [Codec::None, Codec::Lz4, Codec::Zstd(1), Codec::Zstd(3), Codec::Zstd(9)];
const BLOCK_SIZES: [u32; 3] = [4 << 10, USUAL_BLOCK_BYTES, 64 << 10];

/// How many times as much is read for other engines: what they set aside for their files is less
/// of it.
const ENGINE_SAMPLE_TIMES: u64 = 8;

/// Runs it.
pub(crate) fn advise(options: &AdviseOptions, json: bool) -> Outcome {
    let choices = choices(options)?;
    refuse_what_does_not_fit(options)?;
    engines::named(&options.engines)?;
    let spinner = screen::spinner("reading a sample".to_owned());
    let (sample, everything) = read(options, options.sample)?;
    let everything = everything.filter(|_| options.check);
    if options.check && everything.is_none() {
        return Err(Failure::usage(
            "--check reads everything several times, which a pipe does not allow. Name a file",
        ));
    }
    spinner.set_message("writing the sample under each choice".to_owned());
    let workshop = Workshop::new(options.dir.as_deref())?;
    let memory = options.memory.unwrap_or_default();
    let predicted = predict::predict(
        &sample,
        &choices,
        &workshop,
        memory,
        options.rate.map(|rate| rate as f64),
    )?;
    let picked = recommend::pick(&predicted.choices);
    let words = recommend::words(&sample, &predicted, picked);
    let source = match (&options.source, &options.table) {
        (Some(path), _) => path.display().to_string(),
        (None, table) => table.clone().unwrap_or_default(),
    };
    let mut report = Report::new(source, &sample, &predicted, picked, words);
    if let Some(everything) = everything {
        spinner.set_message("loading everything, three times".to_owned());
        let (checked, words) = check::check(&everything, &predicted, picked, &sample, &workshop)?;
        report.checked = Some(checked);
        report.check_words = words;
    }
    if !options.engines.is_empty() {
        spinner.finish_and_clear();
        report.compare(of_engines(options, &predicted, &workshop)?);
    }
    spinner.finish_and_clear();
    if let Some(path) = &options.html {
        std::fs::write(path, page::page(&report)?)
            .map_err(|error| Failure::file("write", path, &error))?;
    }
    match json {
        true => screen::json(&report)?,
        false => screen::line(&report.text())?,
    }
    Ok(Exit::Done)
}

/// What the engines that are asked for would take, by a larger sample.
fn of_engines(
    options: &AdviseOptions,
    predicted: &Predicted,
    workshop: &Workshop,
) -> Outcome<Engines> {
    let bytes = options.engine_sample.unwrap_or(options.sample * ENGINE_SAMPLE_TIMES);
    let (sample, everything) = read(options, bytes)?;
    let everything = everything.filter(|_| options.check);
    engines::compare(&options.engines, &sample, predicted, everything.as_ref(), workshop)
}

/// What is tried.
fn choices(options: &AdviseOptions) -> Outcome<Vec<Choice>> {
    let mut codecs: Vec<Codec> = Vec::new();
    for name in &options.codecs {
        let codec: Codec = name.parse()?;
        if codec == Codec::Auto {
            return Err(Failure::usage(
                "auto is no codec of its own: name those that the engine may choose",
            ));
        }
        codecs.push(codec);
    }
    let sizes: Vec<u32> =
        options.block_bytes.iter().map(|&bytes| u32::try_from(bytes).unwrap_or(u32::MAX)).collect();
    let codecs = if codecs.is_empty() { CODECS.to_vec() } else { codecs };
    let sizes = if sizes.is_empty() { BLOCK_SIZES.to_vec() } else { sizes };
    let choices = Choice::all(&codecs, &sizes);
    for choice in &choices {
        choice.config().validate()?;
    }
    Ok(choices)
}

fn refuse_what_does_not_fit(options: &AdviseOptions) -> Outcome<()> {
    if options.sample < SAMPLE_BYTES_MIN {
        return Err(Failure::usage(format!(
            "--sample: {} is too small: {} is the least that has several stretches",
            setting(options.sample),
            setting(SAMPLE_BYTES_MIN)
        )));
    }
    // That a file excludes --mariadb keeps the parser from asking for it.
    if options.mariadb.is_none() && (options.table.is_some() || options.user.is_some()) {
        return Err(Failure::usage(
            "--table and --user are of a MariaDB: name its socket by --mariadb instead of a file",
        ));
    }
    let is_pipe = options.source.as_deref().is_some_and(|path| path == Path::new("-"));
    if !options.engines.is_empty() && is_pipe {
        return Err(Failure::usage(
            "--engines reads the source twice, which a pipe does not allow. Name a file",
        ));
    }
    if options.engine_sample.is_some_and(|bytes| bytes < SAMPLE_BYTES_MIN) {
        return Err(Failure::usage(format!(
            "--engine-sample: name {} or more",
            setting(SAMPLE_BYTES_MIN)
        )));
    }
    if options.rate == Some(0) {
        return Err(Failure::usage("--rate: 0 B a second are no updates: name 1 or more"));
    }
    Ok(())
}

/// Reads a sample; also where all of it can be read from, if it can.
fn read(options: &AdviseOptions, sample_bytes: u64) -> Outcome<(Sample, Option<Everything>)> {
    if let Some(socket) = &options.mariadb {
        return Ok((mariadb::sample(options, socket, sample_bytes)?, None));
    }
    let Some(path) = &options.source else {
        return Err(Failure::usage("name a file, a folder, a database, or --mariadb"));
    };
    if path.is_dir() {
        if !path.join("CURRENT").exists() {
            let parts = folder::parts(path)?;
            if options.rows.format.is_none() {
                folder::of_one_kind(path, &parts)?;
            }
            let rows = options.rows.options(&parts[0].path)?;
            let sample = folder::sample(&parts, &rows, sample_bytes)?;
            let paths = parts.into_iter().map(|part| part.path).collect();
            return Ok((sample, Some(Everything::Files(paths, Box::new(rows)))));
        }
        let (mut tree, name) = database::open(path, &options.name.tree)?;
        let sample = tree::sample(tree.as_mut(), &name, sample_bytes)?;
        return Ok((sample, Some(Everything::Tree(RefCell::new(tree)))));
    }
    let rows = options.rows.options(path)?;
    let sample = text::sample(path, &rows, sample_bytes)?;
    let is_file = path != Path::new("-") && path.is_file();
    let everything = is_file.then(|| Everything::Files(vec![path.clone()], Box::new(rows)));
    Ok((sample, everything))
}
