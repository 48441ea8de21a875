//! JSON: an object in each line, or one array of objects.
//!
//! A row's value is its text as it stands, so nothing of it can change. Of numbers in a key the
//! text is taken too: a number has more digits than any type of a program.

use super::buffer::Buffer;
use super::key::Joined;
use super::options::Options;
use super::record::{Problem, Record};
use crate::text::from_hex;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;
use std::io::Read;

pub(super) struct Json {
    text: Buffer,
    shape: Shape,
    take: Take,
}

#[derive(Clone, Copy, PartialEq)]
enum Shape {
    Lines,
    /// Inside an array, before its first element.
    ArrayStart,
    /// Inside an array, after an element.
    Array,
    /// After an array.
    End,
}

/// What of an object is the key and the value.
enum Take {
    /// `key` or `key_hex`, and `value` or `value_hex`, as `shale scan --json` prints them.
    Pair,
    Fields {
        key: Box<KeyFields>,
        value: Option<Vec<String>>,
    },
}

/// The fields of objects that make their keys.
pub struct KeyFields {
    parts: Vec<(Vec<String>, Kinds)>,
    joined: Joined,
}

/// Which kinds of values one part of the keys has had: text and others that look alike must not
/// both be there.
#[derive(Clone, Copy, Default)]
struct Kinds {
    rows: Kind,
    /// With the row that is looked at: one that is refused, and may be skipped, says nothing of
    /// those after it.
    with_this: Kind,
}

#[derive(Clone, Copy, Default)]
struct Kind {
    /// A number, or true or false.
    plain: bool,
    /// A string that could be one of these.
    alike: bool,
}

impl Json {
    pub(super) fn new(input: Box<dyn Read>, options: &Options) -> Result<Json, Problem> {
        let take = match options.key.len() {
            0 if options.value.is_some() => {
                let what = "--value needs --key, which names the fields of the key";
                return Err(Problem::Options(what.to_owned()));
            }
            0 => Take::Pair,
            _ => Take::Fields {
                key: Box::new(
                    KeyFields::new(&options.key, &options.separator).map_err(Problem::Options)?,
                ),
                value: options.value.as_deref().map(path),
            },
        };
        let mut text = Buffer::new(input, options.row_bytes_max);
        let shape = match skip_space(&mut text)? {
            Some(b'[') => {
                text.pass(1);
                Shape::ArrayStart
            }
            _ => Shape::Lines,
        };
        Ok(Json { text, shape, take })
    }

    /// Reads the next row; gives its line.
    pub(super) fn next(&mut self, record: &mut Record) -> Result<Option<u64>, Problem> {
        if self.shape == Shape::Lines {
            loop {
                let Some((line, text, _)) = self.text.next_line()? else { return Ok(None) };
                let text = trimmed(text);
                if text.is_empty() {
                    continue;
                }
                let taken = self.take.take(text, record);
                return taken.map(|()| Some(line)).map_err(|bad| Problem::Row(line, bad.what()));
            }
        }
        self.element(record)
    }

    /// The next element of an array.
    fn element(&mut self, record: &mut Record) -> Result<Option<u64>, Problem> {
        let first = skip_space(&mut self.text)?;
        let line = self.text.line();
        let rest = |what: &str| Err(Problem::Rest(line, what.to_owned()));
        match (self.shape, first) {
            (Shape::End, None) => return Ok(None),
            (Shape::End, Some(_)) => {
                return rest(
                    "there is text after the end of the array. A file may hold one array only",
                );
            }
            (_, None) => return rest("the file ends inside the array: a `]` is missing"),
            (_, Some(b']')) => {
                self.text.pass(1);
                self.shape = Shape::End;
                return self.element(record);
            }
            (Shape::Array, Some(b',')) => {
                self.text.pass(1);
                skip_space(&mut self.text)?;
            }
            (Shape::Array, Some(_)) => return rest("a `,` or a `]` is missing after an element"),
            _ => {}
        }
        self.shape = Shape::Array;
        let line = self.text.line();
        let length = element_bytes(&mut self.text)?;
        match self.take.take(trimmed(self.text.pass(length)), record) {
            Ok(()) => Ok(Some(line)),
            Err(Bad::Row(what)) => Err(Problem::Row(line, what)),
            // Where the element ends is not sure.
            Err(Bad::Json(what)) => {
                Err(Problem::Rest(line, format!("this is not valid JSON: {what}")))
            }
        }
    }
}

/// Passes over white space and gives the byte after it.
fn skip_space(text: &mut Buffer) -> Result<Option<u8>, Problem> {
    loop {
        let window = text.window();
        let space = window.iter().take_while(|byte| is_space(**byte)).count();
        let next = window.get(space).copied();
        text.pass(space);
        if next.is_some() || !text.more()? {
            return Ok(next);
        }
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

fn trimmed(text: &[u8]) -> &[u8] {
    let start = text.iter().take_while(|byte| is_space(**byte)).count();
    let end = text.iter().rev().take_while(|byte| is_space(**byte)).count();
    &text[start..text.len().saturating_sub(end).max(start)]
}

/// How many bytes the element has that begins the window: up to a `,` or `]` outside of it.
fn element_bytes(text: &mut Buffer) -> Result<usize, Problem> {
    let (mut at, mut depth, mut in_string) = (0, 0u64, false);
    loop {
        let window = text.window();
        while let Some(&byte) = window.get(at) {
            if in_string {
                let Some(found) = memchr::memchr2(b'"', b'\\', &window[at..]) else {
                    at = window.len();
                    break;
                };
                at += found;
                if window[at] == b'"' {
                    in_string = false;
                } else if at + 1 == window.len() {
                    break;
                } else {
                    at += 1;
                }
                at += 1;
                continue;
            }
            match byte {
                b'"' => in_string = true,
                b'{' | b'[' => depth += 1,
                b',' | b']' if depth == 0 => {
                    text.check(at)?;
                    return Ok(at);
                }
                b'}' | b']' => depth = depth.saturating_sub(1),
                _ => {}
            }
            at += 1;
        }
        if !text.more()? {
            return Ok(text.window().len());
        }
    }
}

/// Why an object gives no pair.
enum Bad {
    Json(String),
    Row(String),
}

impl Bad {
    fn what(self) -> String {
        match self {
            Bad::Json(what) => format!("this is not valid JSON: {what}"),
            Bad::Row(what) => what,
        }
    }
}

impl From<String> for Bad {
    fn from(what: String) -> Bad {
        Bad::Row(what)
    }
}

impl Take {
    fn take(&mut self, text: &[u8], record: &mut Record) -> Result<(), Bad> {
        let object = Members::parse(text).map_err(|error| Bad::Json(reason(text, &error)))?;
        let (key, value) = match self {
            Take::Pair => return Ok(pair(&object, record)?),
            Take::Fields { key, value } => (key, value),
        };
        key.key_of(&object, &mut record.key)?;
        match value {
            Some(path) => {
                let name = path.join(".");
                put_text(object.field(path)?, &name, &mut record.value)?;
            }
            None => record.value.extend(text),
        }
        key.accept();
        Ok(())
    }
}

fn path(name: &str) -> Vec<String> {
    name.split('.').map(str::to_owned).collect()
}

impl KeyFields {
    /// Keys of these fields; a name with dots in it is a path.
    pub fn new(names: &[String], separator: &str) -> Result<KeyFields, String> {
        let parts = names.iter().map(|name| (path(name), Kinds::default())).collect();
        Ok(KeyFields { parts, joined: Joined::new(separator, names.len())? })
    }

    /// The row of the last key is taken.
    pub fn accept(&mut self) {
        self.parts.iter_mut().for_each(|(_, kinds)| kinds.rows = kinds.with_this);
    }

    /// Appends the key of an object.
    pub fn key_of(&mut self, object: &Members<'_>, out: &mut Vec<u8>) -> Result<(), String> {
        for (number, (path, kinds)) in self.parts.iter_mut().enumerate() {
            let name = path.join(".");
            let part = object.field(path)?;
            self.joined.add(out, number, &name, |out| kinds.add(part, &name, out))?;
        }
        Ok(())
    }
}

/// What is wrong; the place of it if it is not the whole.
fn reason(text: &[u8], error: &serde_json::Error) -> String {
    let what = error.to_string();
    if memchr::memchr(b'\r', text).is_some() && memchr::memchr(b'\n', text).is_none() {
        return format!("{what} (the line has a CR alone in it; lines end with LF or CR LF)");
    }
    what
}

impl Kinds {
    /// Appends a part of a key.
    fn add(&mut self, part: &RawValue, name: &str, out: &mut Vec<u8>) -> Result<(), String> {
        let raw = part.get();
        let start = out.len();
        let Kind { mut plain, mut alike } = self.rows;
        match raw.as_bytes().first() {
            Some(b'"') => {
                put_text(part, name, out)?;
                alike |= is_plain(&out[start..]);
            }
            Some(b'{' | b'[') => {
                return Err(format!(
                    "`{name}` is {raw:.40}. A part of a key must be a string, a number, true or \
                     false"
                ));
            }
            Some(b'n') => return Err(format!("`{name}` is null, so the row has no key")),
            _ => {
                out.extend(raw.as_bytes());
                plain = true;
            }
        }
        if plain && alike {
            return Err(format!(
                "`{name}` is {raw} here and of another type in other rows. The string \"1\" and \
                 the number 1 would be one key. Make all of them strings, or all of them numbers"
            ));
        }
        self.with_this = Kind { plain, alike };
        Ok(())
    }
}

/// Whether text could be a number, or true or false.
fn is_plain(text: &[u8]) -> bool {
    match text.first() {
        Some(b'0'..=b'9' | b'-') => serde_json::from_slice::<&RawValue>(text)
            .is_ok_and(|value| value.get().len() == text.len()),
        _ => matches!(text, b"true" | b"false"),
    }
}

/// A string as its text, anything else as JSON.
fn put_text(value: &RawValue, name: &str, out: &mut Vec<u8>) -> Result<(), String> {
    if value.get() == "null" {
        return Err(format!("`{name}` is null, so there is no value to store"));
    }
    out.extend(text_of(value).map_err(|what| format!("`{name}`: {what}"))?.as_bytes());
    Ok(())
}

/// The text of a string; of anything else the JSON.
pub fn text_of(value: &RawValue) -> Result<Cow<'_, str>, String> {
    let raw = value.get();
    match raw.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        None => Ok(Cow::Borrowed(raw)),
        Some(text) if !text.contains('\\') => Ok(Cow::Borrowed(text)),
        Some(_) => serde_json::from_str::<String>(raw)
            .map(Cow::Owned)
            .map_err(|error| format!("the string cannot be text: {error}")),
    }
}

/// The pair that an object as `shale scan --json` prints it says.
fn pair(object: &Members<'_>, record: &mut Record) -> Result<(), String> {
    let known = ["key", "key_hex", "value", "value_hex"];
    if let Some((name, _)) = object.0.iter().find(|(name, _)| !known.contains(&name.0.as_ref())) {
        return Err(format!(
            "there is a field `{}` beside key and value, which would be lost. Name the fields of \
             the key with --key to store the whole object as the value",
            name.0
        ));
    }
    bytes_of(object, "key", &mut record.key)?;
    bytes_of(object, "value", &mut record.value)
}

fn bytes_of(object: &Members<'_>, name: &str, out: &mut Vec<u8>) -> Result<(), String> {
    let hex = format!("{name}_hex");
    match (object.member(name)?, object.member(&hex)?) {
        (Some(value), None) => {
            if !value.get().starts_with('"') && name == "key" {
                return Err(format!(
                    "`{name}` is not a string. Name the fields of the key with --key"
                ));
            }
            put_text(value, name, out)
        }
        (None, Some(digits)) => {
            *out = from_hex(&text_of(digits)?)?;
            Ok(())
        }
        (Some(_), Some(_)) => Err(format!("there are both `{name}` and `{hex}`. Keep one of them")),
        (None, None) => Err(format!(
            "there is no field `{name}` or `{hex}`. Name the fields of the key with --key"
        )),
    }
}

/// The members of an object in their order, their values as they stand.
pub struct Members<'a>(pub Vec<(Name<'a>, &'a RawValue)>);

/// The name of a member.
pub struct Name<'a>(pub Cow<'a, str>);

impl<'a> Members<'a> {
    /// Reads an object; all of it is checked.
    pub fn parse(text: &'a [u8]) -> Result<Members<'a>, serde_json::Error> {
        serde_json::from_slice(text)
    }

    /// The member of this name. Two of them are refused, since one would be lost.
    pub fn member(&self, name: &str) -> Result<Option<&'a RawValue>, String> {
        let mut found = self.0.iter().filter(|(other, _)| other.0 == name).map(|(_, value)| *value);
        let first = found.next();
        match found.next() {
            Some(_) => Err(format!("there are two fields `{name}`, so one would be lost")),
            None => Ok(first),
        }
    }

    /// The field at a path. A field whose name has dots in it comes before a path.
    fn field(&self, path: &[String]) -> Result<&'a RawValue, String> {
        let whole = path.join(".");
        let none = || format!("there is no field `{whole}`");
        if let Some(value) = self.member(&whole)? {
            return Ok(value);
        }
        let (first, rest) = path.split_first().ok_or_else(none)?;
        let mut value = self.member(first)?.ok_or_else(none)?;
        for name in rest {
            let inner = Members::parse(value.get().as_bytes()).map_err(|_| none())?;
            value = inner.member(name)?.ok_or_else(none)?;
        }
        Ok(value)
    }
}

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Members<'de>, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object, {...}")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::with_capacity(8);
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        from.deserialize_map(Object)
    }
}

impl<'de> Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Name<'de>, D::Error> {
        struct Text;
        impl<'de> Visitor<'de> for Text {
            type Value = Name<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }

            fn visit_borrowed_str<E: serde::de::Error>(
                self,
                text: &'de str,
            ) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Borrowed(text)))
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Owned(text.to_owned())))
            }

            fn visit_bytes<E: serde::de::Error>(self, _: &[u8]) -> Result<Name<'de>, E> {
                Err(E::custom("a name is not UTF-8"))
            }
        }
        from.deserialize_str(Text)
    }
}
