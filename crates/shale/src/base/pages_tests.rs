use super::*;

#[test]
fn mappings_are_aligned_zero_and_of_whole_pages() {
    for (bytes, align) in [(1, 1), (5000, 4096), (100_000, 1 << 16), (2 << 20, 2 << 20)] {
        let pages = Pages::map(bytes, align);
        assert!(pages.bytes() >= bytes && pages.bytes() < bytes + (1 << 16));
        pages.ask_huge();
        let mut parts = pages.split(bytes);
        assert_eq!(parts.len(), 1.max(bytes.next_multiple_of(4096) / bytes).min(parts.len()));
        let part = &mut parts[0];
        assert_eq!(part.as_ptr().addr() % align, 0);
        assert!(part.iter().all(|&byte| byte == 0));
        part.fill(1);
    }
}

#[test]
fn a_mapping_given_up_can_be_taken_over() {
    let (start, bytes) = Pages::map(10_000, 4096).into_raw();
    // SAFETY: just given up, and used here only.
    let pages = unsafe { Pages::from_raw(start, bytes) };
    assert_eq!(pages.split(bytes).len(), 1);
}

#[test]
fn parts_do_not_overlap_and_outlive_each_other() {
    let mut parts = Pages::map(100_000, 1).split(7000);
    assert!(parts.len() >= 14);
    for (number, part) in parts.iter_mut().enumerate() {
        part.fill(number as u8);
    }
    let kept = parts.swap_remove(3);
    drop(parts);
    assert!(kept.len() == 7000 && kept.iter().all(|&byte| byte == 3));
}

#[test]
fn pages_given_back_are_zeros_and_of_use() {
    let mut parts = Pages::map(1 << 16, 4096).split(1 << 14);
    for part in &mut parts {
        part.fill(7);
    }
    parts[1].give_back();
    if cfg!(all(target_os = "linux", not(miri))) {
        assert!(parts[1].iter().all(|&byte| byte == 0));
    }
    assert!(parts[0].iter().chain(&parts[2][..]).all(|&byte| byte == 7));
    parts[1].fill(8);
    assert!(parts[1].iter().all(|&byte| byte == 8));
}

#[test]
fn buffers_change_their_length() {
    let buffer = Buffer::from(vec![1, 2, 3]);
    assert_eq!(&buffer[..], [1, 2, 3]);
    let buffer = buffer.resized(2);
    assert_eq!(&buffer[..], [1, 2]);
    let buffer = buffer.resized(100);
    assert!(buffer.len() == 100 && buffer.capacity() == 100);
    let part = Pages::map(4096, 1).split(1000).remove(0);
    let part = part.resized(10);
    assert!(part.len() == 10 && part.capacity() == 1000);
    assert_eq!(part.resized(5000).len(), 5000);
    let large = Buffer::from(vec![1; 10]).resized(MAP_BYTES_MIN + 1);
    assert!(large.pages.is_some() && large.len() == MAP_BYTES_MIN + 1);
    let more = large.resized(MAP_BYTES_MIN + 100);
    assert_eq!(more.capacity(), MAP_BYTES_MIN / 2 * 3);
    assert!(more.resized(2 * MAP_BYTES_MIN).capacity() == 2 * MAP_BYTES_MIN);
    let mut nothing = Buffer::default();
    nothing.give_back();
    assert_eq!((nothing.len(), nothing.capacity()), (0, 0));
}
