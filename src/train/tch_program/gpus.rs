//! One GPU for one training: processes that train at the same time on a machine of several GPUs take one each.

use std::fs::File;
use std::path::{Path, PathBuf};

use crate::system;

/// CUDA's own list of the devices that a process may use. Slurm sets it for jobs with `--gres=gpu:1`.
pub const VISIBLE: &str = "CUDA_VISIBLE_DEVICES";
/// The list that is taken instead of all GPUs of the machine.
pub const LISTED: &str = "FSBENCH_GPUS";

/// A GPU, as CUDA's list names it, which other trainings leave alone until this is dropped or the process ends.
pub struct ClaimedGpu {
    pub name: String,
    /// Locked; `None` if all were taken, so that trainings share it.
    _lock: Option<File>,
}

/// The GPUs that trainings may use, as CUDA's list names them; the driver is not asked.
pub fn available() -> Vec<String> {
    let list = [LISTED, VISIBLE].into_iter().find_map(|variable| std::env::var(variable).ok());
    match &list {
        Some(list) => split(list),
        None => installed(Path::new("/proc/driver/nvidia/gpus")),
    }
}

/// A GPU for a training: the first that no other training of this user has, or one of theirs if there is none. `None`
/// on a machine with one GPU or none.
pub fn claim() -> Option<ClaimedGpu> {
    claim_of(&available(), &lock_folder())
}

/// As CUDA reads its list: it ends before a name that no GPU has, and the usual one is −1.
fn split(list: &str) -> Vec<String> {
    let names = list.split(',').map(str::trim).filter(|name| !name.is_empty());
    names.take_while(|name| *name != "-1").map(String::from).collect()
}

/// The numbers of the GPUs for which the driver has a folder.
fn installed(folder: &Path) -> Vec<String> {
    let count = std::fs::read_dir(folder).map_or(0, Iterator::count);
    (0..count).map(|number| number.to_string()).collect()
}

/// All processes of a user on a machine share it; it is emptied when the machine starts.
fn lock_folder() -> PathBuf {
    std::env::temp_dir()
}

fn claim_of(gpus: &[String], folder: &Path) -> Option<ClaimedGpu> {
    if gpus.len() < 2 {
        return None;
    }
    for name in gpus {
        if let Some(lock) = lock(name, folder) {
            return Some(ClaimedGpu { name: name.clone(), _lock: Some(lock) });
        }
    }
    // Different processes take different ones.
    let name = gpus[std::process::id() as usize % gpus.len()].clone();
    Some(ClaimedGpu { name, _lock: None })
}

/// The GPU's lock file, if no other process holds it. A folder without locks shares GPUs.
fn lock(name: &str, folder: &Path) -> Option<File> {
    let letters = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '-' };
    let name: String = name.chars().map(letters).collect();
    // Users of one machine cannot lock each other's files.
    let user = system::user();
    let path = folder.join(format!("fsbench-gpu-{user}-{name}.lock"));
    let file = File::options().create(true).append(true).open(path).ok()?;
    file.try_lock().is_ok().then_some(file)
}

#[cfg(test)]
#[allow(clippy::expect_used, reason = "tests")]
mod tests {
    use super::*;

    fn names(list: &str) -> Vec<String> {
        split(list)
    }

    #[test]
    fn each_training_has_a_gpu_of_its_own() {
        let folder = tempfile::tempdir().expect("a folder");
        let claim = || claim_of(&names("2, GPU-5a/1,7"), folder.path()).expect("several GPUs");
        let first = claim();
        let second = claim();
        let third = claim();
        assert_eq!([&*first.name, &*second.name, &*third.name], ["2", "GPU-5a/1", "7"]);
        // All are taken: it is shared.
        let fourth = claim();
        assert!(names("2,GPU-5a/1,7").contains(&fourth.name));
        drop(second);
        assert_eq!(claim().name, "GPU-5a/1");
    }

    #[test]
    fn one_gpu_needs_no_choice() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(claim_of(&names("3"), folder.path()).is_none());
        assert!(claim_of(&names(""), folder.path()).is_none());
        assert!(names("-1").is_empty());
        assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0);
    }

    #[test]
    fn gpus_are_counted_by_the_driver_s_folders() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(installed(&folder.path().join("none")).is_empty());
        for name in ["0000:17:00.0", "0000:65:00.0"] {
            std::fs::create_dir(folder.path().join(name)).expect("a folder");
        }
        assert_eq!(installed(folder.path()), ["0", "1"]);
    }
}
