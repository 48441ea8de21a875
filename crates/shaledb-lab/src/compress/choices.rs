//! Whether the choices of codecs are several to an engine.

use crate::options::CodecNames;
use crate::setup::Setup;

/// Refuses an engine to which several of the choices would be the same.
pub(super) fn are_different(
    engine: &str,
    choices: &[CodecNames],
    setup: &Setup,
) -> Result<(), String> {
    let is_ignored = |codecs: &&CodecNames| {
        Setup { codecs: (*codecs).clone(), ..setup.clone() }.codecs_are_ignored(engine)
    };
    let mut same = choices.iter().filter(is_ignored);
    match (same.next(), same.next()) {
        (Some(one), Some(other)) => Err(format!(
            "--engines: {one} and {other} make no difference to `{engine}`. Leave it out, or name \
             at most one such choice"
        )),
        _ => Ok(()),
    }
}
