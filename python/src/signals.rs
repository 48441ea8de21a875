//! Signals, such as that of Ctrl-C, while the engine waits. Python handles them in its main thread
//! alone, and not within a call: so a call there that may take long runs in a thread of its own,
//! and the main thread looks for signals meanwhile.

use crate::error::{raise, run};
use pyo3::prelude::*;
use shaledb::{Interrupt, Result, Transaction};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

/// How often signals are looked for.
const SLICE: Duration = Duration::from_millis(50);

/// Whether this is the thread in which Python handles signals.
fn is_main_thread(py: Python<'_>) -> PyResult<bool> {
    let threading = py.import("threading")?;
    let main = threading.call_method0("main_thread")?.getattr("ident")?;
    main.eq(threading.call_method0("get_ident")?)
}

/// Waits for an answer; the exception of a signal that comes before, if its handler raises one.
fn answer<T: Send>(py: Python<'_>, told: &mut Receiver<Result<T>>) -> PyResult<T> {
    loop {
        let told = &mut *told;
        match py.detach(move || told.recv_timeout(SLICE)) {
            Ok(done) => return done.map_err(raise),
            Err(RecvTimeoutError::Timeout) => py.check_signals()?,
            Err(RecvTimeoutError::Disconnected) => panic!("the engine's call has panicked"),
        }
    }
}

/// Runs what waits for background work. After a signal it goes on without anybody who waits for it.
pub(crate) fn run_long<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> PyResult<T> {
    if !is_main_thread(py)? {
        return run(py, work);
    }
    let (tell, mut told) = sync_channel(1);
    // Nobody may want the answer any more.
    thread::Builder::new()
        .name("shale-python".to_owned())
        .spawn(move || drop(tell.send(work())))?;
    answer(py, &mut told)
}

/// Runs a call that waits for locks. A signal ends the wait.
pub(crate) fn run_waiting<T: Send>(
    py: Python<'_>,
    txn: &mut Transaction,
    call: impl FnOnce(&mut Transaction) -> Result<T> + Send,
) -> PyResult<T> {
    if !is_main_thread(py)? {
        return run(py, || call(txn));
    }
    let interrupt = Interrupt::default();
    txn.set_interrupt(&interrupt);
    let done = thread::scope(|scope| {
        let (tell, mut told) = sync_channel(1);
        let txn = &mut *txn;
        let work = move || drop(tell.send(call(txn)));
        thread::Builder::new().name("shale-python".to_owned()).spawn_scoped(scope, work)?;
        let done = answer(py, &mut told);
        // If there is an answer nobody waits any more.
        interrupt.set(true);
        // The scope waits for the thread, which needs nothing of Python.
        done
    });
    txn.clear_interrupt();
    done
}
