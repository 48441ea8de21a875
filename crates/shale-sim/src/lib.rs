//! Simulated disk, clock and faults; a model; drivers of crash and metamorphic tests.
