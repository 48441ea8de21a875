//! What transactions are given, made of chance as the standard says.

use super::chance::{Uneven, between};
use super::scale::{DISTRICTS, Scale};
use crate::generate::Random;

/// A line of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// The item. One beyond all items is not there.
    pub item: u32,
    /// The warehouse that has it.
    pub supplier: u32,
    /// How many.
    pub quantity: u32,
}

/// A customer orders.
#[derive(Clone, Debug, Default)]
pub struct NewOrder {
    /// The warehouse.
    pub warehouse: u32,
    /// The district.
    pub district: u32,
    /// The customer.
    pub customer: u32,
    /// 5 to 15 lines. In a hundredth of the orders the last one's item is not there, and the
    /// transaction is rolled back.
    pub lines: Vec<Line>,
}

/// How a customer is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// By id.
    Id(u32),
    /// By the number of a last name: the one in the middle of those who have it.
    Name(u32),
}

/// A customer pays.
#[derive(Clone, Copy, Debug)]
pub struct Payment {
    /// The warehouse that is paid.
    pub warehouse: u32,
    /// Its district.
    pub district: u32,
    /// The customer's warehouse: another one in 15 of 100 payments.
    pub customer_warehouse: u32,
    /// The customer's district.
    pub customer_district: u32,
    /// The customer.
    pub who: Who,
    /// Hundredths.
    pub amount: u32,
}

/// A customer asks how an order is.
#[derive(Clone, Copy, Debug)]
pub struct OrderStatus {
    /// The warehouse.
    pub warehouse: u32,
    /// The district.
    pub district: u32,
    /// The customer.
    pub who: Who,
}

/// The oldest order of each district is delivered.
#[derive(Clone, Copy, Debug)]
pub struct Delivery {
    /// The warehouse.
    pub warehouse: u32,
    /// Who carries.
    pub carrier: u32,
}

/// How many items of the last twenty orders are nearly sold out.
#[derive(Clone, Copy, Debug)]
pub struct StockLevel {
    /// The warehouse.
    pub warehouse: u32,
    /// The district.
    pub district: u32,
    /// Less than this is too little.
    pub threshold: u32,
}

/// Makes inputs.
#[derive(Clone, Debug)]
pub struct Inputs {
    random: Random,
    scale: Scale,
    uneven: Uneven,
}

impl Inputs {
    /// Those of one client.
    pub fn new(random: Random, scale: Scale, uneven: Uneven) -> Inputs {
        Inputs { random, scale, uneven }
    }

    /// One of a hundred, from 0.
    #[inline]
    pub fn percent(&mut self) -> u32 {
        self.random.below(100) as u32
    }

    fn warehouse(&mut self) -> u32 {
        between(&mut self.random, 1..=self.scale.warehouses)
    }

    fn district(&mut self) -> u32 {
        between(&mut self.random, 1..=DISTRICTS)
    }

    /// Another warehouse, if there is one.
    fn other(&mut self, warehouse: u32) -> u32 {
        if self.scale.warehouses == 1 {
            return warehouse;
        }
        let other = between(&mut self.random, 1..=self.scale.warehouses - 1);
        if other < warehouse { other } else { other + 1 }
    }

    fn customer(&mut self) -> u32 {
        self.uneven.customer(&mut self.random, &self.scale)
    }

    fn who(&mut self) -> Who {
        if self.percent() < 60 {
            let constant = self.uneven.asked_name;
            Who::Name(Uneven::name(constant, &mut self.random, &self.scale))
        } else {
            Who::Id(self.customer())
        }
    }

    /// Fills an order.
    pub fn new_order(&mut self, order: &mut NewOrder) {
        order.warehouse = self.warehouse();
        order.district = self.district();
        order.customer = self.customer();
        order.lines.clear();
        let count = between(&mut self.random, 5..=15);
        let fails = self.percent() == 0;
        for at in 1..=count {
            let item = self.uneven.item(&mut self.random, &self.scale);
            let is_remote = self.percent() == 0;
            let supplier = match is_remote {
                true => self.other(order.warehouse),
                false => order.warehouse,
            };
            let quantity = between(&mut self.random, 1..=10);
            let item = if fails && at == count { self.scale.items + 1 } else { item };
            order.lines.push(Line { item, supplier, quantity });
        }
    }

    /// A payment.
    pub fn payment(&mut self) -> Payment {
        let (warehouse, district) = (self.warehouse(), self.district());
        let (customer_warehouse, customer_district) = match self.percent() < 85 {
            true => (warehouse, district),
            false => (self.other(warehouse), self.district()),
        };
        let amount = between(&mut self.random, 100..=500_000);
        let who = self.who();
        Payment { warehouse, district, customer_warehouse, customer_district, who, amount }
    }

    /// A question for an order.
    pub fn order_status(&mut self) -> OrderStatus {
        OrderStatus { warehouse: self.warehouse(), district: self.district(), who: self.who() }
    }

    /// A delivery.
    pub fn delivery(&mut self) -> Delivery {
        Delivery { warehouse: self.warehouse(), carrier: between(&mut self.random, 1..=10) }
    }

    /// A look at the stock.
    pub fn stock_level(&mut self) -> StockLevel {
        StockLevel {
            warehouse: self.warehouse(),
            district: self.district(),
            threshold: between(&mut self.random, 10..=20),
        }
    }
}
