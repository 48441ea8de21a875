//! What is measured: the interfaces of engines and stores, and those that are always here.
//!
//! - [`engine`], [`store`]: what a key-value engine, and what any store must do to be measured.
//! - [`null`]: does nothing. [`model`]: an engine in memory.
//! - [`tables`]: rows and secondary indexes over a key-value engine.
//! - [`kv`]: a key-value engine as a store.
//! - [`conformance`]: what every engine must do, as checks that its tests call.
//! - `bucket`: how long bytes wait for a device of a bounded rate. `device`: such a one for Shale.
//! - `shale`: Shale itself behind the engine's interface.

pub mod engine;
pub mod store;
pub mod null;
pub mod model;
pub mod tables;
pub mod kv;
pub mod conformance;
#[cfg(feature = "shale")]
mod bucket;
#[cfg(feature = "shale")]
mod device;
#[cfg(feature = "shale")]
pub mod shale;
