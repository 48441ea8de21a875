use super::*;

const M: u64 = 1 << 20;

#[test]
fn memtables_and_tables_become_smaller_under_a_limit() {
    for (limit, memtable, table) in [
        (0, 64 * M, 64 * M),
        (100_000 * M, 64 * M, 64 * M),
        (1280 * M, 10 * M, 5 * M),
        (2 * M, 64 << 10, 64 << 10),
    ] {
        assert_eq!(memtable_bytes(limit, 64 * M), memtable, "{limit}");
        assert_eq!(table_bytes(limit, 64 * M), table, "{limit}");
    }
    assert_eq!(memtable_bytes(1280 * M, M), M, "what is smaller stays");
}

#[test]
fn most_of_a_limit_is_for_data() {
    for (bytes, most_held) in [(2 * M, 0.4), (8 * M, 0.13), (128 * M, 0.09), (100_000 * M, 0.09)] {
        let (memtable, table) = (memtable_bytes(bytes, 64 * M), table_bytes(bytes, 64 * M));
        let Limit { held, .. } = limit(bytes, memtable, table);
        let share = (held.merges + held.deletes + held.files) as f64 / bytes as f64;
        assert!(share <= most_held, "{bytes}: {share}");
        assert!(held.merges >= (4 * memtable).min(bytes / 4) && held.deletes >= memtable);
    }
    assert_eq!(limit(0, M, M), Limit::default());
}

/// A limit of 1,024 MiB, of which so many bytes are left for users.
fn left(room: u64) -> Balance {
    let limit = limit(1024 * M, 8 * M, 4 * M);
    let held = limit.held.merges + limit.held.deletes + limit.held.files;
    Balance { limit, used: 1024 * M - held - room, ..Balance::default() }
}

#[test]
fn the_state_follows_what_is_left() {
    for (room, expected) in [
        (500 * M, SpaceState::Free),
        (32 * M, SpaceState::Free),
        (32 * M - 1, SpaceState::Compacting),
        (16 * M, SpaceState::Compacting),
        (16 * M - 1, SpaceState::Slowed),
        (1, SpaceState::Slowed),
        (0, SpaceState::Full),
    ] {
        let balance = left(room);
        assert_eq!(balance.for_users(), room);
        assert_eq!(state(&balance), expected, "{room}");
        assert_eq!(missing(&balance), ((16 * M).saturating_sub(room), 16 * M));
    }
    let none = Balance { used: u64::MAX / 2, ..Balance::default() };
    assert_eq!((state(&none), missing(&none)), (SpaceState::Free, (0, 0)));
}

#[test]
fn a_merge_and_deletes_have_room_when_puts_have_none() {
    let full = left(0);
    assert_eq!(full.for_users(), 0);
    assert_eq!(full.for_deletes(), full.limit.held.deletes);
    assert!(full.for_merges() >= full.limit.held.merges);
    assert!(full.for_engine() >= full.limit.held.files);
}

#[test]
fn a_commit_costs_its_log_and_its_table() {
    let (all, tables) = cost(1000, 10);
    assert!(tables >= 1000 + 10 * 10 && all >= tables + 1000);
    assert_eq!(old_log_bytes(1024 * M, 8 * M), 32 * M);
    assert_eq!(old_log_bytes(1024 * M, M), 8 * M);
    assert_eq!(old_log_bytes(2 * M, 64 << 10), 64 << 10, "a memtable's log in any case");
}
