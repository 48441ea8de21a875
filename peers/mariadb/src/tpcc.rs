//! The TPC-C pattern in tables: its five transactions, each between `BEGIN` and `COMMIT`, by the
//! statements that the standard's own program has, as text.

use crate::sql::{Insert, Sql, bytes, change, number};
use crate::store::MariaDb;
use mysql::prelude::Queryable;
use mysql::{Conn, Row, Value};
use shaledb_lab::stores::engine::Result;
use shaledb_lab::workloads::tpcc::chance::last_name;
use shaledb_lab::workloads::tpcc::input::{
    Delivery, NewOrder, OrderStatus, Payment, StockLevel, Who,
};
use shaledb_lab::workloads::tpcc::rows::{Cell, Rows};
use shaledb_lab::workloads::tpcc::scale::DISTRICTS;
use shaledb_lab::workloads::tpcc::store::{Done, Tpcc, TpccSession};

/// The most letters of `c_data`.
const DATA_LETTERS: usize = 500;

/// How many of the last orders of a district the look at the stock is about.
const LAST_ORDERS: u64 = 20;

impl Tpcc for MariaDb {
    type Session<'s> = SqlWarehouses<'s>;

    fn create_warehouses(&self, foreign_keys: bool) -> Result<()> {
        self.create_nine(foreign_keys)
    }

    fn warehouse_session(&self) -> Result<SqlWarehouses<'_>> {
        let client = Client { connection: self.connect(false)?, read: 0 };
        Ok(SqlWarehouses { store: self, client, loads: false })
    }

    fn check_warehouses(&self) -> Result<u64> {
        self.check_conditions()
    }
}

/// One client's view of the warehouses.
pub(crate) struct SqlWarehouses<'s> {
    store: &'s MariaDb,
    client: Client,
    /// Whether it was told to load: foreign keys are not looked at then.
    loads: bool,
}

/// A connection, and how many bytes of columns its queries gave.
struct Client {
    connection: Conn,
    read: u64,
}

/// A number of hundredths, as SQL writes it.
fn amount(hundredths: i64) -> String {
    decimal(hundredths, 2)
}

/// A number of parts of ten, a hundred and so on.
fn decimal(count: i64, digits: usize) -> String {
    let sign = if count < 0 { "-" } else { "" };
    let text = format!("{:0width$}", count.unsigned_abs(), width = digits + 1);
    let (whole, rest) = text.split_at(text.len() - digits);
    let point = if digits == 0 { "" } else { "." };
    format!("{sign}{whole}{point}{rest}")
}

/// A column with two digits behind its point, in hundredths.
fn hundredths(row: &Row, column: usize) -> Sql<i64> {
    let text = String::from_utf8_lossy(bytes(row, column));
    let digits: String = text.chars().filter(|&letter| letter != '.').collect();
    digits.parse().map_err(|_| wrong(&format!("`{text}` is no amount with two digits")))
}

/// Rows are not as the benchmark writes them.
fn wrong(why: &str) -> mysql::Error {
    mysql::Error::IoError(std::io::Error::other(why.to_owned()))
}

impl Client {
    /// The rows of a query.
    fn rows(&mut self, query: &str) -> Sql<Vec<Row>> {
        let rows: Vec<Row> = self.connection.query(query)?;
        for row in &rows {
            let length = |at| match row.as_ref(at) {
                Some(Value::Bytes(bytes)) => bytes.len() as u64,
                _ => 0,
            };
            self.read += (0..row.len()).map(length).sum::<u64>();
        }
        Ok(rows)
    }

    /// The row of a query that has one.
    fn row(&mut self, query: &str) -> Sql<Row> {
        self.rows(query)?.pop().ok_or_else(|| wrong(&format!("there is no row for {query}")))
    }

    /// Executes a statement; how many rows it found or inserted.
    fn change(&mut self, statement: &str) -> Sql<u64> {
        Ok(change(&mut self.connection, statement)?.matched)
    }

    /// The same of one that changes one row.
    fn change_one(&mut self, statement: &str) -> Sql<()> {
        match self.change(statement)? {
            1 => Ok(()),
            count => Err(wrong(&format!("{count} rows, not one, were changed by {statement}"))),
        }
    }

    fn undo(&mut self) -> Sql<()> {
        self.change("ROLLBACK").map(|_| ())
    }

    /// The id of a customer who may be known by name only: the one in the middle.
    fn customer(&mut self, warehouse: u32, district: u32, who: Who) -> Sql<u64> {
        let name = match who {
            Who::Id(id) => return Ok(id.into()),
            Who::Name(number) => last_name(number),
        };
        let which = format!("c_w_id = {warehouse} AND c_d_id = {district} AND c_last = '{name}'");
        let count = self.row(&format!("SELECT COUNT(c_id) FROM customer WHERE {which}"))?;
        let rows =
            self.rows(&format!("SELECT c_id FROM customer WHERE {which} ORDER BY c_first"))?;
        let middle = (number(&count, 0) as usize).saturating_sub(1) / 2;
        let row = rows.get(middle).or(rows.last());
        row.map(|row| number(row, 0)).ok_or_else(|| wrong(&format!("there is no customer {name}")))
    }

    /// How many lines were written; 0 if the transaction was rolled back.
    fn new_order(&mut self, order: &NewOrder) -> Sql<u64> {
        let NewOrder { warehouse, district, customer, ref lines } = *order;
        self.change("BEGIN")?;
        self.row(&format!(
            "SELECT c_discount, c_last, c_credit, w_tax FROM customer, warehouse \
             WHERE w_id = {warehouse} AND c_w_id = w_id AND c_d_id = {district} \
             AND c_id = {customer}"
        ))?;
        let row = self.row(&format!(
            "SELECT d_next_o_id, d_tax FROM district \
             WHERE d_w_id = {warehouse} AND d_id = {district} FOR UPDATE"
        ))?;
        let id = number(&row, 0);
        self.change_one(&format!(
            "UPDATE district SET d_next_o_id = {} WHERE d_w_id = {warehouse} AND d_id = {district}",
            id + 1
        ))?;
        let count = lines.len();
        let is_local = u8::from(lines.iter().all(|line| line.supplier == warehouse));
        self.change_one(&format!(
            "INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local) \
             VALUES ({id}, {district}, {warehouse}, {customer}, NOW(), {count}, {is_local})"
        ))?;
        self.change_one(&format!(
            "INSERT INTO new_order (no_o_id, no_d_id, no_w_id) \
             VALUES ({id}, {district}, {warehouse})"
        ))?;
        for at in 0..count {
            if !self.order_line(order, id, at)? {
                self.change("ROLLBACK")?;
                return Ok(0);
            }
        }
        self.change("COMMIT")?;
        Ok(count as u64)
    }

    /// False if there is no such item.
    fn order_line(&mut self, order: &NewOrder, id: u64, at: usize) -> Sql<bool> {
        let NewOrder { warehouse, district, ref lines, .. } = *order;
        let line = lines[at];
        let (item, supplier, wanted) = (line.item, line.supplier, line.quantity);
        let query = format!("SELECT i_price, i_name, i_data FROM item WHERE i_id = {item}");
        let rows = self.rows(&query)?;
        let Some(row) = rows.first() else { return Ok(false) };
        let price = hundredths(row, 0)?;
        let row = self.row(&format!(
            "SELECT s_quantity, s_data, s_dist_{district:02} FROM stock \
             WHERE s_i_id = {item} AND s_w_id = {supplier} FOR UPDATE"
        ))?;
        // What falls below ten is filled up.
        let (there, wanted) = (number(&row, 0), u64::from(wanted));
        let left = if there >= wanted + 10 { there - wanted } else { there + 91 - wanted };
        let remote = u8::from(supplier != warehouse);
        self.change_one(&format!(
            "UPDATE stock SET s_quantity = {left}, s_ytd = s_ytd + {wanted}, \
             s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + {remote} \
             WHERE s_i_id = {item} AND s_w_id = {supplier}"
        ))?;
        let (number, cost) = (at + 1, amount(price * wanted as i64));
        let info = String::from_utf8_lossy(bytes(&row, 2)).into_owned();
        self.change_one(&format!(
            "INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, \
             ol_supply_w_id, ol_quantity, ol_amount, ol_dist_info) VALUES ({id}, {district}, \
             {warehouse}, {number}, {item}, {supplier}, {wanted}, {cost}, '{info}')"
        ))?;
        Ok(true)
    }

    fn payment(&mut self, payment: &Payment) -> Sql<u64> {
        let Payment { warehouse, district, .. } = *payment;
        let paid = amount(payment.amount.into());
        self.change("BEGIN")?;
        self.change_one(&format!(
            "UPDATE warehouse SET w_ytd = w_ytd + {paid} WHERE w_id = {warehouse}"
        ))?;
        let place = self.row(&format!(
            "SELECT w_name, w_street_1, w_street_2, w_city, w_state, w_zip FROM warehouse \
             WHERE w_id = {warehouse}"
        ))?;
        let which = format!("d_w_id = {warehouse} AND d_id = {district}");
        self.change_one(&format!("UPDATE district SET d_ytd = d_ytd + {paid} WHERE {which}"))?;
        let part = self.row(&format!(
            "SELECT d_name, d_street_1, d_street_2, d_city, d_state, d_zip FROM district \
             WHERE {which}"
        ))?;
        let (of_warehouse, of_district) = (payment.customer_warehouse, payment.customer_district);
        let customer = self.customer(of_warehouse, of_district, payment.who)?;
        self.pay(payment, customer)?;
        let [place, part] =
            [&place, &part].map(|row| String::from_utf8_lossy(bytes(row, 0)).into_owned());
        self.change_one(&format!(
            "INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, \
             h_data) VALUES ({customer}, {of_district}, {of_warehouse}, {district}, {warehouse}, \
             NOW(), {paid}, '{place}    {part}')"
        ))?;
        self.change("COMMIT")?;
        Ok(1)
    }

    /// What a payment changes of its customer.
    fn pay(&mut self, payment: &Payment, customer: u64) -> Sql<()> {
        let Payment { warehouse, district, .. } = *payment;
        let (of_warehouse, of_district) = (payment.customer_warehouse, payment.customer_district);
        let which =
            format!("c_w_id = {of_warehouse} AND c_d_id = {of_district} AND c_id = {customer}");
        let row = self.row(&format!(
            "SELECT c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, \
             c_phone, c_credit, c_credit_lim, c_discount, c_balance, c_ytd_payment, c_since \
             FROM customer WHERE {which} FOR UPDATE"
        ))?;
        let balance = amount(hundredths(&row, 12)? - i64::from(payment.amount));
        let paid = amount(hundredths(&row, 13)? + i64::from(payment.amount));
        let mut more = String::new();
        if bytes(&row, 9) == b"BC" {
            let old = self.row(&format!("SELECT c_data FROM customer WHERE {which}"))?;
            let mut data = format!(
                "{customer} {of_district} {of_warehouse} {district} {warehouse} {} | {}",
                amount(payment.amount.into()),
                String::from_utf8_lossy(bytes(&old, 0))
            );
            data.truncate(DATA_LETTERS);
            more = format!(", c_data = '{data}'");
        }
        self.change_one(&format!(
            "UPDATE customer SET c_balance = {balance}, c_ytd_payment = {paid}, \
             c_payment_cnt = c_payment_cnt + 1{more} WHERE {which}"
        ))
    }

    /// The lines of the customer's last order.
    fn order_status(&mut self, asked: &OrderStatus) -> Sql<u64> {
        let OrderStatus { warehouse, district, who } = *asked;
        self.change("BEGIN")?;
        let customer = self.customer(warehouse, district, who)?;
        self.row(&format!(
            "SELECT c_balance, c_first, c_middle, c_last FROM customer \
             WHERE c_w_id = {warehouse} AND c_d_id = {district} AND c_id = {customer}"
        ))?;
        let row = self.row(&format!(
            "SELECT o_id, o_carrier_id, o_entry_d FROM orders \
             WHERE o_w_id = {warehouse} AND o_d_id = {district} AND o_c_id = {customer} \
             ORDER BY o_id DESC LIMIT 1"
        ))?;
        let lines = self.rows(&format!(
            "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d \
             FROM order_line WHERE ol_w_id = {warehouse} AND ol_d_id = {district} \
             AND ol_o_id = {}",
            number(&row, 0)
        ))?;
        self.change("COMMIT")?;
        Ok(lines.len() as u64)
    }

    /// How many orders were delivered.
    fn delivery(&mut self, delivery: &Delivery) -> Sql<u64> {
        let Delivery { warehouse, carrier } = *delivery;
        let mut delivered = 0;
        self.change("BEGIN")?;
        for district in 1..=DISTRICTS {
            let rows = self.rows(&format!(
                "SELECT no_o_id FROM new_order WHERE no_w_id = {warehouse} \
                 AND no_d_id = {district} ORDER BY no_o_id LIMIT 1 FOR UPDATE"
            ))?;
            let Some(row) = rows.first() else { continue };
            let id = number(row, 0);
            self.deliver((warehouse, district, id), carrier)?;
            delivered += 1;
        }
        self.change("COMMIT")?;
        Ok(delivered)
    }

    fn deliver(&mut self, (warehouse, district, id): (u32, u32, u64), carrier: u32) -> Sql<()> {
        self.change_one(&format!(
            "DELETE FROM new_order \
             WHERE no_w_id = {warehouse} AND no_d_id = {district} AND no_o_id = {id}"
        ))?;
        let which = format!("o_w_id = {warehouse} AND o_d_id = {district} AND o_id = {id}");
        let row = self.row(&format!("SELECT o_c_id FROM orders WHERE {which}"))?;
        let customer = number(&row, 0);
        self.change_one(&format!("UPDATE orders SET o_carrier_id = {carrier} WHERE {which}"))?;
        let which = format!("ol_w_id = {warehouse} AND ol_d_id = {district} AND ol_o_id = {id}");
        self.change(&format!("UPDATE order_line SET ol_delivery_d = NOW() WHERE {which}"))?;
        let row = self.row(&format!("SELECT SUM(ol_amount) FROM order_line WHERE {which}"))?;
        let sum = amount(hundredths(&row, 0)?);
        self.change_one(&format!(
            "UPDATE customer SET c_balance = c_balance + {sum}, \
             c_delivery_cnt = c_delivery_cnt + 1 \
             WHERE c_w_id = {warehouse} AND c_d_id = {district} AND c_id = {customer}"
        ))
    }

    /// How many items there are too few of.
    fn stock_level(&mut self, asked: &StockLevel) -> Sql<u64> {
        let StockLevel { warehouse, district, threshold } = *asked;
        self.change("BEGIN")?;
        let row = self.row(&format!(
            "SELECT d_next_o_id FROM district WHERE d_w_id = {warehouse} AND d_id = {district}"
        ))?;
        let next = number(&row, 0);
        let row = self.row(&format!(
            "SELECT COUNT(DISTINCT s_i_id) FROM order_line, stock \
             WHERE ol_w_id = {warehouse} AND ol_d_id = {district} AND ol_o_id < {next} \
             AND ol_o_id >= {} AND s_w_id = {warehouse} AND s_i_id = ol_i_id \
             AND s_quantity < {threshold}",
            next.saturating_sub(LAST_ORDERS)
        ))?;
        self.change("COMMIT")?;
        Ok(number(&row, 0))
    }
}

impl SqlWarehouses<'_> {
    /// Does a transaction, again while others keep it from its end.
    fn transaction(&mut self, transaction: impl Fn(&mut Client) -> Sql<u64>) -> Result<Done> {
        self.client.read = 0;
        let count = self.store.retry(&mut self.client, transaction, Client::undo)?;
        Ok(Done { count, read: self.client.read })
    }
}

/// The `INSERT` of rows.
fn insert(rows: &Rows) -> Insert {
    let table = rows.table();
    let head = format!("INSERT INTO {} ({}) VALUES", table.name(), table.columns());
    let mut insert = Insert::new(&head);
    let mut cells = rows.cells();
    for _ in 0..rows.len() {
        let mut row = insert.row();
        for cell in cells.by_ref().take(rows.columns()) {
            row = match cell {
                Cell::Number(number) => row.number(number),
                Cell::Decimal(count, digits) => row.plain(&decimal(count, digits)),
                Cell::Text(text) => row.text(text),
                Cell::Now => row.plain("NOW()"),
                Cell::Null => row.plain("NULL"),
            };
        }
        row.end();
    }
    insert
}

impl TpccSession for SqlWarehouses<'_> {
    fn load(&mut self, rows: &Rows) -> Result<()> {
        if !std::mem::replace(&mut self.loads, true) {
            self.client.change("SET foreign_key_checks = 0")?;
        }
        let insert = insert(rows);
        self.store.retry_one(&mut self.client, |client| client.change(insert.text()))?;
        Ok(())
    }

    fn new_order(&mut self, order: &NewOrder) -> Result<Done> {
        self.transaction(|client| client.new_order(order))
    }

    fn payment(&mut self, payment: &Payment) -> Result<Done> {
        self.transaction(|client| client.payment(payment))
    }

    fn order_status(&mut self, asked: &OrderStatus) -> Result<Done> {
        self.transaction(|client| client.order_status(asked))
    }

    fn delivery(&mut self, delivery: &Delivery) -> Result<Done> {
        self.transaction(|client| client.delivery(delivery))
    }

    fn stock_level(&mut self, asked: &StockLevel) -> Result<Done> {
        self.transaction(|client| client.stock_level(asked))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shaledb_lab::workloads::tpcc::rows::Table;

    #[test]
    fn rows_are_loaded_as_text() {
        let mut rows = Rows::new(Table::Item);
        rows.number(7).number(8).text(|to| to.extend(b"a b")).decimal(-5, 2).null();
        rows.number(9).number(0).text(|to| to.extend(b"it's")).decimal(123, 0).now();
        let wanted = "INSERT INTO item (i_id, i_im_id, i_name, i_price, i_data) VALUES \
                      (7,8,'a b',-0.05,NULL),(9,0,X'69742773',123,NOW())";
        assert_eq!(insert(&rows).text(), wanted);
        assert_eq!((decimal(12_345, 4), amount(100)), ("1.2345".to_owned(), "1.00".to_owned()));
    }
}
