//! Settings by name and text, so that new ones need no new functions.

use crate::error::{Fail, shale_error};
use crate::guard::{give, guard, handle_mut, text};
use crate::quiet::free;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::ffi::c_char;

/// The settings of a database, for shale_open, and of a tree, for shale_tree_open.
#[derive(Debug)]
pub struct shale_config(pub(crate) shaledb::Config);

/// Settings with their defaults.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_config_new(config: *mut *mut shale_config) -> *mut shale_error {
    // SAFETY: writable for a pointer.
    guard(|| unsafe { give(config, "config", shale_config(shaledb::Config::default())) })
}

/// Sets one of them. Names are those of docs/settings.md: `memory_bytes`, `memtable_bytes`,
/// `table_bytes`, `background_threads`, `space_limit`, `sync` (`on_request`, `always`,
/// `every_millis:100`), `create`, and of new trees `tree.block_bytes`, `tree.filter_bits`,
/// `tree.blob_bytes`, `tree.dictionary` (`true`, `false`), `tree.codecs.upper`,
/// `tree.codecs.middle`, `tree.codecs.bottommost` (`auto`, `none`, `lz4`, `zlib:6`, `zstd:3`).
/// Whether those of a database agree with each other is checked by shale_open.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_config_set(
    config: *mut shale_config,
    name: *const c_char,
    value: *const c_char,
) -> *mut shale_error {
    guard(|| {
        // SAFETY: a live handle.
        let config = unsafe { handle_mut(config, "config") }?;
        // SAFETY: texts that end with a zero.
        let (name, value) = unsafe { (text(name, "name")?, text(value, "value")?) };
        let changed = with(&config.0, name, value)?;
        if name.starts_with("tree.") {
            changed.tree.validate()?;
        }
        config.0 = changed;
        Ok(())
    })
}

/// Frees settings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_config_free(config: *mut shale_config) {
    // SAFETY: NULL or a handle that the caller gives back.
    unsafe { free(config) }
}

/// The settings with one of them changed.
fn with<T: Serialize + DeserializeOwned>(config: &T, name: &str, value: &str) -> Result<T, Fail> {
    let broken = |error: serde_json::Error| Fail::Panic(error.to_string());
    let mut all = serde_json::to_value(config).map_err(broken)?;
    let pointer = format!("/{}", name.replace('.', "/"));
    let Some(slot) = all.pointer_mut(&pointer) else {
        let mut names = Vec::new();
        list(&all, "", &mut names);
        return Err(Fail::Config(format!(
            "there is no setting `{name}`; there are {}",
            names.join(", ")
        )));
    };
    *slot = value_of(value);
    serde_json::from_value(all)
        .map_err(|error| Fail::Config(format!("setting `{name}`: `{value}`: {error}")))
}

/// A number or a truth as it is, `name:number` as a choice with a number, the rest as text.
fn value_of(text: &str) -> Value {
    if let Ok(value @ (Value::Number(_) | Value::Bool(_))) = serde_json::from_str(text) {
        return value;
    }
    match text.split_once(':').map(|(name, number)| (name, number.parse::<i64>())) {
        Some((name, Ok(number))) => serde_json::json!({ name: number }),
        _ => Value::String(text.to_owned()),
    }
}

/// The names of all settings.
fn list(value: &Value, path: &str, names: &mut Vec<String>) {
    let Value::Object(fields) = value else { return };
    for (name, value) in fields {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        // A choice with a number is an object too, but none with settings in it.
        if value.is_object() && ["tree", "codecs"].contains(&name.as_str()) {
            list(value, &path, names);
        } else {
            names.push(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_changed_by_name() {
        let mut config = shaledb::Config::default();
        for (name, value) in [
            ("memory_bytes", "67108864"),
            ("create", "false"),
            ("sync", "every_millis:100"),
            ("tree.codecs.bottommost", "zstd:-5"),
            ("tree.codecs.middle", "none"),
            ("tree.codecs.upper", "zlib"),
            ("tree.filter_bits", "12"),
            ("tree.dictionary", "true"),
        ] {
            config = with(&config, name, value).unwrap();
        }
        assert_eq!(config.memory_bytes, 64 << 20);
        assert!(!config.create);
        assert_eq!(config.sync, shaledb::SyncPolicy::EveryMillis(100));
        assert_eq!(config.tree.codecs.bottommost, shaledb::Codec::Zstd(-5));
        assert_eq!(config.tree.codecs.middle, shaledb::Codec::None);
        assert_eq!(config.tree.codecs.upper, shaledb::Codec::Zlib(6));
        config = with(&config, "tree.codecs.upper", "zstd").unwrap();
        assert_eq!(config.tree.codecs.upper, shaledb::Codec::Zstd(3));
        assert_eq!(config.tree.filter_bits, 12);
        assert!(config.tree.dictionary);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let config = shaledb::TreeConfig::default();
        let text = |name, value| match with(&config, name, value) {
            Err(Fail::Config(text)) => text,
            other => panic!("{other:?}"),
        };
        let unknown = text("codec", "lz4");
        assert!(unknown.contains("`codec`") && unknown.contains("codecs.bottommost"), "{unknown}");
        assert!(text("codecs.bottommost", "gzip").contains("gzip"));
        assert!(text("codecs.bottommost", "zstd:20").contains("1 to 19"));
        assert!(text("codecs.bottommost", "3").contains("zstd:3"));
        assert!(text("filter_bits", "many").contains("`filter_bits`"));
        assert!(text("filter_bits", "1000").contains("1000"));
    }
}
