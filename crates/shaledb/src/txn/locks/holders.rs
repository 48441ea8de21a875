//! Who holds the lock of one key.

use super::lock::{Mode, TxnId};

/// Who holds a key, and how.
#[derive(Clone, Copy, Debug)]
pub struct Holder {
    /// The transaction.
    pub owner: TxnId,
    /// How.
    pub mode: Mode,
    /// How earlier calls hold it, which rely on that; `None` if the last one was the first. The
    /// last may hold less than it asked for, but not less than this.
    pub kept: Option<Mode>,
}

/// The holders of a key; mostly one.
#[derive(Debug)]
pub enum Holders {
    /// One.
    One(Holder),
    /// Any number.
    Many(Vec<Holder>),
}

impl Holders {
    /// All of them.
    #[inline]
    pub fn as_slice(&self) -> &[Holder] {
        match self {
            Holders::One(one) => std::slice::from_ref(one),
            Holders::Many(many) => many,
        }
    }

    /// That of a transaction.
    #[inline]
    pub fn of(&mut self, owner: TxnId) -> Option<&mut Holder> {
        let all = match self {
            Holders::One(one) => std::slice::from_mut(one),
            Holders::Many(many) => many.as_mut_slice(),
        };
        all.iter_mut().find(|holder| holder.owner == owner)
    }

    /// One more.
    pub fn add(&mut self, new: Holder) {
        debug_assert!(self.of(new.owner).is_none(), "a transaction holds a key once");
        match self {
            Holders::One(one) => *self = Holders::Many(vec![*one, new]),
            Holders::Many(many) => many.push(new),
        }
    }

    /// Takes a holder out; answers whether nobody is left, or `None` if it held nothing.
    pub fn remove(&mut self, owner: TxnId) -> Option<bool> {
        match self {
            Holders::One(one) => (one.owner == owner).then_some(true),
            Holders::Many(many) => {
                let at = many.iter().position(|holder| holder.owner == owner)?;
                many.swap_remove(at);
                debug_assert!(many.iter().all(|holder| holder.owner != owner));
                Some(many.is_empty())
            }
        }
    }
}
