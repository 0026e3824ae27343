//! Shared memory with a name, and services that end while they prepare their data.

use std::path::{Path, PathBuf};
use std::process::Command;

use fsbench::data::Method;
use fsbench::service::{Client, END, Layout, Request, ShmNaming};

use super::common::write_many_games;
use super::failures::{RawService, is_gone, kill, names_of, signal, wait, wait_until};
use super::fixture::{Fixture, all_batches, program};

fn named(fixture: &Fixture) -> Request {
    Request { shm: ShmNaming::Named, epochs: 0, ..fixture.request() }
}

#[test]
fn a_name_does_not_change_the_batches() {
    for (method, layout) in [(Method::Eval, Layout::Csr), (Method::Pqr, Layout::Bitset)] {
        let fixture = Fixture::new(method);
        let request = Request { layout, ..fixture.request() };
        assert!(all_batches(&Request { shm: ShmNaming::Named, ..request.clone() }) == all_batches(&request));
    }
}

#[test]
fn the_name_goes_when_the_first_slot_comes_back() {
    let fixture = Fixture::new(Method::Eval);
    let mut raw = RawService::start(&named(&fixture));
    let path = PathBuf::from(&raw.description().shm);
    assert!(path.starts_with("/dev/shm") && path.exists(), "{}", path.display());
    let length = path.metadata().expect("it is there").len();
    let slots = raw.description().slots;
    assert_eq!(length, (slots * raw.description().slot_bytes) as u64);
    let memory = std::fs::File::open(&path).expect("ours");
    let first = raw.byte();
    raw.send(first);
    wait_until("the name outlives the first slot given back", || !path.exists());
    let process = raw.child.id();
    kill(process);
    wait_until("killed", || is_gone(process));
    assert!(names_of(process).is_empty());
    assert_eq!(memory.metadata().expect("still open").len(), length);
}

#[test]
fn a_name_goes_with_its_service() {
    let fixture = Fixture::new(Method::Eval);
    let check = |end: &dyn Fn(&mut RawService), status: i32| {
        let mut raw = RawService::start(&named(&fixture));
        let path = PathBuf::from(&raw.description().shm);
        assert!(path.exists());
        end(&mut raw);
        assert_eq!(wait(&mut raw.child), status);
        assert!(!path.exists());
    };
    check(&|raw| drop(raw.input.take()), 0);
    check(&|raw| signal(raw.child.id(), "TERM"), 143);
    check(&|raw| signal(raw.child.id(), "INT"), 130);
    check(&|raw| signal(raw.child.id(), "HUP"), 129);
    check(&|raw| raw.send(77), 1);
    let mut raw = RawService::start(&Request { epochs: 1, epoch_samples: Some(10), ..named(&fixture) });
    let path = PathBuf::from(&raw.description().shm);
    assert_eq!([raw.byte(), raw.byte()], [0, END]);
    assert!(path.exists());
    raw.send(0);
    assert_eq!(wait(&mut raw.child), 0);
    assert!(!path.exists());
}

#[test]
fn the_next_start_sweeps_what_a_killed_service_left() {
    let fixture = Fixture::new(Method::Eval);
    for next in [ShmNaming::Unnamed, ShmNaming::Named] {
        let raw = RawService::start(&named(&fixture));
        let path = PathBuf::from(&raw.description().shm);
        let alive = RawService::start(&named(&fixture));
        kill(raw.child.id());
        wait_until("killed", || is_gone(raw.child.id()));
        let mut client = Client::spawn(program(), &Request { shm: next, ..named(&fixture) }).expect("starts");
        assert!(!path.exists(), "{next:?}");
        assert!(Path::new(&alive.description().shm).exists());
        client.next().expect("it goes on");
        drop(alive.input);
    }
}

#[test]
fn a_client_removes_the_name_of_a_service_that_was_killed_under_it() {
    let fixture = Fixture::new(Method::Eval);
    let client = Client::spawn(program(), &named(&fixture)).expect("starts");
    let process = client.process_id();
    assert_eq!(names_of(process).len(), 1);
    kill(process);
    drop(client);
    assert!(names_of(process).is_empty());
}

/// The data set has more games than the service can read during the test.
#[test]
fn a_service_that_ends_while_it_builds_leaves_nothing() {
    let check = |end: &dyn Fn(&mut RawService), status: i32| {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let data = folder.path().join("games.pgn.zst");
        let cache = folder.path().join("cache");
        write_many_games(&data);
        let request = Request { threads: 2, ..Request::new("piece", &data, Method::Eval) };
        let mut raw = RawService::run(
            Command::new(program()).args(request.arguments().expect("UTF-8")).env("FSBENCH_CACHE", &cache),
        );
        let built = cache.join("data");
        let files = || -> Vec<PathBuf> {
            std::fs::read_dir(&built).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
        };
        wait_until("it builds nothing", || !files().is_empty());
        end(&mut raw);
        assert_eq!(wait(&mut raw.child), status, "{}", raw.errors());
        assert!(files().is_empty(), "{:?}", files());
    };
    check(&|raw| drop(raw.input.take()), 0);
    check(&|raw| signal(raw.child.id(), "TERM"), 143);
    check(&|raw| signal(raw.child.id(), "INT"), 130);
    check(&|raw| signal(raw.child.id(), "HUP"), 129);
}
