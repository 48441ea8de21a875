//! How much there is of everything.

/// Districts of a warehouse.
pub const DISTRICTS: u32 = 10;

/// Items, and rows of stock of each warehouse, at the standard's scale.
const ITEMS: u32 = 100_000;

/// Customers of a district, and orders that are loaded for it, at the standard's scale.
const CUSTOMERS: u32 = 3000;

/// How many rows there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// Warehouses.
    pub warehouses: u32,
    /// Items; each warehouse has stock of all.
    pub items: u32,
    /// Customers of a district, each of whom has one order when the load is done.
    pub customers: u32,
}

impl Scale {
    /// The standard's numbers divided by `shrink`.
    pub fn new(warehouses: u32, shrink: u32) -> Scale {
        Scale { warehouses, items: ITEMS / shrink, customers: CUSTOMERS / shrink }
    }

    /// The loaded orders of a district up to this one are delivered: seven of ten.
    pub fn delivered(&self) -> u32 {
        self.customers / 10 * 7
    }
}
