//! The bytes between producer and consumer: slots are announced in order, and taken back.
//!
//! A byte hands its slot to the other process. The accesses to the slot are ordered by the system calls that write and
//! read the pipe: what one process did before it wrote the byte is done when the other has read it.

use std::io::{self, BufReader, Read, Write};
use std::time::Duration;

use super::END;
use super::control::{NextSlot, StreamControl, StreamEnd};

/// How long a stream without batches keeps its memory so that the consumer can map it.
const MAP_TIMEOUT: Duration = Duration::from_secs(5);

/// Writes the description and then every slot number, until the stream ends. Calls `mapped` before an announcement once
/// the consumer has mapped the memory.
pub(super) fn announce(
    line: &str,
    control: &StreamControl,
    output: &mut impl Write,
    mapped: &mut dyn FnMut(),
) -> io::Result<()> {
    output.write_all(line.as_bytes())?;
    output.flush()?;
    let mut announced = false;
    loop {
        match control.next_announcement() {
            NextSlot::Batch(slot, _) => {
                if control.is_mapped() {
                    mapped();
                }
                output.write_all(&[slot])?;
                announced = true;
            }
            NextSlot::Complete => {
                output.write_all(&[END])?;
                output.flush()?;
                // The memory must stay reachable until the consumer has copied the last batch, or, if there was none,
                // has had time to map it.
                if announced {
                    control.wait_until_given_back();
                } else {
                    control.wait_until_ended(MAP_TIMEOUT);
                }
                control.end(StreamEnd::Finished);
                return Ok(());
            }
            NextSlot::Ended => return Ok(()),
        }
        output.flush()?;
    }
}

/// Takes slots back until the consumer closes its end.
pub(super) fn listen(input: impl Read, control: &StreamControl) {
    for byte in BufReader::new(input).bytes() {
        match byte {
            Ok(byte) => {
                if let Err(error) = control.give_back(byte) {
                    control.end(StreamEnd::Failed(error));
                    return;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    control.end(StreamEnd::Stopped);
}
