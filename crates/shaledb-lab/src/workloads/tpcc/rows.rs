//! The nine tables: their columns, the sizes of their rows, and rows to be loaded.

/// A table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// What can be ordered.
    Item,
    /// A place with ten districts.
    Warehouse,
    /// How much of each item a warehouse has.
    Stock,
    /// A part of a warehouse's customers, who have a row of orders of their own.
    District,
    /// Who orders and pays.
    Customer,
    /// Payments.
    History,
    /// Orders.
    Orders,
    /// Orders that are not delivered.
    NewOrder,
    /// Items of an order.
    OrderLine,
}

impl Table {
    /// All tables, each after those that its foreign keys name.
    pub const ALL: [Table; 9] = [
        Table::Item,
        Table::Warehouse,
        Table::Stock,
        Table::District,
        Table::Customer,
        Table::History,
        Table::Orders,
        Table::NewOrder,
        Table::OrderLine,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Table::Item => "item",
            Table::Warehouse => "warehouse",
            Table::Stock => "stock",
            Table::District => "district",
            Table::Customer => "customer",
            Table::History => "history",
            Table::Orders => "orders",
            Table::NewOrder => "new_order",
            Table::OrderLine => "order_line",
        }
    }

    /// Its columns with commas between, in the order in which rows are loaded.
    pub fn columns(self) -> &'static str {
        match self {
            Table::Item => "i_id, i_im_id, i_name, i_price, i_data",
            Table::Warehouse => {
                "w_id, w_name, w_street_1, w_street_2, w_city, w_state, w_zip, w_tax, w_ytd"
            }
            Table::Stock => {
                "s_i_id, s_w_id, s_quantity, s_dist_01, s_dist_02, s_dist_03, s_dist_04, \
                 s_dist_05, s_dist_06, s_dist_07, s_dist_08, s_dist_09, s_dist_10, s_ytd, \
                 s_order_cnt, s_remote_cnt, s_data"
            }
            Table::District => {
                "d_id, d_w_id, d_name, d_street_1, d_street_2, d_city, d_state, d_zip, d_tax, \
                 d_ytd, d_next_o_id"
            }
            Table::Customer => {
                "c_id, c_d_id, c_w_id, c_first, c_middle, c_last, c_street_1, c_street_2, \
                 c_city, c_state, c_zip, c_phone, c_since, c_credit, c_credit_lim, c_discount, \
                 c_balance, c_ytd_payment, c_payment_cnt, c_delivery_cnt, c_data"
            }
            Table::History => {
                "h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data"
            }
            Table::Orders => {
                "o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_carrier_id, o_ol_cnt, o_all_local"
            }
            Table::NewOrder => "no_o_id, no_d_id, no_w_id",
            Table::OrderLine => {
                "ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_delivery_d, \
                 ol_quantity, ol_amount, ol_dist_info"
            }
        }
    }

    /// The mean bytes of a row's columns: texts as long as they are, a number 4, an amount, a rate
    /// or a time 8.
    pub fn row_bytes(self) -> u64 {
        match self {
            Table::Item => 4 + 4 + 19 + 8 + 38,
            Table::Warehouse => 4 + 8 + 3 * 15 + 2 + 9 + 8 + 8,
            Table::Stock => 3 * 4 + 10 * 24 + 8 + 2 * 4 + 38,
            Table::District => 2 * 4 + 8 + 3 * 15 + 2 + 9 + 8 + 8 + 4,
            Table::Customer => {
                3 * 4 + 12 + 2 + 12 + 3 * 15 + 2 + 9 + 16 + 8 + 2 + 4 * 8 + 2 * 4 + 400
            }
            Table::History => 5 * 4 + 8 + 8 + 18,
            // Seven of ten loaded orders have a carrier, and their lines a time of delivery.
            Table::Orders => 6 * 4 + 8 + 3,
            Table::NewOrder => 3 * 4,
            Table::OrderLine => 7 * 4 + 6 + 8 + 24,
        }
    }

    /// The mean bytes of the columns of a row's entries in secondary indexes, with those of the
    /// primary key.
    pub fn entry_bytes(self) -> u64 {
        match self {
            Table::Stock => 2 * 4,
            Table::Customer => 3 * 4 + 12 + 12,
            // Its rows have no primary key: the server's own has six bytes.
            Table::History => (3 * 4 + 6) + (2 * 4 + 6),
            Table::Orders => 4 * 4,
            Table::OrderLine => 6 * 4,
            Table::Item | Table::Warehouse | Table::District | Table::NewOrder => 0,
        }
    }

    /// Both.
    pub fn stored_bytes(self) -> u64 {
        self.row_bytes() + self.entry_bytes()
    }
}

/// A value of a row that is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell<'a> {
    /// A whole number.
    Number(u32),
    /// A number of tenths, hundredths and so on: how many, and how many digits are behind the
    /// point.
    Decimal(i64, usize),
    /// Letters, digits and other printable characters, without quotes and backslashes.
    Text(&'a [u8]),
    /// The time.
    Now,
    /// Nothing.
    Null,
}

#[derive(Clone, Copy, Debug)]
enum Stored {
    Number(u32),
    Decimal(i64, usize),
    /// Up to where it goes in the memory of all texts.
    Text(usize),
    Now,
    Null,
}

/// Rows of one table to be loaded at once, whose texts lie in one piece of memory that is used
/// again.
#[derive(Clone, Debug)]
pub struct Rows {
    table: Table,
    /// How many there are in a row.
    columns: usize,
    cells: Vec<Stored>,
    texts: Vec<u8>,
}

impl Rows {
    /// No rows.
    pub fn new(table: Table) -> Rows {
        let columns = table.columns().split(", ").count();
        Rows { table, columns, cells: Vec::new(), texts: Vec::new() }
    }

    /// Whose rows they are.
    pub fn table(&self) -> Table {
        self.table
    }

    /// Adds a value, as do the functions below; all columns of a row come before the next row.
    pub fn number(&mut self, number: u32) -> &mut Rows {
        self.cells.push(Stored::Number(number));
        self
    }

    /// See [`Cell::Decimal`].
    pub fn decimal(&mut self, count: i64, digits: usize) -> &mut Rows {
        self.cells.push(Stored::Decimal(count, digits));
        self
    }

    /// A text that `append` adds to what is there.
    pub fn text(&mut self, append: impl FnOnce(&mut Vec<u8>)) -> &mut Rows {
        append(&mut self.texts);
        self.cells.push(Stored::Text(self.texts.len()));
        self
    }

    /// See [`Cell::Now`].
    pub fn now(&mut self) -> &mut Rows {
        self.cells.push(Stored::Now);
        self
    }

    /// See [`Cell::Null`].
    pub fn null(&mut self) -> &mut Rows {
        self.cells.push(Stored::Null);
        self
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        debug_assert_eq!(self.cells.len() % self.columns, 0, "a row is not whole");
        self.cells.len() / self.columns
    }

    /// How many values a row has.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// Takes all rows out and keeps the memory.
    pub fn clear(&mut self) {
        self.cells.clear();
        self.texts.clear();
    }

    /// All values, row by row.
    pub fn cells(&self) -> impl Iterator<Item = Cell<'_>> {
        let mut from = 0;
        self.cells.iter().map(move |cell| match *cell {
            Stored::Number(number) => Cell::Number(number),
            Stored::Decimal(count, digits) => Cell::Decimal(count, digits),
            Stored::Text(end) => Cell::Text(&self.texts[std::mem::replace(&mut from, end)..end]),
            Stored::Now => Cell::Now,
            Stored::Null => Cell::Null,
        })
    }
}
