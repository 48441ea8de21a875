//! Keys of several parts: a text between them that no two rows can share by chance.

use memchr::memmem::Finder;

/// Puts the parts of a key together.
pub(super) struct Joined {
    separator: Finder<'static>,
    parts: usize,
}

impl Joined {
    /// Keys of so many parts.
    pub(super) fn new(separator: &str, parts: usize) -> Result<Joined, String> {
        if parts > 1 && separator.is_empty() {
            return Err(
                "--key-separator must not be empty for a key of several parts, because `ab` and \
                 `c` would make the same key as `a` and `bc`"
                    .to_owned(),
            );
        }
        Ok(Joined { separator: Finder::new(separator.as_bytes()).into_owned(), parts })
    }

    /// Appends one part to a key. The parts come in order, the first one is number 0.
    pub(super) fn add(
        &self,
        key: &mut Vec<u8>,
        number: usize,
        name: &str,
        put: impl FnOnce(&mut Vec<u8>) -> Result<(), String>,
    ) -> Result<(), String> {
        let start = key.len();
        put(key)?;
        let end = key.len();
        if number + 1 < self.parts {
            // The part must end where its separator is first seen, or two keys could be alike.
            let separator = self.separator.needle();
            key.extend(separator);
            if self.separator.find(&key[start..]) != Some(end - start) {
                return Err(format!(
                    "`{name}` is `{}`, which has the separator `{}` in it, so two keys could \
                     become one. Choose another separator with --key-separator",
                    shown(&key[start..end]),
                    shown(separator)
                ));
            }
        } else if key.is_empty() {
            return Err(format!("the key is empty, because `{name}` is"));
        }
        Ok(())
    }
}

/// Text for a message.
fn shown(bytes: &[u8]) -> String {
    let cut = &bytes[..bytes.len().min(60)];
    format!("{}{}", crate::text::escaped(cut), if cut.len() < bytes.len() { "..." } else { "" })
}
