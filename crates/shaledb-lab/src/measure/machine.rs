//! What is measured on.

use crate::units::bytes;

/// The machine in a few words.
pub fn machine() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cpuinfo = read("/proc/cpuinfo");
    let model = cpuinfo
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": ").map(|(_, name)| name))
        .unwrap_or("unknown CPU");
    let cores = std::thread::available_parallelism().map_or(0, |cores| cores.get());
    let memory = read("/proc/meminfo")
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB")?.parse().ok())
        .map_or_else(String::new, |kib: u64| bytes(kib * 1024));
    let kernel = read("/proc/sys/kernel/osrelease");
    format!("{cores} x {model}, {memory}, Linux {}", kernel.trim())
}
