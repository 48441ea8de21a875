//! Ctrl-C and SIGTERM.

use crate::exit::{Exit, Failure, Outcome};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A flag that is set when the user wants to stop. The first signal sets it; the second one ends
/// the process at once.
pub(crate) fn stop_flag() -> Outcome<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // In this order: a signal finds the flag as the one before it left it.
        signal_hook::flag::register_conditional_shutdown(signal, 130, flag.clone())
            .and_then(|_| signal_hook::flag::register(signal, flag.clone()))
            .map_err(|error| {
                Failure::new(Exit::Other, format!("could not catch Ctrl-C and SIGTERM: {error}"))
            })?;
    }
    Ok(flag)
}
