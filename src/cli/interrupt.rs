//! Handling of SIGINT, SIGTERM and SIGHUP for all commands.
//!
//! A signal ends the process and removes its unfinished files. A command that can stop in good order calls
//! [`gracefully`] and then regularly checks [`requested`]; a second signal ends it at once. A command that takes long
//! sets a message with [`on_exit_say`] for the case that a signal interrupts it.

use std::io::{self, IsTerminal};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::output::remove_unfinished;
use crate::system;

/// The first signal received; 0 before that.
///
/// SeqCst, as [`GRACEFUL`]: the thread of the signals sets this and then reads that, a command that ends resets that
/// and then reads this. In one order of all four, at least one of the two sees the other; in any weaker order both may
/// miss it, and the signal is lost.
static RECEIVED: AtomicU8 = AtomicU8::new(0);

/// Whether the command ends by itself after the first signal.
static GRACEFUL: AtomicBool = AtomicBool::new(false);

type Message = Box<dyn Fn() -> String + Send>;

/// What to say when a signal ends the process.
static ON_EXIT: Mutex<Option<Message>> = Mutex::new(None);

/// Sets the message for a signal that ends the process at once: the work that is interrupted, and how to go on.
pub(super) fn on_exit_say(message: impl Fn() -> String + Send + 'static) {
    *ON_EXIT.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(message));
}

/// Starts a thread that handles signals, so that they are handled even if the work hangs. Signals that the process
/// ignores from its start, as under `nohup`, stay ignored.
pub(super) fn listen() -> io::Result<()> {
    system::listen_to_signals(handle)
}

fn handle(signal: u8) {
    let is_first = RECEIVED.compare_exchange(0, signal, Ordering::SeqCst, Ordering::SeqCst).is_ok();
    if !(is_first && GRACEFUL.load(Ordering::SeqCst)) {
        // Exits without running destructors: other threads are still at work.
        remove_unfinished();
        if let Some(message) = ON_EXIT.lock().unwrap_or_else(PoisonError::into_inner).as_ref() {
            // Below a progress bar.
            let new_line = if io::stderr().is_terminal() { "\n" } else { "" };
            note!("{new_line}{}", message());
        }
        system::exit_now(exit_status_of(signal));
    }
}

/// While this value lives, the first signal does not end the process; it only makes [`requested`] return true.
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

/// Whether a signal has asked the process to end.
pub(super) fn requested() -> bool {
    RECEIVED.load(Ordering::SeqCst) != 0
}

/// The exit status after a signal: 130 after SIGINT, 143 after SIGTERM, 129 after SIGHUP. `None` without a signal.
pub(super) fn exit_status() -> Option<u8> {
    requested().then(|| exit_status_of(RECEIVED.load(Ordering::SeqCst)))
}

/// The shells' convention.
const fn exit_status_of(signal: u8) -> u8 {
    128 + signal
}
