//! SIGINT, SIGTERM and SIGHUP, for every verb: a signal ends the process, which leaves no unfinished file behind. A verb
//! that can end in good order says so ([`gracefully`]) and asks from time to time whether to ([`requested`]); a second
//! signal then ends it at once.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::output::remove_unfinished;

/// The first signal; 0: none yet.
static RECEIVED: AtomicU8 = AtomicU8::new(0);

/// Whether the verb ends by itself after the first.
static GRACEFUL: AtomicBool = AtomicBool::new(false);

/// Starts to listen, on a thread of its own: work that hangs cannot keep a signal from being heard. Signals that the
/// process was started to ignore, as `nohup` does, stay ignored.
pub(super) fn listen() -> io::Result<()> {
    let ignored = ignored();
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| !is_in(ignored, *signal)))?;
    let heed = move || signals.forever().for_each(|signal| received(signal as u8));
    std::thread::Builder::new().name("signals".into()).spawn(heed)?;
    Ok(())
}

fn received(signal: u8) {
    let first = RECEIVED.compare_exchange(0, signal, Ordering::SeqCst, Ordering::SeqCst).is_ok();
    if !(first && GRACEFUL.load(Ordering::SeqCst)) {
        // Without destructors: other threads are still at work.
        remove_unfinished();
        signal_hook::low_level::exit(i32::from(status_of(signal)));
    }
}

/// As long as this lives, the first signal only has [`requested`] say so.
#[derive(Debug)]
#[must_use]
pub(super) struct Graceful(());

pub(super) fn gracefully() -> Graceful {
    GRACEFUL.store(true, Ordering::SeqCst);
    Graceful(())
}

impl Drop for Graceful {
    fn drop(&mut self) {
        GRACEFUL.store(false, Ordering::SeqCst);
    }
}

/// Whether the process has been asked to end.
pub(super) fn requested() -> bool {
    RECEIVED.load(Ordering::Relaxed) != 0
}

/// The exit status of a process that was asked to end: 130 after SIGINT, 143 after SIGTERM, 129 after SIGHUP.
pub(super) fn status() -> Option<u8> {
    requested().then(|| status_of(RECEIVED.load(Ordering::Relaxed)))
}

/// As shells count.
const fn status_of(signal: u8) -> u8 {
    128 + signal
}

/// A bit per signal; none where nothing can be found out.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

const fn is_in(mask: u64, signal: i32) -> bool {
    mask >> (signal - 1) & 1 == 1
}
