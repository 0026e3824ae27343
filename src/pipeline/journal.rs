//! A journal beside an output that takes long to make: a first line (JSON) that identifies the job, then one line for
//! each finished item, appended when it is finished. A process killed at any moment loses at most the line it was
//! writing.
//!
//! Each line ends with its CRC-32 ([`with_line_sum`]).

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde_json::Value;
use thiserror::Error;

use crate::output::checked::{with_line_sum, without_line_sum};
use crate::system;

/// Why a journal cannot be used. Its content is never lost.
#[derive(Debug, Error)]
pub enum JournalError {
    #[error("cannot use the journal {}: {cause}", path.display())]
    Use { path: PathBuf, cause: io::Error },
    #[error(
        "cannot add to {}: {cause}; the finished {items} in it are kept: make room and run the command again",
        path.display()
    )]
    Append { path: PathBuf, items: &'static str, cause: io::Error },
    #[error("another process is writing the journal {}: wait until it ends, or give another output", path.display())]
    Locked { path: PathBuf },
    #[error("{} is not a journal ({reason}); move it elsewhere, or give another output", path.display())]
    Foreign { path: PathBuf, reason: String },
    #[error(
        "{} holds {finished} {items} of an interrupted run with other settings ({}); give the same settings to \
         continue, or remove the file to begin again",
        path.display(), differences.join("; ")
    )]
    OtherRun { path: PathBuf, items: &'static str, finished: u64, differences: Vec<String> },
    #[error("line {line} of the journal {} is damaged: {reason}; remove the line to do its work again", path.display())]
    Damaged { path: PathBuf, line: u64, reason: String },
}

impl JournalError {
    /// Whether the request was wrong (another job's journal); otherwise the work failed.
    #[must_use]
    pub const fn is_request(&self) -> bool {
        !matches!(self, JournalError::Use { .. } | JournalError::Append { .. })
    }
}

/// `X.journal` for the output `X`.
#[must_use]
pub fn journal_path(output: &Path) -> PathBuf {
    let mut name = output.as_os_str().to_owned();
    name.push(".journal");
    PathBuf::from(name)
}

/// Longer lines are refused, so that a file that is not a journal cannot fill the memory.
const LONGEST_LINE: u64 = 16 << 20;

/// An open journal. It is locked: no other process can open it meanwhile.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    /// Plural of a line's contents, such as "games", for messages.
    items: &'static str,
    file: File,
    /// Length of the complete lines in bytes: the offset of the next line.
    length: u64,
}

impl Journal {
    /// Opens a journal, or begins one. `visit` receives every line after the first, with its offset. `head` identifies
    /// the job: a journal with another first line is refused, or begun again if it holds nothing else. An incomplete
    /// last line is removed.
    pub fn open(
        path: &Path,
        items: &'static str,
        head: &Value,
        visit: &mut dyn FnMut(u64, &str) -> Result<(), String>,
    ) -> Result<Journal, JournalError> {
        let file = open_locked(path)?;
        let mut journal = Journal { path: path.into(), items, file, length: 0 };
        journal.length = journal.read_lines(head, visit)?;
        journal.file.set_len(journal.length).map_err(journal.unusable())?;
        if journal.length == 0 {
            journal.append(&head.to_string())?;
        }
        Ok(journal)
    }

    /// Gives `visit` the lines of a journal that another process may be writing, as [`Journal::open`] does, and changes
    /// nothing.
    pub fn read(
        path: &Path,
        items: &'static str,
        head: &Value,
        visit: &mut dyn FnMut(u64, &str) -> Result<(), String>,
    ) -> Result<(), JournalError> {
        let file = File::open(path).map_err(|cause| JournalError::Use { path: path.into(), cause })?;
        Journal { path: path.into(), items, file, length: 0 }.read_lines(head, visit).map(|_| ())
    }

    /// Visits the complete lines after the first, and returns the length of all in bytes: 0 for a journal of another
    /// job without an item.
    fn read_lines(
        &self,
        head: &Value,
        visit: &mut dyn FnMut(u64, &str) -> Result<(), String>,
    ) -> Result<u64, JournalError> {
        let mut reader = BufReader::with_capacity(1 << 16, &self.file);
        let mut line = Vec::new();
        let mut number = 0;
        let mut length = 0;
        while self.next_line(&mut reader, &mut line)? {
            number += 1;
            let stored = std::str::from_utf8(&line).map_err(|error| self.damaged(number, error.to_string()))?;
            let text = without_line_sum(stored);
            if number == 1 {
                if !self.is_of_job(text.unwrap_or_default(), head, &mut reader)? {
                    return Ok(0);
                }
            } else {
                let text = text.map_err(|error| self.damaged(number, error.to_string()))?;
                visit(length, text).map_err(|reason| self.damaged(number, reason))?;
            }
            length += line.len() as u64 + 1;
        }
        if number == 0 && !with_line_sum(&head.to_string()).as_bytes().starts_with(&line) {
            let reason = "it ends within its first line".into();
            return Err(JournalError::Foreign { path: self.path.clone(), reason });
        }
        Ok(length)
    }

    /// Reads a line without its line feed; returns false at the end and for an incomplete line.
    fn next_line(&self, reader: &mut impl BufRead, line: &mut Vec<u8>) -> Result<bool, JournalError> {
        line.clear();
        reader.take(LONGEST_LINE).read_until(b'\n', line).map_err(self.unusable())?;
        if line.len() as u64 == LONGEST_LINE {
            let reason = format!("a line of more than {LONGEST_LINE} bytes");
            return Err(JournalError::Foreign { path: self.path.clone(), reason });
        }
        Ok(line.pop_if(|last| *last == b'\n').is_some())
    }

    /// Whether the first line `text` equals `head`; `rest` are the lines after it. An error if the job is another one,
    /// unless it has finished nothing.
    fn is_of_job(&self, text: &str, head: &Value, rest: &mut impl BufRead) -> Result<bool, JournalError> {
        let found: Value = serde_json::from_str(text).unwrap_or_default();
        if &found == head {
            return Ok(true);
        }
        let path = self.path.clone();
        if found["journal"] != head["journal"] || found["version"] != head["version"] {
            let reason = format!("it does not begin as one of {} version {}", head["journal"], head["version"]);
            return Err(JournalError::Foreign { path, reason });
        }
        let mut finished = 0;
        let mut line = Vec::new();
        while self.next_line(rest, &mut line)? {
            finished += 1;
        }
        if finished == 0 {
            return Ok(false);
        }
        let changed = differences(&found, head).into_iter().flat_map(within_lists);
        let differences = changed.map(|(name, was, is)| in_words(&name, was, is)).collect();
        Err(JournalError::OtherRun { path, items: self.items, finished, differences })
    }

    /// Adds a line and returns its offset.
    pub fn append(&mut self, line: &str) -> Result<u64, JournalError> {
        let offset = self.length;
        let text = with_line_sum(line) + "\n";
        let mut write = || {
            // Overwrites the remains of an earlier, failed write.
            self.file.seek(SeekFrom::Start(offset))?;
            self.file.write_all(text.as_bytes())
        };
        match write() {
            Ok(()) => {
                self.length += text.len() as u64;
                Ok(offset)
            }
            Err(cause) => {
                // If this fails too, the next `open` removes the incomplete line.
                let _ = self.file.set_len(offset);
                Err(JournalError::Append { path: self.path.clone(), items: self.items, cause })
            }
        }
    }

    /// The line at an offset that `open` or `append` gave out.
    pub fn line_at(&self, offset: u64) -> Result<String, JournalError> {
        let mut file = &self.file;
        file.seek(SeekFrom::Start(offset)).map_err(self.unusable())?;
        let mut line = Vec::new();
        self.next_line(&mut BufReader::new(file), &mut line)?;
        let stored = String::from_utf8(line).map_err(|error| self.unusable()(io::Error::other(error)))?;
        without_line_sum(&stored).map(str::to_owned).map_err(|error| self.unusable()(io::Error::other(error)))
    }

    /// Waits until all lines are on the disk.
    pub fn sync(&self) -> Result<(), JournalError> {
        self.file.sync_all().map_err(self.unusable())
    }

    /// Deletes the journal, once the job's result is saved elsewhere. Best effort, because the result is whole: a
    /// journal that stays only lets the same job, given again, take its items from it.
    pub fn remove(self) {
        let _ = fs::remove_file(&self.path);
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    fn unusable(&self) -> impl Fn(io::Error) -> JournalError + use<> {
        let path = self.path.clone();
        move |cause| JournalError::Use { path: path.clone(), cause }
    }

    fn damaged(&self, line: u64, reason: String) -> JournalError {
        JournalError::Damaged { path: self.path.clone(), line, reason }
    }
}

/// Opens or creates the file and locks it.
fn open_locked(path: &Path) -> Result<File, JournalError> {
    let failed = |cause| JournalError::Use { path: path.into(), cause };
    loop {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false).open(path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(JournalError::Locked { path: path.into() }),
            Err(TryLockError::Error(cause)) => return Err(failed(cause)),
        }
        if system::is_same_file(&file, path) {
            return Ok(file);
        }
        // The process that held the lock has removed the file meanwhile.
    }
}

/// The path of a value in two documents, and the value in both.
type Difference<'a> = (String, &'a Value, &'a Value);

/// The differences between the objects of two lists of the same length, else that between the values.
fn within_lists<'a>((name, was, is): Difference<'a>) -> Vec<Difference<'a>> {
    let (Some(before), Some(now)) = (was.as_array(), is.as_array()) else { return vec![(name, was, is)] };
    if before.len() != now.len() || !before.iter().chain(now).all(Value::is_object) {
        return vec![(name, was, is)];
    }
    let of_object = |(index, (was, is)): (usize, (&'a Value, &'a Value))| {
        let fields = differences(was, is).into_iter();
        fields.map(|(field, was, is)| (format!("{name}.{index}.{field}"), was, is)).collect::<Vec<_>>()
    };
    before.iter().zip(now).enumerate().flat_map(of_object).collect()
}

/// A difference for a message. `program` and `files` are the hashes of an engine's files.
fn in_words(name: &str, was: &Value, is: &Value) -> String {
    let are_texts = was.is_string() && is.is_string();
    if are_texts && name.ends_with(".program") {
        format!("{name}: the program's file has changed")
    } else if are_texts && name.contains(".files.") {
        format!("{name}: this file has changed")
    } else {
        format!("{name} was {was}, is now {is}")
    }
}

/// The values that differ between two documents, each with its path in them.
pub(super) fn differences<'a>(found: &'a Value, expected: &'a Value) -> Vec<Difference<'a>> {
    let mut all = Vec::new();
    add_differences("", found, expected, &mut all);
    all
}

fn add_differences<'a>(name: &str, found: &'a Value, expected: &'a Value, differences: &mut Vec<Difference<'a>>) {
    if found == expected {
        return;
    }
    let (Some(found_fields), Some(expected_fields)) = (found.as_object(), expected.as_object()) else {
        differences.push((name.to_owned(), found, expected));
        return;
    };
    let added = expected_fields.keys().filter(|key| !found_fields.contains_key(*key));
    for key in found_fields.keys().chain(added) {
        let inner = if name.is_empty() { key.clone() } else { format!("{name}.{key}") };
        add_differences(&inner, &found[key], &expected[key], differences);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn head(seed: u64) -> Value {
        json!({ "journal": "tests", "version": 1, "settings": { "seed": seed, "limit": { "nodes": 5 } } })
    }

    fn open(path: &Path, seed: u64) -> Result<(Journal, Vec<(u64, String)>), String> {
        let mut lines = Vec::new();
        let mut each = |offset, line: &str| match line {
            "bad" => Err("no number".to_owned()),
            _ => {
                lines.push((offset, line.to_owned()));
                Ok(())
            }
        };
        let journal = Journal::open(path, "numbers", &head(seed), &mut each).map_err(|error| error.to_string())?;
        Ok((journal, lines))
    }

    #[test]
    fn lines_survive_wherever_the_process_is_killed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("j");
        let (mut journal, lines) = open(&path, 1).unwrap();
        assert!(lines.is_empty());
        for line in ["one", "two", "three"] {
            let offset = journal.append(line).unwrap();
            assert_eq!(journal.line_at(offset).unwrap(), line);
        }
        drop(journal);
        let content = fs::read(&path).unwrap();
        for end in 0..=content.len() {
            fs::write(&path, &content[..end]).unwrap();
            let (mut journal, lines) = open(&path, 1).unwrap();
            for (offset, line) in &lines {
                assert_eq!(&journal.line_at(*offset).unwrap(), line);
            }
            let missing = &["one", "two", "three"][lines.len()..];
            for line in missing {
                journal.append(line).unwrap();
            }
            assert_eq!(fs::read(&path).unwrap(), content, "{end}");
        }
    }

    /// With any bit flipped, a journal is refused, or gives its lines, the last of which may be missing.
    #[test]
    fn flipped_bits_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("j");
        let lines = ["{\"number\":1}", "7 -31 e2e4", "three"];
        let (mut journal, _) = open(&path, 1).unwrap();
        for line in lines {
            journal.append(line).unwrap();
        }
        drop(journal);
        let content = fs::read(&path).unwrap();
        for bit in 0..8 * content.len() {
            let mut bytes = content.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            fs::write(&path, &bytes).unwrap();
            if let Ok((_, found)) = open(&path, 1) {
                let found: Vec<String> = found.into_iter().map(|(_, line)| line).collect();
                assert!(found == lines || bit / 8 == content.len() - 1 && found == lines[..2], "bit {bit}: {found:?}");
            }
        }
    }

    #[test]
    fn other_journals_are_refused_and_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("j");
        let check = |text: &str, expected: &str| {
            fs::write(&path, text).unwrap();
            let error = open(&path, 2).map(drop).unwrap_err();
            assert!(error.contains(expected), "{error}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        };
        let other = head(1);
        check(
            &format!("{}\none\ntw", with_line_sum(&other.to_string())),
            "holds 1 numbers of an interrupted run with other settings (settings.seed was 1, is now 2)",
        );
        check("my notes", "is not a journal (it ends within its first line)");
        check("[Event \"x\"]\n", "is not a journal (it does not begin as one of \"tests\" version 1)");
        let lines = [&head(2).to_string(), "one", "bad"].map(|line| with_line_sum(line) + "\n");
        check(&lines.concat(), "line 3 of the journal");
        // A journal without an item is begun again.
        fs::write(&path, with_line_sum(&other.to_string()) + "\n{\"nu").unwrap();
        assert!(open(&path, 2).unwrap().1.is_empty());
        assert_eq!(fs::read_to_string(&path).unwrap(), with_line_sum(&head(2).to_string()) + "\n");
        fs::remove_file(&path).unwrap();
        let locked = open(&path, 2).unwrap();
        assert!(open(&path, 2).map(drop).unwrap_err().contains("another process is writing"));
        locked.0.remove();
        assert!(open(&path, 2).is_ok());
    }

    #[test]
    fn differences_are_told_in_words() {
        let check = |was: Value, is: Value, expected: &[&str]| {
            let (was, is) = (json!({ "players": was }), json!({ "players": is }));
            let found = differences(&was, &is).into_iter().flat_map(within_lists);
            let found: Vec<String> = found.map(|(name, was, is)| in_words(&name, was, is)).collect();
            assert_eq!(found, expected);
        };
        let engine = |program: &str, net: &str| json!({ "engine": { "program": program, "files": { "net": net } } });
        check(
            json!([{ "nodes": 1 }, engine("a", "b")]),
            json!([{ "nodes": 2 }, engine("c", "d")]),
            &[
                "players.0.nodes was 1, is now 2",
                "players.1.engine.program: the program's file has changed",
                "players.1.engine.files.net: this file has changed",
            ],
        );
        let new = json!([{ "engine": { "program": "a" } }]);
        check(json!([{ "engine": {} }]), new, &["players.0.engine.program was null, is now \"a\""]);
        check(json!([1, 2]), json!([1, 3]), &["players was [1,2], is now [1,3]"]);
        check(json!([{}]), json!([{}, {}]), &["players was [{}], is now [{},{}]"]);
    }
}
