//! The tables of the TPC-C pattern: their columns, secondary indexes and foreign keys, and the
//! conditions that their rows keep.

use crate::settings::Form;
use crate::store::MariaDb;
use mysql::prelude::Queryable;
use shaledb_lab::stores::engine::Result;
use shaledb_lab::workloads::tpcc::rows::Table;

/// The secondary indexes: of a table, a name, the columns, and those of the primary key (none of
/// `history`, which has no such key).
const INDEXES: [(Table, &str, &str, &str); 6] = [
    (Table::Customer, "customer_name", "c_w_id, c_d_id, c_last, c_first", "c_w_id, c_d_id, c_id"),
    (Table::Orders, "orders_customer", "o_w_id, o_d_id, o_c_id, o_id", "o_w_id, o_d_id, o_id"),
    (Table::Stock, "stock_item", "s_i_id", "s_w_id, s_i_id"),
    (
        Table::OrderLine,
        "order_line_stock",
        "ol_supply_w_id, ol_i_id",
        "ol_w_id, ol_d_id, ol_o_id, ol_number",
    ),
    (Table::History, "history_customer", "h_c_w_id, h_c_d_id, h_c_id", ""),
    (Table::History, "history_district", "h_w_id, h_d_id", ""),
];

/// The foreign keys: of a table, the columns, and what they name.
const FOREIGN_KEYS: [(Table, &str, Table, &str); 10] = [
    (Table::Stock, "s_w_id", Table::Warehouse, "w_id"),
    (Table::Stock, "s_i_id", Table::Item, "i_id"),
    (Table::District, "d_w_id", Table::Warehouse, "w_id"),
    (Table::Customer, "c_w_id, c_d_id", Table::District, "d_w_id, d_id"),
    (Table::History, "h_c_w_id, h_c_d_id, h_c_id", Table::Customer, "c_w_id, c_d_id, c_id"),
    (Table::History, "h_w_id, h_d_id", Table::District, "d_w_id, d_id"),
    (Table::Orders, "o_w_id, o_d_id, o_c_id", Table::Customer, "c_w_id, c_d_id, c_id"),
    (Table::NewOrder, "no_w_id, no_d_id, no_o_id", Table::Orders, "o_w_id, o_d_id, o_id"),
    (Table::OrderLine, "ol_w_id, ol_d_id, ol_o_id", Table::Orders, "o_w_id, o_d_id, o_id"),
    (Table::OrderLine, "ol_supply_w_id, ol_i_id", Table::Stock, "s_w_id, s_i_id"),
];

/// All columns of an index with the primary key's, for a look whether it agrees with its table.
pub(crate) fn index_columns(table: &str, index: &str) -> Option<String> {
    let is_it = |&&(of, name, ..): &&(Table, &str, &str, &str)| of.name() == table && name == index;
    let (_, _, columns, primary) = INDEXES.iter().find(is_it)?;
    let comma = if primary.is_empty() { "" } else { ", " };
    Some(format!("{columns}{comma}{primary}"))
}

/// Places have the same columns, behind a letter.
fn place(letter: char) -> String {
    format!(
        "{letter}_name varchar(10) NOT NULL, {letter}_street_1 varchar(20) NOT NULL, \
         {letter}_street_2 varchar(20) NOT NULL, {letter}_city varchar(20) NOT NULL, \
         {letter}_state char(2) NOT NULL, {letter}_zip char(9) NOT NULL, \
         {letter}_tax decimal(4,4) NOT NULL, {letter}_ytd decimal(12,2) NOT NULL"
    )
}

/// The columns of a table and its primary key.
fn columns(table: Table) -> String {
    match table {
        Table::Item => "i_id int unsigned NOT NULL, i_im_id int unsigned NOT NULL, \
             i_name varchar(24) NOT NULL, i_price decimal(5,2) NOT NULL, \
             i_data varchar(50) NOT NULL, PRIMARY KEY (i_id)"
            .to_owned(),
        Table::Warehouse => {
            format!("w_id smallint unsigned NOT NULL, {}, PRIMARY KEY (w_id)", place('w'))
        }
        Table::Stock => {
            let district = |number: u32| format!("s_dist_{number:02} char(24) NOT NULL, ");
            let districts: String = (1..=10).map(district).collect();
            format!(
                "s_i_id int unsigned NOT NULL, s_w_id smallint unsigned NOT NULL, \
                 s_quantity smallint NOT NULL, {districts}s_ytd decimal(8,0) NOT NULL, \
                 s_order_cnt int unsigned NOT NULL, s_remote_cnt int unsigned NOT NULL, \
                 s_data varchar(50) NOT NULL, PRIMARY KEY (s_w_id, s_i_id)"
            )
        }
        Table::District => format!(
            "d_id tinyint unsigned NOT NULL, d_w_id smallint unsigned NOT NULL, {}, \
             d_next_o_id int unsigned NOT NULL, PRIMARY KEY (d_w_id, d_id)",
            place('d')
        ),
        Table::Customer => "c_id int unsigned NOT NULL, c_d_id tinyint unsigned NOT NULL, \
             c_w_id smallint unsigned NOT NULL, c_first varchar(16) NOT NULL, \
             c_middle char(2) NOT NULL, c_last varchar(16) NOT NULL, \
             c_street_1 varchar(20) NOT NULL, c_street_2 varchar(20) NOT NULL, \
             c_city varchar(20) NOT NULL, c_state char(2) NOT NULL, c_zip char(9) NOT NULL, \
             c_phone char(16) NOT NULL, c_since datetime NOT NULL, c_credit char(2) NOT NULL, \
             c_credit_lim decimal(12,2) NOT NULL, c_discount decimal(4,4) NOT NULL, \
             c_balance decimal(12,2) NOT NULL, c_ytd_payment decimal(12,2) NOT NULL, \
             c_payment_cnt int unsigned NOT NULL, c_delivery_cnt int unsigned NOT NULL, \
             c_data varchar(500) NOT NULL, PRIMARY KEY (c_w_id, c_d_id, c_id)"
            .to_owned(),
        Table::History => "h_c_id int unsigned NOT NULL, h_c_d_id tinyint unsigned NOT NULL, \
             h_c_w_id smallint unsigned NOT NULL, h_d_id tinyint unsigned NOT NULL, \
             h_w_id smallint unsigned NOT NULL, h_date datetime NOT NULL, \
             h_amount decimal(6,2) NOT NULL, h_data varchar(24) NOT NULL"
            .to_owned(),
        Table::Orders => "o_id int unsigned NOT NULL, o_d_id tinyint unsigned NOT NULL, \
             o_w_id smallint unsigned NOT NULL, o_c_id int unsigned NOT NULL, \
             o_entry_d datetime NOT NULL, o_carrier_id tinyint unsigned, \
             o_ol_cnt tinyint unsigned NOT NULL, o_all_local tinyint unsigned NOT NULL, \
             PRIMARY KEY (o_w_id, o_d_id, o_id)"
            .to_owned(),
        Table::NewOrder => "no_o_id int unsigned NOT NULL, no_d_id tinyint unsigned NOT NULL, \
             no_w_id smallint unsigned NOT NULL, PRIMARY KEY (no_w_id, no_d_id, no_o_id)"
            .to_owned(),
        Table::OrderLine => "ol_o_id int unsigned NOT NULL, ol_d_id tinyint unsigned NOT NULL, \
             ol_w_id smallint unsigned NOT NULL, ol_number tinyint unsigned NOT NULL, \
             ol_i_id int unsigned NOT NULL, ol_supply_w_id smallint unsigned NOT NULL, \
             ol_delivery_d datetime, ol_quantity tinyint unsigned NOT NULL, \
             ol_amount decimal(6,2) NOT NULL, ol_dist_info char(24) NOT NULL, \
             PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number)"
            .to_owned(),
    }
}

fn create(form: Form, table: Table, foreign_keys: bool) -> String {
    let of = |other: Table| other == table;
    let mut text = format!("CREATE TABLE {} ({}", table.name(), columns(table));
    for (_, name, columns, _) in INDEXES.iter().filter(|index| of(index.0)) {
        text.push_str(&format!(", KEY {name} ({columns})"));
    }
    for (_, columns, parent, key) in FOREIGN_KEYS.iter().filter(|key| foreign_keys && of(key.0)) {
        let parent = parent.name();
        text.push_str(&format!(", FOREIGN KEY ({columns}) REFERENCES {parent} ({key})"));
    }
    text.push_str(&format!(") {}", form.table()));
    text
}

impl MariaDb {
    /// Makes the tables in place of any that are there.
    pub(crate) fn create_nine(&self, foreign_keys: bool) -> Result<()> {
        if foreign_keys && self.form == Form::Myrocks {
            return Err(
                "myrocks has no foreign keys: run `shale bench tpcc` with --foreign-keys off"
                    .into(),
            );
        }
        // Those that name others go first.
        let names: Vec<&str> = Table::ALL.iter().rev().map(|table| table.name()).collect();
        self.admin().query_drop(format!("DROP TABLE IF EXISTS {}", names.join(", ")))?;
        self.wait_for_dropped_tables()?;
        for table in Table::ALL {
            self.admin().query_drop(create(self.form, table, foreign_keys))?;
        }
        Ok(())
    }

    /// Looks at all conditions; how many there are.
    pub(crate) fn check_conditions(&self) -> Result<u64> {
        let mut broken = Vec::new();
        for (name, query) in CONDITIONS {
            let count = self.ask(query).map_err(|error| format!("condition {name}: {error}"))?;
            if count > 0 {
                broken.push(format!("{name} does not hold in {count} cases"));
            }
        }
        match broken.is_empty() {
            true => Ok(CONDITIONS.len() as u64),
            false => Err(format!(
                "conditions of consistency (3.3.2 of TPC-C) are broken: {}",
                broken.join("; ")
            )
            .into()),
        }
    }
}

/// The standard's conditions of consistency, by its numbers, each with a query that counts where it
/// does not hold. 11 holds after the load only.
const CONDITIONS: [(&str, &str); 11] = [
    (
        "1 (w_ytd = sum of d_ytd)",
        "SELECT COUNT(*) FROM warehouse LEFT JOIN \
         (SELECT d_w_id, SUM(d_ytd) AS paid FROM district GROUP BY d_w_id) AS d ON d_w_id = w_id \
         WHERE NOT (w_ytd <=> paid)",
    ),
    (
        "2 (d_next_o_id - 1 = greatest o_id = greatest no_o_id)",
        "SELECT COUNT(*) FROM district \
         LEFT JOIN (SELECT o_w_id, o_d_id, MAX(o_id) AS last FROM orders \
                    GROUP BY o_w_id, o_d_id) AS o ON o_w_id = d_w_id AND o_d_id = d_id \
         LEFT JOIN (SELECT no_w_id, no_d_id, MAX(no_o_id) AS last_new FROM new_order \
                    GROUP BY no_w_id, no_d_id) AS n ON no_w_id = d_w_id AND no_d_id = d_id \
         WHERE NOT (d_next_o_id - 1 <=> last) OR d_next_o_id - 1 <> last_new",
    ),
    (
        "3 (no_o_id has no gaps)",
        "SELECT COUNT(*) FROM (SELECT MAX(no_o_id) - MIN(no_o_id) + 1 AS span, COUNT(*) AS count \
         FROM new_order GROUP BY no_w_id, no_d_id) AS n WHERE span <> count",
    ),
    (
        "4 (sum of o_ol_cnt = number of order lines)",
        "SELECT COUNT(*) FROM district \
         LEFT JOIN (SELECT o_w_id, o_d_id, SUM(o_ol_cnt) AS told FROM orders \
                    GROUP BY o_w_id, o_d_id) AS o ON o_w_id = d_w_id AND o_d_id = d_id \
         LEFT JOIN (SELECT ol_w_id, ol_d_id, COUNT(*) AS found FROM order_line \
                    GROUP BY ol_w_id, ol_d_id) AS l ON ol_w_id = d_w_id AND ol_d_id = d_id \
         WHERE NOT (told <=> found)",
    ),
    (
        "5 (an order without a carrier is in new_order, and no other)",
        "SELECT (SELECT COUNT(*) FROM orders LEFT JOIN new_order \
         ON no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id \
         WHERE (o_carrier_id IS NULL) <> (no_o_id IS NOT NULL)) + \
         (SELECT COUNT(*) FROM new_order LEFT JOIN orders \
         ON no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id WHERE o_id IS NULL)",
    ),
    (
        "6 (o_ol_cnt = number of the order's lines)",
        "SELECT COUNT(*) FROM orders WHERE o_ol_cnt <> (SELECT COUNT(*) FROM order_line \
         WHERE ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id)",
    ),
    (
        "7 (a line has a time of delivery if its order has a carrier)",
        "SELECT COUNT(*) FROM order_line LEFT JOIN orders \
         ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id \
         WHERE o_id IS NULL OR (ol_delivery_d IS NULL) <> (o_carrier_id IS NULL)",
    ),
    (
        "8 (w_ytd = sum of h_amount)",
        "SELECT COUNT(*) FROM warehouse LEFT JOIN \
         (SELECT h_w_id, SUM(h_amount) AS paid FROM history GROUP BY h_w_id) AS h \
         ON h_w_id = w_id WHERE NOT (w_ytd <=> paid)",
    ),
    (
        "9 (d_ytd = sum of h_amount)",
        "SELECT COUNT(*) FROM district LEFT JOIN \
         (SELECT h_w_id, h_d_id, SUM(h_amount) AS paid FROM history GROUP BY h_w_id, h_d_id) AS h \
         ON h_w_id = d_w_id AND h_d_id = d_id WHERE NOT (d_ytd <=> paid)",
    ),
    (
        "10 (c_balance = sum of delivered ol_amount - sum of h_amount)",
        "SELECT COUNT(*) FROM customer WHERE c_balance <> \
         (SELECT COALESCE(SUM(ol_amount), 0) FROM orders JOIN order_line \
         ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id \
         WHERE o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id \
         AND ol_delivery_d IS NOT NULL) - \
         (SELECT COALESCE(SUM(h_amount), 0) FROM history \
         WHERE h_c_w_id = c_w_id AND h_c_d_id = c_d_id AND h_c_id = c_id)",
    ),
    (
        "12 (c_balance + c_ytd_payment = sum of delivered ol_amount)",
        "SELECT COUNT(*) FROM customer WHERE c_balance + c_ytd_payment <> \
         (SELECT COALESCE(SUM(ol_amount), 0) FROM orders JOIN order_line \
         ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id \
         WHERE o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id \
         AND ol_delivery_d IS NOT NULL)",
    ),
];
