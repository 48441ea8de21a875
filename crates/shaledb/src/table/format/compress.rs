//! The codecs: one block's bytes made smaller, and back.
//!
//! A compressed image is what the codec makes of the block and nothing more: a raw LZ4 block, a
//! zlib stream, or a zstd frame without content size, checksum and dictionary id. The block's
//! trailer holds the codec's id, the raw length and the checksum, so none of that is repeated. A
//! frame made with a dictionary names it by its id, so that a wrong one is found out.
//!
//! Invariant: [`decompress`] takes any bytes. It answers with exactly `raw_len` bytes or with a
//! reason, never writes or allocates more than that, and never panics.
//!
//! Measured in docs/decisions/0002-codecs.md.

use crate::base::activity::Activity;
use crate::base::config::Codec;
use crate::cache::Memory;
use crate::fs::meter::Meter;
use std::cell::RefCell;
use std::ffi::c_int;
use std::sync::{Arc, OnceLock};
use zstd_safe::{CCtx, CParameter, DCtx, DDict, WriteBuf, zstd_sys};

/// The codec ids in block trailers. They are part of the format: never change one.
pub mod id {
    /// Stored as it is.
    pub const NONE: u8 = 0;
    /// An LZ4 block, without a frame.
    pub const LZ4: u8 = 1;
    /// A zlib stream (RFC 1950).
    pub const ZLIB: u8 = 2;
    /// A zstd frame (RFC 8878).
    pub const ZSTD: u8 = 3;
    /// A zstd frame made with the dictionary of the table in which it is.
    pub const ZSTD_DICTIONARY: u8 = 4;
    /// Not a block: the dictionary of a table, stored as it is.
    pub const DICTIONARY: u8 = 5;
    /// Not a block: the dictionary of a table, in a zstd frame.
    pub const DICTIONARY_PACKED: u8 = 6;
}

/// The level of zstd that dictionaries are stored with.
pub(super) const DICTIONARY_LEVEL: i8 = 3;
/// The longest dictionary that is read.
pub const DICTIONARY_BYTES_MAX: usize = 256 * 1024;
/// The shortest that zstd makes.
const DICTIONARY_BYTES_MIN: usize = 256;
/// What a dictionary has before its content: ids and tables of at most so many bytes.
const DICTIONARY_HEADER_BYTES: usize = 1024;

/// The working memory of a compressor of zlib: about, and at most.
const ZLIB_BYTES: usize = 1 << 20;

/// The id of a block that `codec` made smaller. Its level is not told by the block.
pub fn id_of(codec: Codec) -> u8 {
    match codec {
        Codec::None => id::NONE,
        Codec::Auto | Codec::Lz4 => id::LZ4,
        Codec::Zlib(_) => id::ZLIB,
        Codec::Zstd(_) => id::ZSTD,
    }
}

/// Compresses blocks with one codec; keeps the codec's working memory from block to block.
pub struct Compressor {
    method: Method,
    /// What measures it, and what its work counts for.
    meter: Option<(Arc<Meter>, Activity)>,
}

enum Method {
    None,
    Lz4,
    Zlib(libdeflater::Compressor),
    Zstd(CCtx<'static>),
    ZstdDictionary(CCtx<'static>),
}

impl Compressor {
    /// A compressor for `codec`. A level out of the codec's range is brought into it.
    pub fn new(codec: Codec) -> Compressor {
        let method = match codec {
            Codec::None => Method::None,
            // Tables are written with what was chosen; lz4 suits anything else.
            Codec::Auto | Codec::Lz4 => Method::Lz4,
            Codec::Zlib(level) => {
                let level = libdeflater::CompressionLvl::new(level.clamp(1, 9).into());
                Method::Zlib(libdeflater::Compressor::new(level.unwrap_or_default()))
            }
            Codec::Zstd(level) => match zstd_context(level.clamp(-5, 19)) {
                Some(context) => Method::Zstd(context),
                // Out of memory for the context: the blocks are stored plain, which is correct.
                None => Method::None,
            },
        };
        Compressor { method, meter: None }
    }

    /// The working memory that is kept from block to block.
    pub fn memory_bytes(&self) -> usize {
        match &self.method {
            Method::None | Method::Lz4 => 0,
            Method::Zlib(_) => ZLIB_BYTES,
            Method::Zstd(context) | Method::ZstdDictionary(context) => context.sizeof(),
        }
    }

    /// Has what the compressor does counted for `activity`.
    pub fn count_as(&mut self, activity: Activity, meter: &Arc<Meter>) {
        if !matches!(self.method, Method::None) {
            self.meter = Some((Arc::clone(meter), activity));
        }
    }

    /// Compresses with `dictionary` from now on, if the codec is zstd; answers whether it does.
    pub fn use_dictionary(&mut self, dictionary: &Dictionary) -> bool {
        let Method::Zstd(mut context) = std::mem::replace(&mut self.method, Method::None) else {
            return false;
        };
        let loaded = context.load_dictionary(&dictionary.bytes).is_ok()
            && context.set_parameter(CParameter::DictIdFlag(true)).is_ok();
        if !loaded {
            // Without memory for it the blocks are stored plain, as in `new`.
            return false;
        }
        self.method = Method::ZstdDictionary(context);
        true
    }

    /// Appends the compressed image of `raw` to `out` and returns the id of the codec used; if
    /// the image would not be at least an eighth smaller, appends `raw` itself and returns
    /// [`id::NONE`].
    pub fn compress(&mut self, raw: &[u8], out: &mut Vec<u8>) -> u8 {
        let Some((meter, activity)) = &self.meter else { return self.method.compress(raw, out) };
        let started = meter.begin(*activity);
        let used = self.method.compress(raw, out);
        meter.end(*activity, started);
        used
    }
}

impl Method {
    fn compress(&mut self, raw: &[u8], out: &mut Vec<u8>) -> u8 {
        let start = out.len();
        let limit = raw.len() - raw.len().div_ceil(8);
        let used = match self {
            Method::None => None,
            Method::Lz4 => lz4_compress(raw, out, limit).map(|()| id::LZ4),
            Method::Zlib(context) => zlib_compress(context, raw, out, limit).map(|()| id::ZLIB),
            Method::Zstd(context) => zstd_compress(context, raw, out).map(|()| id::ZSTD),
            Method::ZstdDictionary(context) => {
                zstd_compress(context, raw, out).map(|()| id::ZSTD_DICTIONARY)
            }
        };
        match used {
            Some(used) if out.len() - start <= limit => used,
            _ => {
                out.truncate(start);
                out.extend_from_slice(raw);
                id::NONE
            }
        }
    }
}

/// The most bytes that an image of `bytes` can stand for: no byte of LZ4 gives more than 255, none
/// of zlib more than 1032, and a block of zstd takes four bytes and gives at most 128 KiB.
fn raw_len_max(codec: u8, bytes: usize) -> usize {
    match codec {
        id::NONE => bytes,
        id::LZ4 => bytes.saturating_mul(255),
        id::ZLIB => bytes.saturating_mul(1032),
        // zstd, with a dictionary or without.
        _ => (bytes / 4).saturating_mul(128 * 1024),
    }
}

/// Replaces the content of `out` with the `raw_len` bytes that `input`, an image by `codec`, stands
/// for; on an error `out` holds nothing of use. Allocates no more than `raw_len` bytes, and nothing
/// if the image is too short for so many.
pub fn decompress(
    codec: u8,
    input: &[u8],
    raw_len: usize,
    out: &mut Vec<u8>,
) -> Result<(), &'static str> {
    decompress_with(None, codec, input, raw_len, out)
}

/// As [`decompress`], of a block of a table with this dictionary.
pub fn decompress_with(
    dictionary: Option<&Dictionary>,
    codec: u8,
    input: &[u8],
    raw_len: usize,
    out: &mut Vec<u8>,
) -> Result<(), &'static str> {
    if raw_len > raw_len_max(codec, input.len()) {
        return Err("a block is too short for its raw length");
    }
    match codec {
        id::NONE if input.len() != raw_len => Err("a plain block is not of its raw length"),
        id::NONE => {
            out.clear();
            out.reserve_exact(raw_len);
            out.extend_from_slice(input);
            Ok(())
        }
        id::LZ4 => lz4_decompress(input, raw_len, out),
        id::ZLIB => zlib_decompress(input, raw_len, out),
        id::ZSTD => zstd_decompress(None, input, raw_len, out),
        id::ZSTD_DICTIONARY => {
            let dictionary = dictionary.ok_or("a block needs a dictionary that is not there")?;
            if dictionary_id(input) != Some(dictionary.id) {
                return Err("a block was compressed with another dictionary");
            }
            zstd_decompress(Some(dictionary), input, raw_len, out)
        }
        _ => Err("an unknown codec"),
    }
}

/// The id of the dictionary that a zstd frame names.
pub fn dictionary_id(input: &[u8]) -> Option<u32> {
    zstd_safe::get_dict_id_from_frame(input).map(u32::from)
}

fn lz4_compress(raw: &[u8], out: &mut Vec<u8>, limit: usize) -> Option<()> {
    let start = out.len();
    let raw_len = c_int::try_from(raw.len()).ok()?;
    let room = c_int::try_from(limit).ok()?;
    out.reserve(limit);
    // SAFETY: `raw` is readable for `raw_len` bytes, the spare capacity of `out` is writable for
    // `limit` >= `room` bytes, and LZ4 touches nothing else.
    let written = unsafe {
        lz4_sys::LZ4_compress_default(
            raw.as_ptr().cast(),
            out.as_mut_ptr().add(start).cast(),
            raw_len,
            room,
        )
    };
    // Zero says that the image does not fit.
    let written = usize::try_from(written).ok().filter(|&n| 0 < n && n <= limit)?;
    // SAFETY: `written` <= `limit` bytes after `start` have just been initialized.
    unsafe { out.set_len(start + written) };
    Some(())
}

fn lz4_decompress(input: &[u8], raw_len: usize, out: &mut Vec<u8>) -> Result<(), &'static str> {
    let too_long = |_| "an lz4 block too long for lz4";
    let input_len = c_int::try_from(input.len()).map_err(too_long)?;
    let room = c_int::try_from(raw_len).map_err(too_long)?;
    out.clear();
    out.reserve_exact(raw_len);
    // SAFETY: `input` is readable for `input_len` bytes and `out` writable for `raw_len` bytes;
    // the safe decoder of LZ4 stays within both whatever the input.
    let written = unsafe {
        lz4_sys::LZ4_decompress_safe(
            input.as_ptr().cast(),
            out.as_mut_ptr().cast(),
            input_len,
            room,
        )
    };
    if written != room {
        return Err("a damaged lz4 block");
    }
    // SAFETY: LZ4 says that it has written the first `raw_len` bytes.
    unsafe { out.set_len(raw_len) };
    Ok(())
}

fn zlib_compress(
    context: &mut libdeflater::Compressor,
    raw: &[u8],
    out: &mut Vec<u8>,
    limit: usize,
) -> Option<()> {
    let start = out.len();
    // Clearing the buffer costs about a hundredth of the compression.
    out.resize(start + limit, 0);
    let written = context.zlib_compress(raw, &mut out[start..]).ok()?;
    out.truncate(start + written);
    Some(())
}

fn zlib_decompress(input: &[u8], raw_len: usize, out: &mut Vec<u8>) -> Result<(), &'static str> {
    thread_local! {
        static CONTEXT: RefCell<libdeflater::Decompressor> =
            RefCell::new(libdeflater::Decompressor::new());
    }
    out.truncate(raw_len);
    out.reserve_exact(raw_len - out.len());
    out.resize(raw_len, 0);
    let written =
        CONTEXT.with_borrow_mut(|context| context.zlib_decompress(input, out.as_mut_slice()));
    if written == Ok(raw_len) { Ok(()) } else { Err("a damaged zlib block") }
}

fn zstd_context(level: i8) -> Option<CCtx<'static>> {
    let mut context = CCtx::try_create()?;
    let parameters = [
        CParameter::CompressionLevel(level.into()),
        CParameter::ContentSizeFlag(false),
        CParameter::ChecksumFlag(false),
        CParameter::DictIdFlag(false),
    ];
    for parameter in parameters {
        context.set_parameter(parameter).ok()?;
    }
    Some(context)
}

fn zstd_compress(context: &mut CCtx<'static>, raw: &[u8], out: &mut Vec<u8>) -> Option<()> {
    // The full bound, so that what fits does not depend on how zstd fares with little room.
    let room = zstd_safe::compress_bound(raw.len());
    out.reserve(room);
    let start = out.len();
    context.compress2(&mut Tail { out, start, room }, raw).ok()?;
    Some(())
}

fn zstd_decompress(
    dictionary: Option<&Dictionary>,
    input: &[u8],
    raw_len: usize,
    out: &mut Vec<u8>,
) -> Result<(), &'static str> {
    thread_local! {
        static CONTEXT: RefCell<Option<DCtx<'static>>> = RefCell::new(DCtx::try_create());
    }
    out.clear();
    out.reserve_exact(raw_len);
    let written = CONTEXT.with_borrow_mut(|context| {
        let context = context.as_mut().ok_or("no memory for a zstd context")?;
        let mut tail = Tail { out, start: 0, room: raw_len };
        let written = match dictionary {
            Some(dictionary) => {
                context.decompress_using_ddict(&mut tail, input, &dictionary.prepared)
            }
            None => context.decompress(&mut tail, input),
        };
        written.map_err(|_| "a damaged zstd block")
    })?;
    if written == raw_len { Ok(()) } else { Err("a zstd block is not of its raw length") }
}

/// What zstd may take for known before a block begins: bytes that blocks of one table have in
/// common, and how often which symbols are. Made ready to decompress with.
pub struct Dictionary {
    bytes: Vec<u8>,
    id: u32,
    prepared: DDict<'static>,
    /// Where its memory is counted.
    counted: OnceLock<Arc<Memory>>,
}

impl Drop for Dictionary {
    fn drop(&mut self) {
        if let Some(memory) = self.counted.take() {
            memory.add_meta(-(self.memory_bytes() as i64));
        }
    }
}

impl std::fmt::Debug for Dictionary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dictionary").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Dictionary {
    /// Takes any bytes: a dictionary, or the reason why they are none.
    pub fn parse(bytes: Vec<u8>) -> Result<Dictionary, &'static str> {
        if bytes.len() > DICTIONARY_BYTES_MAX {
            return Err("a dictionary is too long");
        }
        let id = zstd_safe::get_dict_id_from_dict(&bytes).ok_or("the dictionary has no id")?;
        let prepared = DDict::try_create(&bytes).ok_or("the dictionary is malformed")?;
        Ok(Dictionary { bytes, id: id.into(), prepared, counted: OnceLock::new() })
    }

    /// Makes one of `content`, with how often which symbols are in `samples` when they are
    /// compressed at `level`. `None` if zstd cannot: there are too few samples, or all are alike.
    pub fn make(content: &[u8], samples: &[&[u8]], level: i8) -> Option<Dictionary> {
        let (flat, lengths) = flatten(samples);
        let room = (content.len() + DICTIONARY_HEADER_BYTES).max(DICTIONARY_BYTES_MIN);
        let mut bytes = vec![0; room];
        let parameters = zstd_sys::ZDICT_params_t {
            compressionLevel: level.into(),
            notificationLevel: 0,
            // An id made of the content.
            dictID: 0,
        };
        // SAFETY: `bytes` is writable for `room` bytes, `content` and `flat` are readable for their
        // lengths, and there are `lengths.len()` lengths, which add up to that of `flat`.
        let length = unsafe {
            zstd_sys::ZDICT_finalizeDictionary(
                bytes.as_mut_ptr().cast(),
                room,
                content.as_ptr().cast(),
                content.len(),
                flat.as_ptr().cast(),
                lengths.as_ptr(),
                u32::try_from(lengths.len()).ok()?,
                parameters,
            )
        };
        Dictionary::of(bytes, length)
    }

    /// Has zstd search `samples` for what a dictionary of about `room` bytes should have. That
    /// takes some 15 times as long as [`Dictionary::make`], and gives the better one. `None` if
    /// zstd cannot.
    pub fn train(samples: &[&[u8]], room: usize) -> Option<Dictionary> {
        let (flat, lengths) = flatten(samples);
        let room = room.clamp(DICTIONARY_BYTES_MIN, DICTIONARY_BYTES_MAX);
        let mut bytes = vec![0; room];
        // SAFETY: `bytes` is writable for `room` bytes, `flat` is readable for its length, and
        // there are `lengths.len()` lengths, which add up to that.
        let length = unsafe {
            zstd_sys::ZDICT_trainFromBuffer(
                bytes.as_mut_ptr().cast(),
                room,
                flat.as_ptr().cast(),
                lengths.as_ptr(),
                u32::try_from(lengths.len()).ok()?,
            )
        };
        Dictionary::of(bytes, length)
    }

    /// Of what zstd has made, and the length of it that zstd has answered.
    fn of(mut bytes: Vec<u8>, length: usize) -> Option<Dictionary> {
        // SAFETY: it looks at the number only.
        if unsafe { zstd_sys::ZDICT_isError(length) } != 0 {
            return None;
        }
        bytes.truncate(length);
        bytes.shrink_to_fit();
        Dictionary::parse(bytes).ok()
    }

    /// The dictionary as it is stored.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether the other one is the same.
    pub fn is(self: &Arc<Dictionary>, other: &Arc<Dictionary>) -> bool {
        Arc::ptr_eq(self, other) || self.bytes == other.bytes
    }

    /// The number that frames name it by.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Has the memory that it takes counted there from now on; once.
    pub fn count_in(&self, memory: &Arc<Memory>) {
        if self.counted.set(Arc::clone(memory)).is_ok() {
            memory.add_meta(self.memory_bytes() as i64);
        }
    }

    /// The memory that it takes.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Dictionary>() + self.bytes.len() + self.prepared.sizeof()
    }
}

/// All samples one behind the other, and the length of each.
fn flatten(samples: &[&[u8]]) -> (Vec<u8>, Vec<usize>) {
    (samples.concat(), samples.iter().map(|sample| sample.len()).collect())
}

/// The spare capacity of a vector as a place for zstd to write to, so that nothing is cleared
/// first: `room` bytes from `start`.
struct Tail<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
    room: usize,
}

// SAFETY: pointer and capacity name bytes that the vector has reserved (its users reserve `room`
// bytes after `start` = the length at that time and do not touch the vector meanwhile);
// `as_slice` covers only what the vector's length covers.
unsafe impl WriteBuf for Tail<'_> {
    fn as_slice(&self) -> &[u8] {
        self.out.get(self.start..).unwrap_or(&[])
    }

    fn capacity(&self) -> usize {
        self.room.min(self.out.capacity() - self.start)
    }

    fn as_mut_ptr(&mut self) -> *mut u8 {
        // SAFETY: `start` <= length <= capacity.
        unsafe { self.out.as_mut_ptr().add(self.start) }
    }

    unsafe fn filled_until(&mut self, count: usize) {
        // SAFETY: the caller has initialized `count` <= `capacity()` bytes from `start` on.
        unsafe { self.out.set_len(self.start + count) };
    }
}

#[cfg(test)]
#[path = "compress_tests.rs"]
mod tests;
