//! Notes of submissions: which task of which job does which steps, and where its log is.

use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::SlurmError;
use super::stages::{ArrayTask, JobArray};
use crate::output::file_lock::{FileLock, LockError};
use crate::record::{read_checked_json, write_checked_json};
use crate::units::SortedMap;

/// The end of a log that is shown: so many lines, and so many bytes.
const LINES: usize = 12;
const BYTES: u64 = 8 << 10;

/// A submission takes less than this, unless the cluster hangs.
const PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(200);

/// A job array that was submitted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SubmittedArray {
    pub job: u64,
    pub stage: String,
    /// Keys of steps by task.
    pub tasks: SortedMap<u32, Vec<String>>,
}

impl SubmittedArray {
    pub fn new(job: u64, array: &JobArray<'_>) -> SubmittedArray {
        let keys = |keys: &Vec<&str>| keys.iter().map(|&key| key.to_owned()).collect();
        let tasks = array.tasks.iter().map(|(task, of_task)| (*task, keys(of_task))).collect();
        SubmittedArray { job, stage: array.stage.clone(), tasks }
    }
}

/// All submissions of an experiment. Only one process has them open.
pub struct Submissions {
    folder: PathBuf,
    arrays: Vec<SubmittedArray>,
    /// The newest task of each step.
    places: SortedMap<String, ArrayTask>,
    _lock: FileLock,
}

impl Submissions {
    pub fn open(folder: &Path) -> Result<Submissions, SlurmError> {
        let lock_path = folder.join("lock");
        let failed = |source| SlurmError::File { path: lock_path.clone(), source };
        std::fs::create_dir_all(folder).map_err(failed)?;
        let begun = Instant::now();
        let lock = loop {
            match FileLock::alone(&lock_path) {
                Ok(lock) => break lock,
                Err(LockError::Held { .. }) if begun.elapsed() < PATIENCE => std::thread::sleep(POLL),
                Err(held @ LockError::Held { .. }) => return Err(SlurmError::Busy(held)),
                Err(LockError::Io { path, source }) => return Err(SlurmError::File { path, source }),
            }
        };
        let path = folder.join(ARRAYS);
        let arrays = if path.exists() { read_checked_json(&path)? } else { Vec::new() };
        let mut submissions =
            Submissions { folder: folder.to_path_buf(), arrays: Vec::new(), places: SortedMap::new(), _lock: lock };
        arrays.into_iter().for_each(|array| submissions.add(array));
        Ok(submissions)
    }

    fn add(&mut self, array: SubmittedArray) {
        for (&task, keys) in &array.tasks {
            self.places.extend(keys.iter().map(|key| (key.clone(), ArrayTask { job: array.job, task })));
        }
        self.arrays.push(array);
    }

    /// Keeps a note of an array, on the disk as well.
    pub fn note(&mut self, array: SubmittedArray) -> Result<(), SlurmError> {
        self.add(array);
        Ok(write_checked_json(&self.folder.join(ARRAYS), &self.arrays)?)
    }

    pub fn is_empty(&self) -> bool {
        self.arrays.is_empty()
    }

    pub fn folder(&self) -> PathBuf {
        self.folder.clone()
    }

    /// The newest task that does a step.
    pub fn place_of(&self, key: &str) -> Option<ArrayTask> {
        self.places.get(key).copied()
    }

    pub fn log_of(&self, place: ArrayTask) -> PathBuf {
        log_path(&self.folder, &place.job.to_string(), &place.task.to_string())
    }
}

const ARRAYS: &str = "arrays.json";

/// The log of a task; `sbatch --output` takes `%A` and `%a` in their place.
pub fn log_path(folder: &Path, job: &str, task: &str) -> PathBuf {
    folder.join("logs").join(format!("{job}_{task}.log"))
}

/// The last lines of a log; `None` if there is none: the task has not begun.
pub fn end_of(log: &Path) -> Result<Option<String>, SlurmError> {
    let read = || {
        let mut file = File::open(log)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(BYTES)))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    match read() {
        Ok(text) => {
            let lines: Vec<&str> = text.trim_end().lines().collect();
            Ok(Some(lines[lines.len().saturating_sub(LINES)..].join("\n")))
        }
        Err(error) if ErrorKind::NotFound == std::io::Error::kind(&error) => Ok(None),
        Err(source) => Err(SlurmError::File { path: log.to_path_buf(), source }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(job: u64) -> SubmittedArray {
        SubmittedArray { job, stage: "train".into(), tasks: SortedMap::from([(0, vec![format!("key {job}")])]) }
    }

    #[test]
    fn a_note_with_a_flipped_bit_is_refused_or_equal() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut submissions = Submissions::open(folder.path()).expect("opened");
        [17, 23].into_iter().for_each(|job| submissions.note(array(job)).expect("written"));
        drop(submissions);
        let path = folder.path().join(ARRAYS);
        let whole = std::fs::read(&path).expect("written");
        assert_eq!(Submissions::open(folder.path()).expect("opened").arrays, [array(17), array(23)]);
        let mut refused = 0;
        for bit in (0..8 * whole.len()).step_by(7) {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(&path, bytes).expect("written");
            match Submissions::open(folder.path()) {
                Ok(submissions) => assert_eq!(submissions.arrays, [array(17), array(23)], "bit {bit}"),
                Err(_) => refused += 1,
            }
        }
        assert!(refused > whole.len() / 2, "{refused}");
    }
}
