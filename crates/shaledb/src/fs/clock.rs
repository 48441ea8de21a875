//! Time: what the clock says, what the thread has used, and waiting.

/// Time, as the engine sees it.
///
/// ```
/// use shaledb::fs::Clock;
///
/// fn timed(clock: &dyn Clock, work: impl FnOnce()) -> u64 {
///     let start = clock.now_nanos();
///     work();
///     clock.now_nanos() - start
/// }
///
/// let env = shaledb::Env::os();
/// assert!(timed(&*env.clock, || env.clock.sleep_nanos(1_000)) >= 1_000);
/// ```
pub trait Clock: Send + Sync {
    /// Nanoseconds since some fixed moment; never goes back.
    ///
    /// ```
    /// let clock = shaledb::Env::os().clock;
    /// let before = clock.now_nanos();
    /// assert!(clock.now_nanos() >= before);
    /// ```
    fn now_nanos(&self) -> u64;

    /// Nanoseconds of CPU that the calling thread has used.
    ///
    /// ```
    /// let clock = shaledb::Env::os().clock;
    /// let before = clock.thread_cpu_nanos();
    /// assert!(clock.thread_cpu_nanos() >= before);
    /// ```
    fn thread_cpu_nanos(&self) -> u64;

    /// Waits for so many nanoseconds, or somewhat longer.
    ///
    /// ```
    /// let clock = shaledb::Env::os().clock;
    /// let before = clock.now_nanos();
    /// clock.sleep_nanos(1_000);
    /// assert!(clock.now_nanos() >= before + 1_000);
    /// ```
    fn sleep_nanos(&self, nanos: u64);
}
