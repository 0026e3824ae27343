//! What every system must do alike.

use std::fs::{self, File};
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::*;

#[test]
fn files_are_read_at_any_place_and_known_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("x");
    fs::write(&path, b"0123456789").expect("written");
    let file = File::open(&path).expect("there");
    let mut buffer = [0; 4];
    read_exact_at(&file, &mut buffer, 3).expect("inside");
    assert_eq!(&buffer, b"3456");
    let error = read_exact_at(&file, &mut buffer, 7).expect_err("it ends before");
    assert_eq!(error.kind(), std::io::ErrorKind::UnexpectedEof);
    assert!(is_same_file(&file, &path) && !is_removed(&file).expect("told"));
    fs::remove_file(&path).expect("removed");
    assert!(is_removed(&file).expect("told"));
    fs::write(&path, b"0123456789").expect("written");
    assert!(!is_same_file(&file, &path));
}

#[test]
fn a_lock_leaves_the_file_readable() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("lock");
    let open = || File::options().read(true).write(true).create(true).truncate(false).open(&path).expect("opened");
    let mut held = open();
    try_lock(&held, false).expect("free");
    held.write_all(b"whose").expect("written");
    assert!(matches!(try_lock(&open(), true), Err(std::fs::TryLockError::WouldBlock)));
    assert_eq!(fs::read(&path).expect("readable"), b"whose");
    drop(held);
    let (first, second) = (open(), open());
    try_lock(&first, true).and_then(|()| try_lock(&second, true)).expect("shared");
}

#[test]
fn memory_with_a_name_is_a_file_until_it_is_dropped() {
    let name = format!("fsbench-test-{}", std::process::id());
    assert!(free_bytes(&shm_folder()).expect("told") > 8192);
    let memory = NamedMemory::create(&name, 8192).expect("room");
    let path = shm_folder().join(&name);
    assert_eq!(path.metadata().expect("a file").len(), 8192);
    let taken = NamedMemory::create(&name, 8192).err().expect("its name is taken");
    assert_eq!(taken.kind(), std::io::ErrorKind::AlreadyExists);
    drop(memory);
    assert!(!path.exists());
}

#[test]
fn a_pipe_is_readable_when_it_has_data_or_ends() {
    let program = std::env::current_exe().expect("this program");
    let mut command = Command::new(program);
    // It prints a list of no tests.
    command.args(["--list", "no test has this name"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = in_own_group(&mut command).spawn().expect("started");
    let output = child.stdout.take().expect("piped");
    assert!(is_pipe(&output));
    let deadline = std::time::Instant::now() + Duration::from_secs(60);
    while !is_readable(&output, Duration::from_millis(100)) {
        assert!(std::time::Instant::now() < deadline, "it never ends");
    }
    assert!(child.wait().expect("it ends").success());
    assert!(is_readable(&output, Duration::ZERO), "its end can be read");
}

#[test]
fn the_process_is_known() {
    assert!(!hostname().is_empty());
    assert!(peak_memory().expect("told") > 1 << 20);
}
