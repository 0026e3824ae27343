//! Failures: killed processes, wrong bytes, missing shared memory.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use fsbench::data::{Method, Split};
use fsbench::service::{Client, Description, END, FAILED, Layout, ReadOptions, Request, Shard, ShmNaming};

use super::common::{with_default_signals, write_many_games};
use super::fixture::{CopiedBatch, Fixture, program};
use super::skip::skip;

/// Far longer than any of these events takes; what takes longer hangs.
const TIMEOUT: Duration = Duration::from_secs(20);

pub fn kill(process: u32) {
    signal(process, "KILL");
}

pub fn signal(process: u32, name: &str) {
    let status = Command::new("kill").args(["-s", name, &process.to_string()]).status().expect("kill exists");
    assert!(status.success());
}

pub fn wait(child: &mut Child) -> i32 {
    let deadline = Instant::now() + TIMEOUT;
    while Instant::now() < deadline {
        if let Some(status) = child.try_wait().expect("our child") {
            return status.code().unwrap_or(-1);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().expect("our child");
    panic!("still running after {TIMEOUT:?}");
}

/// Runs a check on every kind of stream: both methods, both layouts, a mapped file and a binpack.
fn for_every_stream(mut check: impl FnMut(Request)) {
    for method in [Method::Eval, Method::Pqr] {
        let fixture = Fixture::new(method);
        for data in [fixture.path.clone(), fixture.binpack()] {
            for layout in [Layout::Csr, Layout::Bitset] {
                check(Request { data: data.clone().into(), layout, epochs: 0, ..fixture.request() });
            }
        }
    }
}

/// Waits until a condition holds; fails with `message` after a while.
pub fn wait_until(message: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    while !condition() {
        assert!(Instant::now() < deadline, "{message}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Whether a process has ended, reaped or not.
pub fn is_gone(process: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"));
    status.is_ok_and(|status| status.contains("State:\tZ")) || !Path::new(&format!("/proc/{process}")).exists()
}

/// Files in /dev/shm that a service without `--shm named` may have left.
fn leftovers() -> Vec<String> {
    let names = std::fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let is_named = |name: &String| name.starts_with("fsbench-samples-");
    names.filter(|name| (name.starts_with(".tmp") || name.contains("fsbench")) && !is_named(name)).collect()
}

/// Names in /dev/shm that a process has created.
pub fn names_of(process: u32) -> Vec<String> {
    let names = std::fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with(&format!("fsbench-samples-{process}-"))).collect()
}

/// Number of shared-memory files, named or not, that a process maps.
fn mappings(process: u32) -> usize {
    let maps = std::fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default();
    maps.lines().filter(|line| line.contains("/dev/shm/")).count()
}

/// How long a service driven by hand may run. A test that waits for a byte that never comes then fails.
const LIFETIME: Duration = Duration::from_secs(120);

/// A service driven by hand, to do what no client would.
pub struct RawService {
    pub child: Child,
    pub input: Option<ChildStdin>,
    pub output: Option<BufReader<ChildStdout>>,
    pub description: Option<Description>,
    /// Ends the thread that kills the service after `LIFETIME`.
    _alive: Sender<()>,
}

impl RawService {
    pub fn start(request: &Request) -> RawService {
        let mut raw = RawService::spawn(request);
        let mut line = String::new();
        raw.output().read_line(&mut line).expect("a line");
        raw.description = serde_json::from_str(&line).ok();
        raw
    }

    /// Starts a service without reading its description.
    pub fn spawn(request: &Request) -> RawService {
        RawService::run(Command::new(program()).args(request.arguments().expect("UTF-8")))
    }

    /// Starts any command in place of the service. Signals have their default effect, even if this test runs under
    /// `nohup`, which ignores SIGHUP.
    pub fn run(command: &Command) -> RawService {
        let mut child = with_default_signals(command, &[])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the service starts");
        let input = child.stdin.take();
        let output = child.stdout.take().map(BufReader::new);
        let (alive, watched) = channel();
        let process = child.id();
        std::thread::spawn(move || {
            if watched.recv_timeout(LIFETIME) == Err(RecvTimeoutError::Timeout) {
                kill(process);
            }
        });
        RawService { child, input, output, description: None, _alive: alive }
    }

    pub fn description(&self) -> &Description {
        self.description.as_ref().expect("a description")
    }

    pub fn output(&mut self) -> &mut BufReader<ChildStdout> {
        self.output.as_mut().expect("open")
    }

    pub fn byte(&mut self) -> u8 {
        let mut byte = [0];
        self.output().read_exact(&mut byte).expect("a byte");
        byte[0]
    }

    pub fn send(&mut self, byte: u8) {
        self.input.as_mut().expect("open").write_all(&[byte]).expect("the service listens");
    }

    pub fn errors(&mut self) -> String {
        let mut text = String::new();
        self.child.stderr.take().expect("piped").read_to_string(&mut text).expect("text");
        text
    }
}

#[test]
fn a_killed_service_is_an_error_at_once() {
    for_every_stream(|request| {
        let mut client = Client::spawn(program(), &request).expect("starts");
        client.next().expect("a batch");
        assert_eq!(mappings(client.process_id()), 1);
        kill(client.process_id());
        let start = Instant::now();
        let error = loop {
            // Batches announced before the kill are still delivered.
            if let Err(error) = client.next() {
                break error.to_string();
            }
        };
        assert!(start.elapsed() < TIMEOUT);
        assert_eq!(error, "the sample service died in the middle of its stream (signal: 9 (SIGKILL))");
        drop(client);
        assert_eq!(mappings(std::process::id()), 0, "the dead service's memory is still mapped");
        assert!(leftovers().is_empty(), "{:?}", leftovers());
    });
}

#[test]
fn a_service_killed_before_its_first_line_is_an_error() {
    let fixture = Fixture::new(Method::Eval);
    let many = fixture.path.with_extension("pgn.zst");
    write_many_games(&many);
    let request = Request { data: many.into(), ..fixture.request() };
    let cache = fixture.path.with_file_name("cache");
    let mut raw =
        RawService::run(Command::new(program()).args(request.arguments().expect("UTF-8")).env("FSBENCH_CACHE", cache));
    std::thread::sleep(Duration::from_millis(200));
    assert!(raw.child.try_wait().expect("our child").is_none());
    kill(raw.child.id());
    let mut rest = Vec::new();
    raw.output().read_to_end(&mut rest).expect("its end closes");
    assert!(rest.is_empty(), "{rest:?}");
    assert!(leftovers().is_empty(), "{:?}", leftovers());
}

const CONSUMER_DATA: &str = "FSBENCH_TEST_CONSUMER_DATA";
const CONSUMER_METHOD: &str = "FSBENCH_TEST_CONSUMER_METHOD";
const CONSUMER_LAYOUT: &str = "FSBENCH_TEST_CONSUMER_LAYOUT";
const CONSUMER_SHM: &str = "FSBENCH_TEST_CONSUMER_SHM";

/// Not a test: the consumer process that the next test kills.
#[test]
#[ignore = "started by a_killed_consumer_takes_the_service_along"]
fn consumer_process() {
    let Some(data) = std::env::var_os(CONSUMER_DATA) else { return };
    let named = |variable| std::env::var(variable).expect("given");
    let method = if named(CONSUMER_METHOD) == "pqr" { Method::Pqr } else { Method::Eval };
    let layout = if named(CONSUMER_LAYOUT) == "bitset" { Layout::Bitset } else { Layout::Csr };
    let shm = if named(CONSUMER_SHM) == "named" { ShmNaming::Named } else { ShmNaming::Unnamed };
    let request =
        Request { epochs: 0, batch_size: 100, layout, shm, ..Request::new("piece", PathBuf::from(data), method) };
    let mut client = Client::spawn(program(), &request).expect("the service starts");
    println!("\nservice {}", client.process_id());
    client.next().expect("a batch");
    std::thread::sleep(Duration::from_secs(3600));
}

#[test]
fn a_killed_consumer_takes_the_service_along() {
    let check = |data: &Path, method: &str, layout: &str, shm: &str| {
        let mut consumer = Command::new(std::env::current_exe().expect("this test"))
            .args(["--exact", "failures::consumer_process", "--ignored", "--nocapture"])
            .envs([(CONSUMER_METHOD, method), (CONSUMER_LAYOUT, layout), (CONSUMER_SHM, shm)])
            .env(CONSUMER_DATA, data)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("this test starts");
        let lines = BufReader::new(consumer.stdout.take().expect("piped")).lines();
        let service =
            lines.map(|line| line.expect("text")).find_map(|line| line.strip_prefix("service ")?.parse().ok());
        let service: u32 = service.expect("the consumer names its service");
        assert!(!is_gone(service));
        consumer.kill().expect("our child");
        consumer.wait().expect("our child");
        wait_until("the service outlives its consumer", || is_gone(service));
        assert!(names_of(service).is_empty(), "{:?}", names_of(service));
        assert!(leftovers().is_empty(), "{:?}", leftovers());
    };
    for (method, name) in [(Method::Eval, "eval"), (Method::Pqr, "pqr")] {
        let fixture = Fixture::new(method);
        check(&fixture.path, name, "csr", "unnamed");
        check(&fixture.binpack(), name, "bitset", "named");
    }
}

/// Once all slots are full the service sleeps, and ends when its stdin is closed even if nobody reads its stdout.
#[test]
fn a_service_that_is_not_read_uses_no_cpu_time() {
    for_every_stream(|request| {
        let mut raw = RawService::start(&request);
        let cpu_time = |process: u32| {
            let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).expect("it runs");
            let fields: Vec<&str> = stat.rsplit(") ").next().expect("fields").split(' ').collect();
            fields[11].parse::<u64>().expect("a number") + fields[12].parse::<u64>().expect("a number")
        };
        let process = raw.child.id();
        // Measured over longer than it takes to fill all slots.
        wait_until("the service does not sleep", || {
            let before = cpu_time(process);
            std::thread::sleep(Duration::from_millis(150));
            cpu_time(process) == before
        });
        assert!(raw.child.try_wait().expect("our child").is_none());
        drop(raw.input.take());
        assert_eq!(wait(&mut raw.child), 0);
        assert!(leftovers().is_empty(), "{:?}", leftovers());
    });
}

#[test]
fn a_consumer_that_closes_stdout_ends_the_service() {
    for_every_stream(|request| {
        let mut raw = RawService::start(&request);
        let slots: Vec<u8> = (0..request.slots()).map(|_| raw.byte()).collect();
        drop(raw.output.take());
        // The service notices when it announces the next batch.
        raw.send(slots[0]);
        assert_eq!(wait(&mut raw.child), 0, "{}", raw.errors());
        assert!(leftovers().is_empty(), "{:?}", leftovers());
    });
}

#[test]
fn two_services_at_once_do_not_interfere() {
    for_every_stream(|request| {
        let other = Request { seed: fsbench::units::Seed(77), ..request.clone() };
        let expected =
            [&request, &other].map(|request| next_five(&mut Client::spawn(program(), request).expect("starts")));
        let mut clients = [&request, &other].map(|request| Client::spawn(program(), request).expect("starts"));
        let [first, second] = &mut clients;
        assert_ne!(first.description().shm, second.description().shm);
        for batches in expected[0].iter().zip(&expected[1]) {
            assert!((&next(first), &next(second)) == batches);
        }
        let [first, mut second] = clients;
        kill(first.process_id());
        drop(first);
        next(&mut second);
    });
    assert!(leftovers().is_empty(), "{:?}", leftovers());
}

fn next(client: &mut Client) -> CopiedBatch {
    CopiedBatch::of(&client.next().expect("the service runs").expect("the stream has no end"))
}

fn next_five(client: &mut Client) -> Vec<CopiedBatch> {
    (0..5).map(|_| next(client)).collect()
}

#[test]
fn a_wrong_slot_number_ends_the_stream() {
    let check = |mut raw: RawService, wrong: u8| {
        raw.send(wrong);
        while raw.byte() != FAILED {}
        assert_eq!(wait(&mut raw.child), 1);
        let errors = raw.errors();
        assert!(errors.contains(&format!("the consumer wrote {wrong}, which is not the number of a slot")), "{errors}");
        assert!(leftovers().is_empty(), "{:?}", leftovers());
    };
    for_every_stream(|request| check(RawService::start(&Request { slots: Some(1), ..request }), 77));
    let fixture = Fixture::new(Method::Eval);
    for wrong in [1, 254, 255] {
        check(RawService::start(&Request { slots: Some(1), epochs: 0, ..fixture.request() }), wrong);
    }
}

/// The stream has two batches. The service does not announce slot 0 again once it is given back, and the stream goes on
/// because slot 1 is still held.
#[test]
fn a_slot_given_back_twice_ends_the_stream() {
    let fixture = Fixture::new(Method::Eval);
    let request = Request { epochs: 1, epoch_samples: Some(150), slots: Some(2), ..fixture.request() };
    let mut raw = RawService::start(&request);
    assert_eq!([raw.byte(), raw.byte(), raw.byte()], [0, 1, END]);
    raw.send(0);
    raw.send(0);
    assert_eq!(raw.byte(), FAILED);
    assert_eq!(wait(&mut raw.child), 1);
    let errors = raw.errors();
    assert!(
        errors.contains("the consumer wrote 0, which is not the number of a slot it holds (it holds 1)"),
        "{errors}"
    );
}

#[test]
fn closing_stdin_ends_the_service() {
    for_every_stream(|request| {
        for slots in [1, 4] {
            let mut raw = RawService::start(&Request { slots: Some(slots), ..request.clone() });
            raw.byte();
            drop(raw.input.take());
            assert_eq!(wait(&mut raw.child), 0);
            assert_eq!(raw.errors(), "");
        }
    });
    assert!(leftovers().is_empty(), "{:?}", leftovers());
}

/// The service has a /dev/shm of its own with less room than the slots need. It reports that, is not killed by a
/// signal, and leaves no file.
#[test]
fn a_full_dev_shm_is_an_error() {
    /// Mounts a /dev/shm that only this process sees, then runs the service.
    const SCRIPT: &str =
        "mount -t tmpfs -o size=$0 none /dev/shm && \"$@\"; status=$?; ls -A /dev/shm >&2; exit $status";
    let fixture = Fixture::new(Method::Eval);
    let run = |size: &str, request: &Request| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c", SCRIPT, size]).arg(program());
        command.args(request.arguments().expect("UTF-8")).stdin(Stdio::null()).output()
    };
    if !run("4m", &fixture.request()).is_ok_and(|output| output.status.success()) {
        skip("namespaces", "unshare cannot give a process its own /dev/shm here");
        return;
    }
    let named = Request { shm: ShmNaming::Named, ..fixture.request() };
    let served = run("4m", &named).expect("runs");
    assert!(served.status.success() && served.stderr.is_empty(), "{}", String::from_utf8_lossy(&served.stderr));
    let mut shm = [ShmNaming::Unnamed, ShmNaming::Named].into_iter().cycle();
    for_every_stream(|request| {
        let shm = shm.next().expect("without end");
        let request = Request { slots: Some(8), batch_size: 2_000, shm, ..request };
        let refused = run("256k", &request).expect("runs");
        let errors = String::from_utf8_lossy(&refused.stderr);
        assert_eq!((refused.status.code(), refused.stdout.as_slice()), (Some(1), &b""[..]), "{errors}");
        assert!(
            errors.contains("bytes of shared memory (8 slots of") && errors.contains("enlarge /dev/shm"),
            "{errors}"
        );
        assert!(!errors.contains("fsbench-samples-"), "a name is left behind: {errors}");
    });
}

#[test]
fn the_memory_stays_until_the_last_slot_is_given_back() {
    let fixture = Fixture::new(Method::Eval);
    let mut raw = RawService::start(&Request { epoch_samples: Some(150), ..fixture.request() });
    assert_eq!((raw.byte(), raw.byte(), raw.byte()), (0, 1, END));
    std::thread::sleep(Duration::from_millis(100));
    let length = std::fs::metadata(&raw.description().shm).expect("still there").len();
    assert_eq!(length, (raw.description().slots * raw.description().slot_bytes) as u64);
    raw.send(1);
    raw.send(0);
    assert_eq!(wait(&mut raw.child), 0);
    assert!(!Path::new(&raw.description().shm).exists());
}

#[test]
fn every_array_is_aligned_and_inside_its_slot() {
    let fixture = Fixture::new(Method::Pqr);
    let raw = RawService::start(&fixture.request());
    let about = raw.description();
    let mut end = 64;
    for array in &about.arrays {
        assert!(array.offset % 64 == 0 && array.offset >= end, "{array:?}");
        end = array.offset + array.len * array.dtype.bytes();
        assert!(about.header.iter().any(|field| field.name == array.count), "{array:?}");
    }
    assert!(end <= about.slot_bytes && about.slot_bytes.is_multiple_of(64));
    drop(raw.input);
}

pub fn check_refusal(request: &Request, exit: i32, message: &str) {
    let run =
        Command::new(program()).args(request.arguments().expect("UTF-8")).stdin(Stdio::null()).output().expect("runs");
    let errors = String::from_utf8_lossy(&run.stderr);
    assert!(errors.contains(message), "{errors}");
    assert_eq!((run.status.code(), run.stdout.as_slice()), (Some(exit), &b""[..]), "{errors}");
    let error = Client::spawn(program(), request).err().expect("refused");
    assert_eq!(error.is_request(), exit == 2, "{error}");
    let error = error.to_string();
    assert!(error.contains("ended before its first batch") && error.contains(message), "{error}");
}

#[test]
fn impossible_requests_are_refused_with_a_reason() {
    let fixture = Fixture::new(Method::Eval);
    let base = || Request { batch_size: 16_384, ..fixture.request() };
    check_refusal(&Request { data: "/nowhere.fsd".into(), ..base() }, 2, "/nowhere.fsd");
    check_refusal(&Request { slots: Some(201), ..base() }, 2, "the number of slots is 201; it must be 1 to 200");
    let reading = ReadOptions { training_share: Some(0.5), ..ReadOptions::default() };
    let request = Request { split: Split::Validation, reading, ..base() };
    check_refusal(&request, 2, "a share of the training games has no effect on the split validation; leave it out");
    check_refusal(&Request { batch_size: 0, ..base() }, 2, "the batch size is 0");
    check_refusal(&Request { method: Method::Pqr, ..base() }, 2, "was built for --method eval, not pqr");
    let bitset = |set: &str| Request { set: set.into(), layout: Layout::Bitset, ..base() };
    check_refusal(&bitset("king-piece"), 2, "use --layout csr or a batch size of at most 6");
    check_refusal(
        &Request { slots: Some(200), batch_size: 10_000_000, ..base() },
        1,
        "bytes of shared memory (200 slots of",
    );
    check_refusal(&Request { batch_size: 1_000_000_000, ..base() }, 2, "i32 offsets");
    check_refusal(&Request { shard: Shard { index: 2, of: 2 }, ..base() }, 2, "there is no shard 2/2");
}

#[test]
fn without_a_consumer_the_description_is_printed_and_nothing_hangs() {
    let fixture = Fixture::new(Method::Eval);
    let run = Command::new(program())
        .args(fixture.request().arguments().expect("UTF-8"))
        .stdin(Stdio::null())
        .output()
        .expect("runs");
    assert!(run.status.success());
    let line = run.stdout.split_inclusive(|&byte| byte == b'\n').next().expect("a line");
    let about: Description = serde_json::from_slice(line).expect("a description");
    assert_eq!((about.num_features, about.batch_size), (768, 100));
}
