//! Values that are rows: lists of links, and lines of a log.

use crate::generate::{Random, Values};
use crate::workloads::linkbench::motif::{LINK_LOOK, Motif};
use std::io::Write;

/// The mean bytes of a list of links, and of a line of a log.
pub(super) const LINKS_BYTES: f64 = 154.0;
pub(super) const JSON_BYTES: f64 = 236.6;

/// A list has from one to so many links.
const LINKS: u64 = 8;

/// The time of the first row, in milliseconds since 1970.
const FIRST_MILLIS: u64 = 1_764_000_000_000;

/// Rows up to so many bytes, each made by `row`.
fn rows(bytes: usize, mut row: impl FnMut(&mut Vec<u8>)) -> Values {
    let (mut buffer, mut starts) = (Vec::with_capacity(bytes + 4096), vec![0]);
    while buffer.len() < bytes {
        row(&mut buffer);
        starts.push(buffer.len() as u32);
    }
    Values::rows(buffer, starts)
}

/// Each value is the list of a node's links of one type, as LinkBench has them: id, visibility,
/// time, version, data.
pub(super) fn links(random: &mut Random, bytes: usize) -> Values {
    let mut motif = Motif::new(LINK_LOOK, random);
    rows(bytes, |to| {
        for _ in 0..1 + random.below(LINKS) {
            to.extend_from_slice(&random.below(1 << 24).to_be_bytes());
            to.push(1);
            to.extend_from_slice(&(FIRST_MILLIS + random.below(1 << 27)).to_be_bytes());
            to.extend_from_slice(&(random.below(3) as u32).to_be_bytes());
            motif.append(random, to);
        }
    })
}

const LEVELS: [&str; 8] = ["INFO", "INFO", "INFO", "INFO", "INFO", "DEBUG", "WARN", "ERROR"];
const SERVICES: [&str; 8] =
    ["checkout", "catalog", "search", "payment", "login", "stock", "mail", "gateway"];
const METHODS: [&str; 4] = ["GET", "GET", "POST", "PUT"];
const PLACES: [&str; 6] = ["orders", "items", "users", "baskets", "reviews", "sessions"];
const STATES: [u16; 8] = [200, 200, 200, 200, 201, 304, 404, 500];
const AGENTS: [&str; 4] = ["curl/8.5.0", "okhttp/4.12.0", "Go-http-client/2.0", "web/2026.11"];

fn one<T: Copy>(random: &mut Random, of: &[T]) -> T {
    of[random.below(of.len() as u64) as usize]
}

/// Each value is a line of a log of requests, in the order of time.
pub(super) fn json(random: &mut Random, bytes: usize) -> Values {
    let mut millis = 0;
    rows(bytes, |to| {
        millis += random.below(400);
        let (seconds, fraction) = (millis / 1000, millis % 1000);
        // Writing to memory does not fail.
        let _ = write!(
            to,
            "{{\"time\":\"2026-11-{:02}T{:02}:{:02}:{:02}.{fraction:03}Z\",\"level\":\"{}\",\
             \"service\":\"{}\",\"host\":\"node-{:02}\",\"request\":\"{:016x}\",\
             \"method\":\"{}\",\"path\":\"/api/v1/{}/{}\",\"status\":{},\"millis\":{},\
             \"bytes\":{},\"user\":{},\"agent\":\"{}\"}}",
            1 + seconds / 86_400 % 28,
            seconds / 3600 % 24,
            seconds / 60 % 60,
            seconds % 60,
            one(random, &LEVELS),
            one(random, &SERVICES),
            random.below(24),
            random.bits(),
            one(random, &METHODS),
            one(random, &PLACES),
            random.below(100_000),
            one(random, &STATES),
            random.below(30) * random.below(30),
            random.below(20_000),
            random.below(50_000),
            one(random, &AGENTS),
        );
    })
}
