//! Whether the stores find room on their disk.

use super::plan::Plan;
use crate::measure::free_bytes;
use crate::stores::engine::Result;
use crate::units::bytes;
use std::path::Path;

/// Whether there is enough of it, in words.
pub(super) enum Room {
    Enough(String),
    Short(String),
}

impl Room {
    pub(super) fn text(&self) -> &str {
        let (Room::Enough(text) | Room::Short(text)) = self;
        text
    }
}

/// Whether the stores find room, and how much they want.
pub(super) fn room(plan: &Plan) -> Result<Room> {
    let wanted = plan.disk_bytes();
    // The folder itself is made later, by whom it is removed at the end.
    let there = plan.stores.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("."));
    let text = format!("the stores need up to {} in {}", bytes(wanted), plan.stores.display());
    Ok(match free_bytes(there) {
        Some(free) if free < wanted => {
            Room::Short(format!("{text}, which has {} free", bytes(free)))
        }
        Some(free) => Room::Enough(format!("{text} ({} free)", bytes(free))),
        None => Room::Enough(text),
    })
}
