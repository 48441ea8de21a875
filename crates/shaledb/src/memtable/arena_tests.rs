use super::*;

#[test]
fn an_empty_arena_takes_nothing_and_chunks_grow() {
    let arena = Arena::new();
    assert_eq!((arena.bytes(), arena.used_bytes()), (0, 0));
    arena.allocate(10);
    assert_eq!(arena.bytes(), CHUNK_BYTES_MIN);
    assert_eq!(arena.used_bytes(), size_of::<ChunkHeader>() + 16);
    let wanted = if cfg!(miri) { 64 * 1024 } else { 8 * CHUNK_BYTES_MAX };
    let mut used = 16;
    while used < wanted {
        arena.allocate(64);
        used += 64;
    }
    let waste = arena.bytes() - used;
    assert!(waste < CHUNK_BYTES_MAX + 1024 && waste < used + 4096, "waste {waste} of {used}");
    assert!(arena.used_bytes() >= used && arena.used_bytes() <= used + 64 * 1024);
}

#[test]
fn a_large_request_gets_a_chunk_of_its_own() {
    let arena = Arena::new();
    arena.allocate(8);
    let before = (arena.bytes(), arena.used_bytes());
    let large = 3 * CHUNK_BYTES_MAX / 8 * 8;
    arena.allocate(large);
    let added = large + size_of::<ChunkHeader>();
    assert_eq!(arena.bytes() - before.0, added);
    assert_eq!(arena.used_bytes() - before.1, added);
    // The small chunk is still in use.
    arena.allocate(8);
    assert_eq!(arena.bytes() - before.0, added);
}

#[test]
fn an_arena_of_one_chunk_is_reset() {
    let mut arena = Arena::new();
    assert!(arena.reset() && arena.bytes() == 0);
    let first = arena.allocate(100);
    while arena.used_bytes() + 512 <= CHUNK_BYTES_MIN {
        arena.allocate(512);
    }
    assert!(arena.reset());
    assert_eq!((arena.bytes(), arena.used_bytes()), (CHUNK_BYTES_MIN, size_of::<ChunkHeader>()));
    assert_eq!(arena.allocate(100), first);
    // With two it stays as it is.
    while arena.bytes() == CHUNK_BYTES_MIN {
        arena.allocate(512);
    }
    let (taken, used) = (arena.bytes(), arena.used_bytes());
    assert!(!arena.reset());
    assert_eq!((arena.bytes(), arena.used_bytes()), (taken, used));
    // So it does with one that is another's size, or was made for one request of that size.
    for bytes in [2 * CHUNK_BYTES_MIN, CHUNK_BYTES_MIN - size_of::<ChunkHeader>()] {
        let mut arena = Arena::new();
        arena.allocate(bytes);
        assert!(!arena.reset());
    }
}

#[test]
fn no_two_requests_share_memory() {
    let arena = Arena::new();
    let rounds = if cfg!(miri) { 50 } else { 2000 };
    let fill = |thread: u8| {
        let mut mine = Vec::new();
        for round in 0..rounds {
            let bytes = 1 + (round * 37 + thread as usize * 11) % 1500;
            let memory = arena.allocate(bytes);
            assert_eq!(memory.as_ptr().addr() % ALIGN, 0);
            // SAFETY: `bytes` bytes at `memory` are ours.
            unsafe { memory.write_bytes(thread, bytes) };
            mine.push((memory.as_ptr().expose_provenance(), bytes));
        }
        mine
    };
    let mut all = Vec::new();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3u8).map(|thread| scope.spawn(move || fill(thread))).collect();
        for thread in threads {
            all.extend(thread.join().unwrap());
        }
    });
    all.sort_unstable();
    assert!(all.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0));
    let total: usize = all.iter().map(|&(_, bytes)| bytes.next_multiple_of(ALIGN)).sum();
    assert!(arena.used_bytes() >= total && arena.used_bytes() <= arena.bytes());
}

#[test]
fn an_arena_that_is_full_has_used_what_it_may_take() {
    let (chunk, small) = (CHUNK_BYTES_MAX as u64, 2 * CHUNK_BYTES_MAX as u64 - 4096);
    let sizes = [64 << 10, 120 << 10, 1 << 20, small - 1, small, 5 << 20, 24 << 20, 64 << 20];
    let sizes = if cfg!(miri) { &sizes[..2] } else { &sizes[..] };
    for &most in sizes {
        let full = full_bytes(most);
        let arena = Arena::new();
        while (arena.used_bytes() as u64) < full {
            let _ = arena.allocate(300);
        }
        let (taken, used) = (arena.bytes() as u64, arena.used_bytes() as u64);
        assert!(used <= most, "{used} of {most}");
        if most < small {
            assert!(used >= most / 100 * 98 && taken < 2 * most, "{used}, {taken} of {most}");
        } else {
            assert!(taken <= most && taken + chunk > most - 4096, "{taken} of {most}");
            assert!(taken - used <= taken / 60, "{used} of {taken}");
        }
        assert!(taken < most + last_chunk_bytes(most), "{taken} of {most}");
    }
}
