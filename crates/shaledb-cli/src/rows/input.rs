//! From the bytes of a file to plain text: gzip and zstd are known by how they begin.

use std::io::{self, BufReader, Cursor, Read};

const GZIP: &[u8] = b"\x1f\x8b\x08";
const ZSTD: &[u8] = b"\x28\xb5\x2f\xfd";
const MARK: &[u8] = b"\xef\xbb\xbf";

/// How much of a compressed file is read at once: little, so that what was read is what was used.
pub const PACKED_PIECE_BYTES: usize = 8 << 10;

/// What cannot be read as text, by how it begins, and what to do about it.
const OTHERS: [(&[u8], &str); 4] = [
    (b"\xff\xfe", "the file is UTF-16. Convert it with `iconv -f UTF-16 -t UTF-8`"),
    (b"\xfe\xff", "the file is UTF-16. Convert it with `iconv -f UTF-16 -t UTF-8`"),
    (b"\xfd7zXZ\0", "the file is compressed by xz. Unpack it: `xz -dc FILE | shale import DB -`"),
    (b"PK\x03\x04", "the file is a zip archive. Unpack it: `unzip -p FILE | shale import DB -`"),
];

/// Plain bytes, and whether a mark of UTF-8 stood before them, which is taken off.
pub(super) fn plain(input: Box<dyn Read>) -> io::Result<(Box<dyn Read>, bool)> {
    let (head, input) = begin(input)?;
    let pieces = |input| BufReader::with_capacity(PACKED_PIECE_BYTES, input);
    let input: Box<dyn Read> = if head.starts_with(GZIP) {
        let from = flate2::bufread::MultiGzDecoder::new(pieces(input));
        Box::new(Unpacked { name: "gzip", from })
    } else if head.starts_with(ZSTD) {
        let from = zstd::stream::read::Decoder::with_buffer(pieces(input))?;
        Box::new(Unpacked { name: "zstd", from })
    } else {
        Box::new(input)
    };
    let (head, mut input) = begin(input)?;
    if let Some((_, what)) = OTHERS.iter().find(|(start, _)| head.starts_with(start)) {
        return Err(io::Error::new(io::ErrorKind::InvalidData, *what));
    }
    let mark = head.starts_with(MARK);
    if mark {
        input.read_exact(&mut [0; MARK.len()])?;
    }
    Ok((Box::new(input), mark))
}

/// The first bytes, and all of them again.
fn begin(mut input: Box<dyn Read>) -> io::Result<(Vec<u8>, Box<dyn Read>)> {
    let mut head = Vec::new();
    (&mut input).take(6).read_to_end(&mut head)?;
    let again = Cursor::new(head.clone()).chain(input);
    Ok((head, Box::new(again)))
}

/// Whether bytes that begin so are compressed in a form that is read.
pub fn is_packed(start: &[u8]) -> bool {
    start.starts_with(GZIP) || start.starts_with(ZSTD)
}

/// Whether an error of reading is of what was read, not of the system.
pub fn is_bad_input(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::InvalidData
}

/// Tells damage of compressed bytes from failures of the file below.
struct Unpacked<R> {
    name: &'static str,
    from: R,
}

impl<R: Read> Read for Unpacked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.from.read(buffer).map_err(|error| {
            if error.raw_os_error().is_some() {
                return error;
            }
            let what = format!("the {} data is damaged or cut off: {error}", self.name);
            io::Error::new(io::ErrorKind::InvalidData, what)
        })
    }
}
