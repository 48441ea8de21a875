//! The rows of `purchases`, made of chance and nearly free.

use super::options::InsertOptions;
use super::purchase::Purchase;
use crate::generate::Random;
use std::sync::Arc;

/// The character that fills `data` up.
const FILLER: u8 = b'a';

/// When the first row was sold, and how many are sold in a second: `dateandtime` follows from the
/// row's number and is the same for every engine and run.
const FIRST_SALE: u64 = 1_462_579_200;
const SALES_PER_SECOND: u64 = 1000;

/// When a row was sold.
#[inline]
pub fn time_of(id: u64) -> u64 {
    FIRST_SALE + id / SALES_PER_SECOND
}

/// The random bytes that all rows of a process are cut from. Larger than the window of any codec
/// over a block, so that its second round does not compress.
#[derive(Clone, Debug)]
pub struct Noise(Arc<Vec<u8>>);

impl Noise {
    const BYTES: usize = 4 << 20;

    /// The same seed gives the same bytes.
    pub fn new(seed: u64, options: &InsertOptions) -> Noise {
        let mut random = Random::named(seed, "noise", 0);
        let wanted = Noise::BYTES.max(4 * options.data_bytes.most);
        let mut bytes = Vec::with_capacity(wanted + 8);
        while bytes.len() < wanted {
            bytes.extend_from_slice(&random.bits().to_le_bytes());
        }
        Noise(Arc::new(bytes))
    }
}

/// Makes rows, one after another.
#[derive(Clone, Debug)]
pub struct Rows {
    random: Random,
    noise: Noise,
    at: usize,
    data: Vec<u8>,
    least: usize,
    span: u64,
    random_percent: usize,
    registers: u64,
    customers: u64,
    products: u64,
    prices: u64,
}

impl Rows {
    /// The rows of a client; `purpose` is what they are for, such as the step's name.
    pub fn new(
        options: &InsertOptions,
        noise: &Noise,
        seed: u64,
        purpose: &str,
        client: u64,
    ) -> Rows {
        let mut random = Random::named(seed, purpose, client);
        let bytes = options.data_bytes;
        Rows {
            at: random.below(noise.0.len() as u64 / 2) as usize,
            random,
            noise: noise.clone(),
            data: Vec::with_capacity(bytes.most),
            least: bytes.least,
            span: (bytes.most - bytes.least + 1) as u64,
            random_percent: options.random_percent as usize,
            registers: u64::from(options.cash_registers),
            customers: u64::from(options.customers),
            products: u64::from(options.products),
            prices: prices(options),
        }
    }

    /// The row of this number.
    #[inline]
    pub fn row(&mut self, id: u64) -> Purchase<'_> {
        let random = &mut self.random;
        let bytes = self.least + random.below(self.span) as usize;
        let noisy = bytes * self.random_percent / 100;
        if self.at + noisy > self.noise.0.len() {
            // An odd start, so that the rounds through the noise do not repeat each other.
            self.at = random.below(1000) as usize;
        }
        self.data.clear();
        self.data.extend_from_slice(&self.noise.0[self.at..self.at + noisy]);
        self.data.resize(bytes, FILLER);
        self.at += noisy;
        Purchase {
            id,
            time: time_of(id),
            register: random.below(self.registers) as u32,
            customer: random.below(self.customers) as u32,
            product: random.below(self.products) as u32,
            price: random.below(self.prices) as u32,
            data: &self.data,
        }
    }
}

/// How many different prices there are.
pub fn prices(options: &InsertOptions) -> u64 {
    u64::from(options.max_price) * 100
}
