//! Ends that nobody planned: killed partners, wrong bytes, memory that is not there.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use fsbench::data::Method;
use fsbench::service::{Client, Description, END, FAILED, Layout, Request};

use super::fixture::{Fixture, program};

/// Far more than any of these ends takes, far less than a hang.
const SOON: Duration = Duration::from_secs(20);

fn kill(process: u32) {
    let status = Command::new("kill").args(["-9", &process.to_string()]).status().expect("kill exists");
    assert!(status.success());
}

fn wait(child: &mut Child) -> i32 {
    let deadline = Instant::now() + SOON;
    while Instant::now() < deadline {
        if let Some(status) = child.try_wait().expect("our child") {
            return status.code().unwrap_or(-1);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().expect("our child");
    panic!("still running after {SOON:?}");
}

/// Whether a process neither runs nor waits to be reaped.
fn is_gone(process: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"));
    status.is_ok_and(|status| status.contains("State:\tZ")) || !Path::new(&format!("/proc/{process}")).exists()
}

/// Names in /dev/shm that could be ours.
fn leftovers() -> Vec<String> {
    let names = std::fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with(".tmp") || name.contains("fsbench")).collect()
}

/// The service by hand, for what no client would do.
struct Raw {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    description: Description,
}

impl Raw {
    fn start(request: &Request) -> Raw {
        let mut child = Command::new(program())
            .args(request.arguments())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the service starts");
        let input = child.stdin.take();
        let mut output = BufReader::new(child.stdout.take().expect("piped"));
        let mut line = String::new();
        output.read_line(&mut line).expect("a line");
        let description = serde_json::from_str(&line).expect("a description");
        Raw { child, input, output, description }
    }

    fn byte(&mut self) -> u8 {
        let mut byte = [0];
        self.output.read_exact(&mut byte).expect("a byte");
        byte[0]
    }

    fn send(&mut self, byte: u8) {
        self.input.as_mut().expect("open").write_all(&[byte]).expect("the service listens");
    }

    fn errors(&mut self) -> String {
        let mut text = String::new();
        self.child.stderr.take().expect("piped").read_to_string(&mut text).expect("text");
        text
    }
}

#[test]
fn a_killed_service_is_an_error_at_once() {
    let fixture = Fixture::new(Method::Eval);
    let mut client = Client::spawn(program(), &Request { epochs: 0, ..fixture.request() }).expect("starts");
    drop(client.next().expect("a batch"));
    kill(client.process_id());
    let start = Instant::now();
    let error = loop {
        // What was announced before is still delivered.
        if let Err(error) = client.next() {
            break error.to_string();
        }
    };
    assert!(start.elapsed() < SOON);
    assert_eq!(error, "the sample service died in the middle of its stream (signal: 9 (SIGKILL))");
    assert!(leftovers().is_empty(), "{:?}", leftovers());
}

const CONSUMER_DATA: &str = "FSBENCH_TEST_CONSUMER_DATA";

/// Not a test of its own: the consumer that the next test kills.
#[test]
#[ignore = "started by a_killed_consumer_takes_the_service_along"]
fn consumer_process() {
    let Some(data) = std::env::var_os(CONSUMER_DATA) else { return };
    let request = Request { epochs: 0, batch_size: 100, ..Request::new("piece", data, Method::Eval) };
    let mut client = Client::spawn(program(), &request).expect("the service starts");
    println!("\nservice {}", client.process_id());
    let _held = client.next().expect("a batch");
    std::thread::sleep(Duration::from_secs(3600));
}

#[test]
fn a_killed_consumer_takes_the_service_along() {
    let fixture = Fixture::new(Method::Eval);
    let mut consumer = Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", "failures::consumer_process", "--ignored", "--nocapture"])
        .env(CONSUMER_DATA, &fixture.path)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("this test starts");
    let lines = BufReader::new(consumer.stdout.take().expect("piped")).lines();
    let service = lines.map(|line| line.expect("text")).find_map(|line| line.strip_prefix("service ")?.parse().ok());
    let service: u32 = service.expect("the consumer names its service");
    assert!(!is_gone(service));
    consumer.kill().expect("our child");
    consumer.wait().expect("our child");
    let deadline = Instant::now() + SOON;
    while !is_gone(service) {
        assert!(Instant::now() < deadline, "the service outlives its consumer");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(leftovers().is_empty(), "{:?}", leftovers());
}

#[test]
fn a_wrong_slot_number_ends_the_stream() {
    let fixture = Fixture::new(Method::Eval);
    for (wrong, give_back_first) in [(77, false), (255, false), (0, true)] {
        let mut raw = Raw::start(&Request { epochs: 0, slots: 1, ..fixture.request() });
        assert_eq!(raw.byte(), 0);
        if give_back_first {
            raw.send(0);
            raw.send(0);
            raw.send(0);
        } else {
            raw.send(wrong);
        }
        while raw.byte() != FAILED {}
        assert_eq!(wait(&mut raw.child), 1);
        let errors = raw.errors();
        assert!(errors.contains(&format!("the consumer wrote {wrong}, which is no slot")), "{errors}");
    }
}

#[test]
fn closing_stdin_ends_the_service() {
    let fixture = Fixture::new(Method::Eval);
    for slots in [1, 4] {
        let mut raw = Raw::start(&Request { epochs: 0, slots, ..fixture.request() });
        raw.byte();
        drop(raw.input.take());
        assert_eq!(wait(&mut raw.child), 0);
        assert_eq!(raw.errors(), "");
    }
}

#[test]
fn the_memory_stays_until_the_last_slot_is_given_back() {
    let fixture = Fixture::new(Method::Eval);
    let mut raw = Raw::start(&Request { epoch_samples: Some(150), ..fixture.request() });
    assert_eq!((raw.byte(), raw.byte(), raw.byte()), (0, 1, END));
    std::thread::sleep(Duration::from_millis(100));
    let length = std::fs::metadata(&raw.description.shm).expect("still there").len();
    assert_eq!(length, (raw.description.slots * raw.description.slot_bytes) as u64);
    raw.send(1);
    raw.send(0);
    assert_eq!(wait(&mut raw.child), 0);
    assert!(!Path::new(&raw.description.shm).exists());
}

#[test]
fn every_array_lies_in_its_slot_aligned() {
    let fixture = Fixture::new(Method::Pqr);
    let raw = Raw::start(&fixture.request());
    let about = &raw.description;
    let mut end = 64;
    for array in &about.arrays {
        assert!(array.offset % 64 == 0 && array.offset >= end, "{array:?}");
        end = array.offset + array.len * array.dtype.bytes();
        assert!(about.header.iter().any(|field| field.name == array.count), "{array:?}");
    }
    assert!(end <= about.slot_bytes && about.slot_bytes.is_multiple_of(64));
    drop(raw.input);
}

fn check_refusal(request: &Request, exit: i32, message: &str) {
    let run = Command::new(program()).args(request.arguments()).stdin(Stdio::null()).output().expect("runs");
    let errors = String::from_utf8_lossy(&run.stderr);
    assert!(errors.contains(message), "{errors}");
    assert_eq!((run.status.code(), run.stdout.as_slice()), (Some(exit), &b""[..]), "{errors}");
    let error = Client::spawn(program(), request).err().expect("refused").to_string();
    assert!(error.contains("ended before its first batch") && error.contains(message), "{error}");
}

#[test]
fn impossible_requests_are_refused_with_a_reason() {
    let fixture = Fixture::new(Method::Eval);
    let base = || Request { batch_size: 16_384, ..fixture.request() };
    check_refusal(&Request { data: "/nowhere.fsd".into(), ..base() }, 2, "/nowhere.fsd");
    check_refusal(&Request { slots: 201, ..base() }, 2, "201 slots asked for; 1 to 200 are possible");
    check_refusal(&Request { batch_size: 0, ..base() }, 2, "a batch size of 0");
    check_refusal(&Request { method: Method::Pqr, ..base() }, 2, "was built for --method eval, not pqr");
    let bitset = |set: &str| Request { set: set.into(), layout: Layout::Bitset, ..base() };
    check_refusal(&bitset("king-piece"), 2, "ask for --layout csr or for a batch size of at most 6");
    check_refusal(&Request { slots: 200, batch_size: 10_000_000, ..base() }, 1, "bytes of shared memory (200 slots of");
    check_refusal(&Request { batch_size: 1_000_000_000, ..base() }, 2, "i32 offsets");
}

#[test]
fn without_a_consumer_the_description_is_printed_and_nothing_hangs() {
    let fixture = Fixture::new(Method::Eval);
    let run = Command::new(program()).args(fixture.request().arguments()).stdin(Stdio::null()).output().expect("runs");
    assert!(run.status.success());
    let line = run.stdout.split_inclusive(|&byte| byte == b'\n').next().expect("a line");
    let about: Description = serde_json::from_slice(line).expect("a description");
    assert_eq!((about.num_features, about.batch_size), (768, 100));
}
