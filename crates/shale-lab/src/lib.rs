//! Workloads, measures and reports for Shale and its peers.
