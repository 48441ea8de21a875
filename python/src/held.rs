//! Handles of the engine in Python's objects.

use pyo3::prelude::*;
use std::ops::{Deref, DerefMut};

/// A handle that is dropped without the interpreter's lock. The last one of a database closes it,
/// which takes as long as its threads and the disk do, and other threads of Python go on meanwhile.
pub(crate) struct Held<T: Send>(Option<T>);

impl<T: Send> Held<T> {
    pub(crate) fn new(handle: T) -> Held<T> {
        Held(Some(handle))
    }
}

/// It is there until it is dropped.
const THERE: &str = "a handle is used before it is dropped";

impl<T: Send> Deref for Held<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_ref().expect(THERE)
    }
}

impl<T: Send> DerefMut for Held<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_mut().expect(THERE)
    }
}

impl<T: Send> Drop for Held<T> {
    fn drop(&mut self) {
        let mut handle = self.0.take();
        // There is no interpreter to attach to while it shuts down.
        Python::try_attach(|py| py.detach(|| drop(handle.take())));
    }
}
