//! When the allocator gives freed memory back to the system.

/// From so much memory on for the database, what the allocator holds for a while is less than what
/// the bound leaves for it (docs/decisions/0018-memory.md).
const LARGE: u64 = 1 << 30;
/// How long it then holds it, in milliseconds: what blocks that leave the cache have had is taken
/// for those that come, and not given back and asked for again.
const HELD_MILLIS: isize = 10;

/// Has it suit a database with so many bytes of memory.
#[cfg(not(target_env = "msvc"))]
pub(crate) fn suit(memory_bytes: u64) {
    use tikv_jemalloc_ctl::{opt, raw};
    let millis = if memory_bytes >= LARGE { HELD_MILLIS } else { 0 };
    let set = |name: &str| {
        // SAFETY: the names end with a zero, and these settings are of type `ssize_t`.
        unsafe { raw::write(name.as_bytes(), millis) }
    };
    // Without it everything works, only somewhat slower.
    let _ = set("arenas.dirty_decay_ms\0");
    // Not of the one for what is very large, which gives all back at once.
    for arena in 0..opt::narenas::read().unwrap_or(0) {
        let _ = set(&format!("arena.{arena}.dirty_decay_ms\0"));
    }
}

/// Another allocator does as it does.
#[cfg(target_env = "msvc")]
pub(crate) fn suit(_memory_bytes: u64) {}
