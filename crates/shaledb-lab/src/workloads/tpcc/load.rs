//! The load step. Client k of n loads every n-th warehouse from the k-th; the first one loads the
//! items before. Each table comes in the order of its primary key, a thousand rows to a commit.
//! Which rows there are depends on the seed and on the scale.

use super::chance::{Uneven, between, data, digits, last_name, letters, names};
use super::rows::{Rows, Table};
use super::scale::{DISTRICTS, Scale};
use super::store::TpccSession;
use crate::generate::Random;
use crate::run::pace::{Client, Did, Pace};
use crate::stores::engine::Result;

/// The kinds of operation of the step: a batch of rows of a table, by the order of
/// [`Table::ALL`].
pub const KINDS: [&str; 9] = [
    "item",
    "warehouse",
    "stock",
    "district",
    "customer",
    "history",
    "orders",
    "new_order",
    "order_line",
];

/// Rows to a commit.
const ROWS_PER_COMMIT: usize = 1000;

/// What each customer has paid when the load is done, hundredths.
const PAID: i64 = 1000;

/// A client of the load step.
pub struct Loader<T> {
    /// Where rows go.
    pub session: T,
    /// Whether it loads the items.
    pub items: bool,
    /// The warehouses that it loads.
    pub warehouses: Vec<u32>,
    /// How many rows there are.
    pub scale: Scale,
    /// The constants of uneven numbers.
    pub uneven: Uneven,
    /// The seed of the run.
    pub seed: u64,
}

/// Rows of a table on their way.
struct Batch<'l, 'p, 'b, T> {
    session: &'l mut T,
    pace: &'l mut Pace<'p>,
    rows: &'b mut Rows,
}

impl<T: TpccSession> Batch<'_, '_, '_, T> {
    /// Adds a row by `fill`, and loads the batch if it is full. False if the step is over.
    fn add(&mut self, fill: impl FnOnce(&mut Rows)) -> Result<bool> {
        fill(self.rows);
        if self.rows.len() < ROWS_PER_COMMIT { Ok(true) } else { self.end() }
    }

    /// Loads what is left.
    fn end(&mut self) -> Result<bool> {
        if self.rows.is_empty() {
            return Ok(true);
        }
        if !self.pace.begin() {
            return Ok(false);
        }
        self.session.load(self.rows)?;
        let (table, count) = (self.rows.table(), self.rows.len() as u64);
        let kind = Table::ALL.iter().position(|other| *other == table).unwrap_or_default();
        self.pace.end_group(kind, count, Did::added(count * table.stored_bytes()));
        self.rows.clear();
        Ok(true)
    }
}

impl<T: TpccSession> Client for Loader<T> {
    fn run(&mut self, pace: &mut Pace<'_>) -> Result<()> {
        if self.items && !self.load_items(pace)? {
            return Ok(());
        }
        for warehouse in self.warehouses.clone() {
            if !self.load_warehouse(warehouse, pace)? {
                return Ok(());
            }
        }
        Ok(())
    }
}

fn address(random: &mut Random, rows: &mut Rows) {
    for _ in 0..3 {
        rows.text(|to| letters(random, 10..=20, to));
    }
    rows.text(|to| letters(random, 2..=2, to));
    rows.text(|to| {
        digits(random, 4, to);
        to.extend(b"11111");
    });
}

impl<T: TpccSession> Loader<T> {
    fn random(&self, table: Table, warehouse: u32) -> Random {
        Random::named(self.seed, &format!("tpcc load {}", table.name()), warehouse.into())
    }

    fn load_items(&mut self, pace: &mut Pace<'_>) -> Result<bool> {
        let random = &mut self.random(Table::Item, 0);
        let mut rows = Rows::new(Table::Item);
        let mut batch = Batch { session: &mut self.session, pace, rows: &mut rows };
        for item in 1..=self.scale.items {
            let more = batch.add(|rows| {
                rows.number(item).number(between(random, 1..=10_000));
                rows.text(|to| letters(random, 14..=24, to));
                rows.decimal(between(random, 100..=10_000).into(), 2);
                rows.text(|to| data(random, to));
            })?;
            if !more {
                return Ok(false);
            }
        }
        batch.end()
    }

    /// False if the step is over before all is loaded.
    fn load_warehouse(&mut self, warehouse: u32, pace: &mut Pace<'_>) -> Result<bool> {
        Ok(self.load_places(warehouse, pace)?
            && self.load_stock(warehouse, pace)?
            && self.load_customers(warehouse, pace)?
            && self.load_orders(warehouse, pace)?)
    }

    /// The warehouse and its districts.
    fn load_places(&mut self, warehouse: u32, pace: &mut Pace<'_>) -> Result<bool> {
        let random = &mut self.random(Table::Warehouse, warehouse);
        let paid = PAID * i64::from(self.scale.customers);
        let mut rows = Rows::new(Table::Warehouse);
        rows.number(warehouse).text(|to| letters(random, 6..=10, to));
        address(random, &mut rows);
        rows.decimal(between(random, 0..=2000).into(), 4);
        rows.decimal(paid * i64::from(DISTRICTS), 2);
        if !(Batch { session: &mut self.session, pace: &mut *pace, rows: &mut rows }).end()? {
            return Ok(false);
        }
        let mut rows = Rows::new(Table::District);
        for district in 1..=DISTRICTS {
            rows.number(district).number(warehouse).text(|to| letters(random, 6..=10, to));
            address(random, &mut rows);
            rows.decimal(between(random, 0..=2000).into(), 4).decimal(paid, 2);
            rows.number(self.scale.customers + 1);
        }
        Batch { session: &mut self.session, pace, rows: &mut rows }.end()
    }

    fn load_stock(&mut self, warehouse: u32, pace: &mut Pace<'_>) -> Result<bool> {
        let random = &mut self.random(Table::Stock, warehouse);
        let mut rows = Rows::new(Table::Stock);
        let mut batch = Batch { session: &mut self.session, pace, rows: &mut rows };
        for item in 1..=self.scale.items {
            let more = batch.add(|rows| {
                rows.number(item).number(warehouse).number(between(random, 10..=100));
                for _ in 0..DISTRICTS {
                    rows.text(|to| letters(random, 24..=24, to));
                }
                rows.decimal(0, 0).number(0).number(0).text(|to| data(random, to));
            })?;
            if !more {
                return Ok(false);
            }
        }
        batch.end()
    }

    /// The customers and the payment that each has made.
    fn load_customers(&mut self, warehouse: u32, pace: &mut Pace<'_>) -> Result<bool> {
        let random = &mut self.random(Table::Customer, warehouse);
        let (scale, loaded_name) = (self.scale, self.uneven.loaded_name);
        let mut rows = Rows::new(Table::Customer);
        let mut batch = Batch { session: &mut self.session, pace: &mut *pace, rows: &mut rows };
        for (district, customer) in each(scale) {
            let more = batch.add(|rows| {
                let name = match customer <= names(&scale) {
                    true => customer - 1,
                    false => Uneven::name(loaded_name, random, &scale),
                };
                rows.number(customer).number(district).number(warehouse);
                rows.text(|to| letters(random, 8..=16, to)).text(|to| to.extend(b"OE"));
                rows.text(|to| to.extend(last_name(name).bytes()));
                address(random, rows);
                rows.text(|to| digits(random, 16, to)).now();
                let credit: &[u8] = if random.below(10) == 0 { b"BC" } else { b"GC" };
                rows.text(|to| to.extend(credit)).decimal(5_000_000, 2);
                rows.decimal(between(random, 0..=5000).into(), 4);
                rows.decimal(-PAID, 2).decimal(PAID, 2).number(1).number(0);
                rows.text(|to| letters(random, 300..=500, to));
            })?;
            if !more {
                return Ok(false);
            }
        }
        if !batch.end()? {
            return Ok(false);
        }
        let random = &mut self.random(Table::History, warehouse);
        let mut rows = Rows::new(Table::History);
        let mut batch = Batch { session: &mut self.session, pace, rows: &mut rows };
        for (district, customer) in each(scale) {
            let more = batch.add(|rows| {
                rows.number(customer).number(district).number(warehouse);
                rows.number(district).number(warehouse).now().decimal(PAID, 2);
                rows.text(|to| letters(random, 12..=24, to));
            })?;
            if !more {
                return Ok(false);
            }
        }
        batch.end()
    }

    /// An order of each customer, in an order of chance, its lines, and which are not delivered.
    fn load_orders(&mut self, warehouse: u32, pace: &mut Pace<'_>) -> Result<bool> {
        let scale = self.scale;
        let counts = &mut self.random(Table::Orders, warehouse);
        let random = &mut self.random(Table::OrderLine, warehouse);
        let (mut orders, mut undelivered) = (Rows::new(Table::Orders), Rows::new(Table::NewOrder));
        let mut lines = Rows::new(Table::OrderLine);
        for district in 1..=DISTRICTS {
            let customers = shuffled(counts, scale.customers);
            for (customer, order) in customers.into_iter().zip(1..) {
                let is_delivered = order <= scale.delivered();
                let count = between(counts, 5..=15);
                let carrier = between(counts, 1..=10);
                orders.number(order).number(district).number(warehouse).number(customer).now();
                match is_delivered {
                    true => orders.number(carrier),
                    false => orders.null(),
                };
                orders.number(count).number(1);
                if !is_delivered {
                    undelivered.number(order).number(district).number(warehouse);
                }
                for line in 1..=count {
                    let item = between(random, 1..=scale.items);
                    let amount = between(random, 1..=999_999).into();
                    lines.number(order).number(district).number(warehouse).number(line);
                    lines.number(item).number(warehouse);
                    match is_delivered {
                        true => lines.now().number(5).decimal(0, 2),
                        false => lines.null().number(5).decimal(amount, 2),
                    };
                    lines.text(|to| letters(random, 24..=24, to));
                }
                // Rows that others name come first.
                if lines.len() >= ROWS_PER_COMMIT || order == scale.customers {
                    for rows in [&mut orders, &mut undelivered, &mut lines] {
                        let session = &mut self.session;
                        if !(Batch { session, pace: &mut *pace, rows }).end()? {
                            return Ok(false);
                        }
                    }
                }
            }
        }
        Ok(true)
    }
}

/// Each customer of each district.
fn each(scale: Scale) -> impl Iterator<Item = (u32, u32)> {
    (1..=DISTRICTS)
        .flat_map(move |district| (1..=scale.customers).map(move |customer| (district, customer)))
}

/// The numbers from 1 to `count` in an order of chance.
fn shuffled(random: &mut Random, count: u32) -> Vec<u32> {
    let mut all: Vec<u32> = (1..=count).collect();
    random.shuffle(&mut all);
    all
}
