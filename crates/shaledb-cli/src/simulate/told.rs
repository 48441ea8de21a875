//! Which figures come from a run, and which it does not have.

use serde_json::{Value, json};

/// A figure that a run does not have.
#[derive(Clone, Debug)]
struct Lacking {
    what: &'static str,
    taken: String,
    flag: &'static str,
}

/// What came from where.
#[derive(Clone, Debug, Default)]
pub(super) struct Told {
    run: Option<String>,
    load: String,
    taken: Vec<String>,
    lacking: Vec<Lacking>,
    notes: Vec<String>,
}

impl Told {
    /// Of this run, if it is one.
    pub(super) fn of(run: Option<String>) -> Told {
        Told { run, ..Told::default() }
    }

    /// Whether there is a run.
    pub(super) fn is_run(&self) -> bool {
        self.run.is_some()
    }

    /// What the user named, else what the run tells, else what is usual: that is noted.
    pub(super) fn pick<T>(
        &mut self,
        (what, flag): (&'static str, &'static str),
        named: Option<T>,
        known: Option<T>,
        (usual, shown): (T, &str),
    ) -> T {
        if let Some(named) = named {
            return named;
        }
        match known {
            Some(known) => {
                self.taken(what);
                known
            }
            None => {
                self.lacks(what, shown, flag);
                usual
            }
        }
    }

    /// Notes that something is the run's.
    pub(super) fn taken(&mut self, what: &str) {
        self.taken.push(what.to_owned());
    }

    /// Notes that the run does not have something, what is taken, and which flag names it.
    pub(super) fn lacks(&mut self, what: &'static str, taken: &str, flag: &'static str) {
        self.lacking.push(Lacking { what, taken: taken.to_owned(), flag });
    }

    /// The load in words.
    pub(super) fn load(&mut self, load: String) {
        self.load = load;
    }

    /// One more sentence.
    pub(super) fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    /// In words; nothing where it is no run.
    pub(super) fn sentences(&self) -> Vec<String> {
        let Some(run) = &self.run else { return Vec::new() };
        let mut said = vec![format!("{}, from {run}: {}.", self.load, self.taken.join(", "))];
        if !self.lacking.is_empty() {
            let each = |one: &Lacking| match one.flag {
                "" => format!("{} ({})", one.what, one.taken),
                flag => format!("{} ({}; {flag})", one.what, one.taken),
            };
            let all: Vec<String> = self.lacking.iter().map(each).collect();
            said.push(format!("The run does not have, and this was taken: {}.", all.join(", ")));
        }
        said.extend(self.notes.iter().cloned());
        said
    }

    /// For programs.
    pub(super) fn value(&self) -> Value {
        let lacking = |one: &Lacking| {
            json!({
                "what": one.what, "taken": one.taken, "flag": one.flag,
            })
        };
        match &self.run {
            None => Value::Null,
            Some(run) => json!({
                "run": run,
                "taken": self.taken,
                "lacking": self.lacking.iter().map(lacking).collect::<Vec<_>>(),
                "notes": self.notes,
            }),
        }
    }
}
