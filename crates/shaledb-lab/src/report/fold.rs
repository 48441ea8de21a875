//! Rows of a run put in order: steps, in each the engines, in each its repeats folded.

use super::figure::Figure;
use crate::run::row::Row;
use serde::Serialize;

/// The middle of some repeats, and how far they lie apart.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// How many there were.
    pub count: usize,
    /// Half are at most this (of two: the mean).
    pub median: f64,
    /// The lowest.
    pub low: f64,
    /// The highest.
    pub high: f64,
}

impl Spread {
    /// Of some values; `None` if there is none.
    pub fn of(values: &[f64]) -> Option<Spread> {
        // A sum of nothing is minus zero.
        let mut sorted: Vec<f64> = values.iter().map(|value| value + 0.0).collect();
        sorted.sort_by(f64::total_cmp);
        let (low, high) = (*sorted.first()?, *sorted.last()?);
        let half = sorted.len() / 2;
        let median = match sorted.len() % 2 {
            1 => sorted[half],
            _ => (sorted[half - 1] + sorted[half]) / 2.0,
        };
        Some(Spread { count: sorted.len(), median, low, high })
    }

    /// Half of the way from the lowest to the highest, in percent of the median.
    pub fn percent(&self) -> f64 {
        if self.median == 0.0 { 0.0 } else { 50.0 * (self.high - self.low) / self.median.abs() }
    }
}

/// The repeats of a step on one engine.
#[derive(Clone, Debug)]
pub struct Fold<'a> {
    /// They are of the same engine, setting and number of clients. There is at least one.
    pub rows: Vec<&'a Row>,
}

impl Fold<'_> {
    /// The first repeat: for what is the same in all.
    pub fn first(&self) -> &Row {
        self.rows[0]
    }

    /// The repeat whose rate is in the middle: for what cannot be folded, such as a series.
    pub fn typical(&self) -> &Row {
        let mut rows = self.rows.clone();
        rows.sort_by(|a, b| a.rate.total_cmp(&b.rate));
        rows[(rows.len() - 1) / 2]
    }

    /// Engine and setting, as tables name them.
    pub fn label(&self) -> String {
        label(self.first())
    }

    /// A figure over the repeats; `None` if none has it.
    pub fn spread(&self, figure: &Figure) -> Option<Spread> {
        let values: Vec<f64> = self.rows.iter().filter_map(|row| figure.of(row)).collect();
        Spread::of(&values)
    }

    /// The median of a figure.
    pub fn median(&self, figure: &Figure) -> Option<f64> {
        self.spread(figure).map(|spread| spread.median)
    }

    /// The kinds of operation, the most frequent first.
    pub fn kinds(&self) -> Vec<&str> {
        let mut kinds: Vec<(&String, u64)> =
            self.first().latency_us.iter().map(|(kind, latency)| (kind, latency.count)).collect();
        kinds.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
        kinds.into_iter().map(|(kind, _)| kind.as_str()).collect()
    }
}

/// Remarks, each once, with the steps and engines that have it.
#[derive(Clone, Debug, Default)]
pub struct Remarks(Vec<(String, Vec<String>)>);

impl Remarks {
    /// Adds a remark on a step and engine.
    pub fn add(&mut self, text: String, source: String) {
        match self.0.iter_mut().find(|(known, _)| *known == text) {
            Some((_, sources)) if sources.contains(&source) => {}
            Some((_, sources)) => sources.push(source),
            None => self.0.push((text, vec![source])),
        }
    }

    /// Each with its first source, and how many more there are; `all` is how many there could be.
    pub fn texts(&self, all: usize) -> Vec<String> {
        let one = |(text, sources): &(String, Vec<String>)| match &sources[..] {
            [one] => format!("{text} ({one})"),
            sources if sources.len() == all => format!("{text} (everywhere)"),
            sources => format!("{text} ({} and {} more)", sources[0], sources.len() - 1),
        };
        self.0.iter().map(one).collect()
    }
}

/// Engine and setting of a row; the variant of the work is the step's.
pub fn label(row: &Row) -> String {
    match row.choice() {
        "" => row.engine.clone(),
        choice => format!("{}.{choice}", row.engine),
    }
}

/// A step of a workload, on every engine that did it.
#[derive(Clone, Debug)]
pub struct Step<'a> {
    /// The workload.
    pub workload: &'a str,
    /// The step's name.
    pub step: &'a str,
    /// The variant of the work, where several are done under one name; else empty.
    pub variant: &'a str,
    /// Engines, settings and numbers of clients.
    pub folds: Vec<Fold<'a>>,
}

impl<'a> Step<'a> {
    /// Workload, step and variant.
    pub fn title(&self) -> String {
        match self.variant {
            "" => format!("{} {}", self.workload, self.step),
            variant => format!("{} {}: {variant}", self.workload, self.step),
        }
    }

    /// The engine, with its clients if there are several numbers of them in the step.
    pub fn name_of(&self, fold: &Fold<'_>) -> String {
        let clients = fold.first().clients;
        match self.folds.iter().any(|other| other.first().clients != clients) {
            true => format!("{} ({clients} clients)", fold.label()),
            false => fold.label(),
        }
    }

    /// Whether both are of the same workload, name and variant.
    pub fn is_same(&self, other: &Step<'_>) -> bool {
        let name = |step: &Step<'_>| [step.workload, step.step, step.variant].map(str::to_owned);
        name(self) == name(other)
    }

    /// The fold of a label and a number of clients.
    pub fn find(&self, label: &str, clients: u64) -> Option<&Fold<'a>> {
        let same = |fold: &&Fold<'_>| fold.first().clients == clients && fold.label() == label;
        self.folds.iter().find(same)
    }

    /// The fold that `fold` is set against, of those that do the same work with as many clients:
    /// the one of the base's label; else that of its engine with the same setting; else the first
    /// of its engine.
    pub fn base(&self, base: &str, fold: &Fold<'_>) -> Option<&Fold<'a>> {
        let own = fold.first();
        let work = |row: &Row| row.parameters.get(&row.workload).cloned();
        let alike = |other: &&Fold<'_>| {
            other.first().clients == own.clients && work(other.first()) == work(own)
        };
        let is_engine = |other: &&Fold<'_>| other.first().engine == base;
        let same_setting = |other: &&Fold<'_>| other.first().setting == own.setting;
        let alike = || self.folds.iter().filter(alike);
        alike()
            .find(|other| other.label() == base)
            // Settings of the base's own engine are set against the first of them.
            .or_else(|| alike().filter(is_engine).find(|o| own.engine != base && same_setting(o)))
            .or_else(|| alike().find(is_engine))
    }
}

/// Puts rows in order: steps and engines as they first appear in the run (within a step, who is
/// first goes round), fewer clients first.
pub fn fold(rows: &[Row]) -> Vec<Step<'_>> {
    let mut steps: Vec<Step<'_>> = Vec::new();
    let mut subjects: Vec<(&str, &str)> = Vec::new();
    for row in rows {
        let subject = (row.engine.as_str(), row.setting.as_str());
        if !subjects.contains(&subject) {
            subjects.push(subject);
        }
        let (workload, step, variant) = (&row.workload, &row.step, row.variant());
        let own = Step { workload, step, variant, folds: Vec::new() };
        let at = steps.iter().position(|other| other.is_same(&own)).unwrap_or_else(|| {
            steps.push(own);
            steps.len() - 1
        });
        let folds = &mut steps[at].folds;
        let same = |fold: &Fold<'_>| {
            let first = fold.first();
            (&first.engine, &first.setting, first.clients)
                == (&row.engine, &row.setting, row.clients)
        };
        match folds.iter_mut().find(|fold| same(fold)) {
            Some(fold) => fold.rows.push(row),
            None => folds.push(Fold { rows: vec![row] }),
        }
    }
    for step in &mut steps {
        step.folds.sort_by_key(|fold| {
            let first = fold.first();
            let subject = (first.engine.as_str(), first.setting.as_str());
            (first.clients, subjects.iter().position(|known| *known == subject))
        });
    }
    steps
}

/// The engine that others are set against: the one asked for; else Shale; else the first.
///
/// # Errors
///
/// The one asked for is not in the run: the text names those that are.
pub fn choose_base(rows: &[Row], asked: Option<&str>) -> Result<String, String> {
    let mut labels: Vec<String> = Vec::new();
    for row in rows {
        if !labels.contains(&label(row)) {
            labels.push(label(row));
        }
    }
    let is = |base: &str| rows.iter().any(|row| row.engine == base || label(row) == base);
    match asked {
        Some(base) if is(base) => Ok(base.to_owned()),
        Some(base) => {
            Err(format!("--base {base}: the run has no such engine; it has {}", labels.join(", ")))
        }
        None if is("shale") => Ok("shale".to_owned()),
        None => Ok(labels.into_iter().next().unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(step: &str, engine: &str, setting: &str, clients: u64, rate: f64) -> Row {
        Row {
            step: step.to_owned(),
            engine: engine.to_owned(),
            setting: setting.to_owned(),
            clients,
            rate,
            ..Row::default()
        }
    }

    #[test]
    fn spreads() {
        let spread = Spread::of(&[3.0, 1.0, 2.0]).unwrap();
        assert_eq!((spread.count, spread.median, spread.percent()), (3, 2.0, 50.0));
        assert_eq!(Spread::of(&[1.0, 2.0]).unwrap().median, 1.5);
        assert_eq!(Spread::of(&[0.0]).unwrap().percent(), 0.0);
        assert_eq!(Spread::of(&[]), None);
    }

    #[test]
    fn rows_in_interleaved_order_are_folded() {
        let rows = [
            row("load", "b", "", 4, 10.0),
            row("load", "a", "zstd", 4, 1.0),
            row("load", "b", "", 1, 7.0),
            row("load", "b", "", 4, 30.0),
            row("load", "b", "", 4, 20.0),
            row("q1", "a", "zstd", 4, 5.0),
            row("q1", "b", "", 4, 5.0),
        ];
        let steps = fold(&rows);
        assert_eq!(steps.iter().map(|step| step.step).collect::<Vec<_>>(), ["load", "q1"]);
        let folds: Vec<(String, u64, usize)> = steps[0]
            .folds
            .iter()
            .map(|fold| (fold.label(), fold.first().clients, fold.rows.len()))
            .collect();
        let expected = [("b", 1, 1), ("b", 4, 3), ("a.zstd", 4, 1)];
        assert_eq!(
            folds,
            expected.map(|(label, clients, count)| (label.to_owned(), clients, count))
        );
        let labels: Vec<String> = steps[1].folds.iter().map(Fold::label).collect();
        assert_eq!(labels, ["b", "a.zstd"], "in the order of the run, not of their turns");
        let four = &steps[0].folds[1];
        assert_eq!((four.typical().rate, four.median(&Figure::Rate)), (20.0, Some(20.0)));
        assert_eq!(steps[0].base("a", four).unwrap().label(), "a.zstd");
        assert!(steps[0].base("a", &steps[0].folds[0]).is_none());
    }

    #[test]
    fn like_is_set_against_like() {
        // Settings that are choices of codecs: all do the same work.
        let codecs = [
            row("load", "a", "lz4", 1, 1.0),
            row("load", "a", "zstd", 1, 1.0),
            row("load", "b", "zstd", 1, 1.0),
            row("load", "b", "zlib", 1, 1.0),
        ];
        let bases = |rows: &[Row]| -> Vec<String> {
            let steps = fold(rows);
            let base = |fold| steps[0].base("a", fold).unwrap().label();
            steps[0].folds.iter().map(base).collect()
        };
        assert_eq!(bases(&codecs), ["a.lz4", "a.lz4", "a.zstd", "a.lz4"]);
        // Settings that are variants of the work: each is set against its own.
        let work = |engine: &str, setting: &str| Row {
            workload: "insert".to_owned(),
            parameters: serde_json::json!({ "insert": { "data": setting }, "seed": 1 }),
            ..row("load", engine, setting, 1, 1.0)
        };
        let variants =
            [work("a", "small"), work("a", "large"), work("b", "large"), work("b", "small")];
        assert_eq!(bases(&variants), ["a.small", "a.large", "a.large", "a.small"]);
    }

    #[test]
    fn variants_of_the_work_are_steps_of_their_own() {
        let rows = [
            row("load", "a", "lz4; small", 1, 1.0),
            row("load", "a", "zstd; small", 1, 2.0),
            row("load", "a", "lz4; large", 1, 3.0),
        ];
        let steps = fold(&rows);
        let titles: Vec<String> = steps.iter().map(Step::title).collect();
        assert_eq!(titles, [" load: small", " load: large"]);
        let labels: Vec<String> = steps[0].folds.iter().map(Fold::label).collect();
        assert_eq!(labels, ["a.lz4", "a.zstd"]);
        assert!(steps[0].is_same(&fold(&rows[..1])[0]) && !steps[0].is_same(&steps[1]));
    }

    #[test]
    fn the_base() {
        let rows = [row("load", "fjall", "", 1, 1.0), row("load", "shale", "lz4", 1, 1.0)];
        assert_eq!(choose_base(&rows, None).unwrap(), "shale");
        assert_eq!(choose_base(&rows[..1], None).unwrap(), "fjall");
        assert_eq!(choose_base(&rows, Some("shale.lz4")).unwrap(), "shale.lz4");
        assert!(choose_base(&rows, Some("x")).unwrap_err().contains("fjall, shale.lz4"));
    }
}
