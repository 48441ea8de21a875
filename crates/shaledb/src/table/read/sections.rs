//! Reads the sections of a table file other than its data.

use crate::base::error::{Error, Result};
use crate::fs::ReadFile;
use crate::table::format::compress::{DICTIONARY_BYTES_MAX, Dictionary};
use crate::table::format::{self, FOOTER_BYTES, FRAME_BYTES, Footer, Handle};
use std::sync::Arc;

/// Reads and checks the footer.
pub fn read_footer(file: &dyn ReadFile, file_bytes: u64) -> Result<Footer> {
    let Some(offset) = file_bytes.checked_sub(FOOTER_BYTES as u64) else {
        return Err(Error::corruption(file.path(), 0, "the file is too short for a table"));
    };
    let mut bytes = [0; FOOTER_BYTES];
    file.read_at(offset, &mut bytes)?;
    Footer::decode(&bytes, file_bytes).map_err(|what| Error::corruption(file.path(), offset, what))
}

/// Reads and decodes a section; no bytes if it is absent. The footer has been checked against the
/// file's length, so what is allocated is no more than there is.
pub fn read_section(file: &dyn ReadFile, handle: Handle) -> Result<Vec<u8>> {
    let mut raw = Vec::new();
    if handle.bytes > 0 {
        let mut bytes = vec![0; handle.bytes as usize];
        file.read_at(handle.offset, &mut bytes)?;
        format::decode_frame(&bytes, &mut raw)
            .map_err(|what| Error::corruption(file.path(), handle.offset, what))?;
    }
    Ok(raw)
}

/// Reads the table's dictionary and makes it ready, if there is one.
pub fn read_dictionary(file: &dyn ReadFile, footer: &Footer) -> Result<Option<Arc<Dictionary>>> {
    let handle = footer.dictionary;
    if handle.bytes == 0 {
        return Ok(None);
    }
    let corrupt = |what| Error::corruption(file.path(), handle.offset, what);
    if handle.bytes as usize > DICTIONARY_BYTES_MAX + FRAME_BYTES {
        return Err(corrupt("a dictionary is too long"));
    }
    let mut bytes = vec![0; handle.bytes as usize];
    file.read_at(handle.offset, &mut bytes)?;
    let dictionary = format::open_dictionary_frame(&bytes).map_err(corrupt)?;
    Ok(Some(Arc::new(dictionary)))
}
