use super::reference::CHUNK_BYTES;
use super::*;
use crate::fs::Fs;
use crate::fs::mem::MemFs;
use crate::table::testing::{DIR, World};
use std::io::Read;
use std::path::{Path, PathBuf};

fn value(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 7 + at / 251) as u8).collect()
}

fn write(fs: &MemFs, value: &[u8], part: usize) -> (PathBuf, BlobRef) {
    let path = Path::new(DIR).join("000009.blob");
    let mut writer = BlobWriter::new(fs.create(&path).unwrap(), 9).unwrap();
    for mut part in value.chunks(part) {
        let foreseen = writer.grows_by(part.len() as u64);
        assert!(foreseen >= part.len() as u64);
        writer.append(&mut part).unwrap();
        assert!(part.is_empty());
    }
    (path, writer.finish().unwrap())
}

#[test]
fn values_round_trip() {
    let world = World::new(8 << 20);
    for length in [0, 1, 9, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES] {
        for part in [1000, CHUNK_BYTES, 1 << 20] {
            let value = value(length);
            let (path, reference) = write(&world.fs, &value, part);
            assert_eq!(reference, BlobRef { file: 9, bytes: length as u64 });
            let file_bytes = world.fs.content(&path).unwrap().len() as u64;
            assert_eq!(reference.file_bytes(), file_bytes);
            let blob = Blob::new(9, path, &world.shared);
            assert_eq!(blob.reader(reference).unwrap().read_all().unwrap(), value);
            assert_eq!(blob.reader(reference).unwrap().verify().unwrap(), length as u64);
            let mut read = Vec::new();
            let mut reader = blob.reader(reference).unwrap();
            assert_eq!(reader.len(), length as u64);
            reader.read_to_end(&mut read).unwrap();
            assert_eq!(read, value);
        }
    }
}

#[test]
fn every_flipped_byte_is_found() {
    let world = World::new(8 << 20);
    let (path, reference) = write(&world.fs, &value(CHUNK_BYTES + 100), 5000);
    let blob = Blob::new(9, path.clone(), &world.shared);
    let check = || blob.reader(reference)?.verify();
    let ends = (0..200).chain(CHUNK_BYTES as u64 - 100..reference.file_bytes());
    for at in ends.chain((200..CHUNK_BYTES as u64).step_by(997)) {
        assert!(world.fs.corrupt(&path, at, 0x20));
        assert!(check().is_err_and(|error| error.is_corruption()), "{at}");
        assert!(world.fs.corrupt(&path, at, 0x20));
    }
    check().unwrap();
    for wrong in [reference.bytes - 1, reference.bytes + 1, u64::MAX] {
        let wrong = BlobRef { bytes: wrong, ..reference };
        assert!(blob.reader(wrong).unwrap_err().is_corruption());
    }
}

#[test]
fn references_round_trip() {
    let reference = BlobRef { file: 12345, bytes: 1 << 32 };
    let bytes = reference.encode();
    assert_eq!(BlobRef::decode(&bytes), Some(reference));
    assert_eq!(BlobRef::decode(&bytes[..bytes.len() - 1]), None);
    assert_eq!(BlobRef::decode(b""), None);
}

#[test]
fn an_obsolete_blob_goes_with_its_last_reader() {
    let world = World::new(8 << 20);
    let (path, reference) = write(&world.fs, &value(100), 100);
    let blob = Blob::new(9, path.clone(), &world.shared);
    let mut reader = blob.reader(reference).unwrap();
    blob.mark_obsolete();
    drop(blob);
    assert!(world.fs.exists(&path).unwrap());
    assert_eq!(reader.read_all().unwrap(), value(100));
    drop(reader);
    assert!(!world.fs.exists(&path).unwrap());
}
