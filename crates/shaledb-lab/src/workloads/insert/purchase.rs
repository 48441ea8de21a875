//! A row of `purchases`.

/// A row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Purchase<'a> {
    /// `transactionid`, the primary key, from 1.
    pub id: u64,
    /// `dateandtime`, in seconds since 1970.
    pub time: u64,
    /// `cashregisterid`.
    pub register: u32,
    /// `customerid`.
    pub customer: u32,
    /// `productid`.
    pub product: u32,
    /// `price`, in hundredths.
    pub price: u32,
    /// `data`: random bytes, then one character again and again.
    pub data: &'a [u8],
}

impl Purchase<'_> {
    /// Bytes of the columns, as they are counted as written by the user.
    pub fn bytes(&self) -> u64 {
        COLUMN_BYTES + self.data.len() as u64
    }
}

/// The bytes of all columns but `data`.
pub const COLUMN_BYTES: u64 = 8 + 8 + 4 * 4;
