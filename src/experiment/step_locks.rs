//! Claims on steps: which process of which machine does a step. Processes that share a work folder claim a step before
//! they do it, so that no two do the same; the claim of a process that died is taken over.
//!
//! A claim is the file `claims/KEY` of the work folder. It appears by `link`, which is atomic on NFS too, and names its
//! holder. The holder writes it again every [`HEARTBEAT`]. A holder on this machine is dead when its process is gone,
//! one on another machine when its claim is older than [`PATIENCE`] by the file server's clock. A machine that slept
//! may find its claim taken over: whoever holds a claim looks ([`HeldClaim`]) before it writes files that others may
//! have written.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use crate::output::folder_lock::hostname;

/// Between two signs of life.
const HEARTBEAT: Duration = Duration::from_secs(10);
/// Without a sign of life for so long, a process on another machine counts as dead.
const PATIENCE: Duration = Duration::from_secs(120);

/// Numbers the claims of this process.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// A process that may hold claims.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Holder {
    host: String,
    pid: u32,
    /// The boot of the machine and the process namespace, in which `pid` means something.
    system: String,
    /// When the process began, in the kernel's ticks: another process may get the same number later.
    began: String,
    /// Its user's number. Processes of other users may be hidden.
    user: u32,
    /// Tells this claim from all others.
    claim: String,
}

/// The claims of a work folder.
pub(super) struct Claims {
    folder: PathBuf,
    patience: Duration,
}

/// A claim that this process holds until it is dropped.
pub(super) struct Claim {
    path: PathBuf,
    holder: Holder,
    /// Closing it ends the heartbeat.
    stop: Option<Sender<()>>,
    heartbeat: Option<JoinHandle<()>>,
}

impl Claims {
    /// # Errors
    /// When the folder cannot be made.
    pub(super) fn open(work: &Path) -> io::Result<Claims> {
        let folder = work.join("claims");
        std::fs::create_dir_all(&folder)?;
        Ok(Claims { folder, patience: PATIENCE })
    }

    /// Claims a step; `None` if a living process holds it.
    ///
    /// # Errors
    /// When the folder cannot be written or read.
    pub(super) fn try_claim(&self, key: &str) -> io::Result<Option<Claim>> {
        let path = self.folder.join(key);
        let holder = Holder::this();
        let own = OwnFile::create(&self.folder, &holder)?;
        let claimed = own.link(&path)? || self.take_over(&own, &path)?;
        drop(own);
        Ok(claimed.then(|| Claim::new(path, holder)))
    }

    /// Replaces the claim of a dead process by `own`; false if the holder lives, or another process is replacing it.
    fn take_over(&self, own: &OwnFile, path: &Path) -> io::Result<bool> {
        let Some(found) = self.dead_holder(path, own)? else { return Ok(false) };
        // Only the holder of this second file may replace the claim.
        let replacing = path.with_extension("replacing");
        if !own.link(&replacing)? {
            if self.dead_holder(&replacing, own)?.is_some() {
                remove(&replacing)?;
            }
            return Ok(false);
        }
        let unchanged = read(path)?.is_some_and(|holder| holder == found);
        let replaced = if unchanged { std::fs::rename(&own.path, path).map(|()| true) } else { Ok(false) };
        remove(&replacing)?;
        replaced
    }

    /// The holder that a claim names, if it is dead. A claim that names none was cut off by a full disk or a crash of
    /// the machine; its age decides.
    fn dead_holder(&self, path: &Path, own: &OwnFile) -> io::Result<Option<Holder>> {
        let Some(holder) = read(path)? else { return Ok(None) };
        if holder.system == own.holder.system {
            match process_began(holder.pid) {
                Some(began) => return Ok((began != holder.began).then_some(holder)),
                None if holder.user == own.holder.user => return Ok(Some(holder)),
                // Dead, or hidden (proc(5), hidepid): its age decides.
                None => {}
            }
        }
        let age = match std::fs::metadata(path).and_then(|data| data.modified()) {
            Ok(modified) => own.written()?.duration_since(modified).unwrap_or_default(),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        Ok((age > self.patience).then_some(holder))
    }
}

impl Claim {
    fn new(path: PathBuf, holder: Holder) -> Claim {
        let (stop, stopped) = channel();
        let beating = path.clone();
        let ours = holder.clone();
        let heartbeat = std::thread::spawn(move || {
            while stopped.recv_timeout(HEARTBEAT) == Err(RecvTimeoutError::Timeout) {
                // A sign of life is best effort: a missing one delays nothing but a takeover.
                let _ = OwnClaim::open(&beating, &ours).and_then(|own| own.map_or(Ok(()), OwnClaim::beat));
            }
        });
        Claim { path, holder, stop: Some(stop), heartbeat: Some(heartbeat) }
    }

    pub(super) fn held(&self) -> HeldClaim {
        HeldClaim { path: self.path.clone(), holder: self.holder.clone() }
    }
}

/// Tells whether a claim is still this process's.
#[derive(Clone, Debug)]
pub(super) struct HeldClaim {
    path: PathBuf,
    holder: Holder,
}

impl HeldClaim {
    /// False once another process has taken the claim over. A claim that cannot be read counts as held.
    pub(super) fn is_held(&self) -> bool {
        read(&self.path).map_or(true, |found| found.as_ref() == Some(&self.holder))
    }
}

/// The file of a claim, opened and seen to name its holder.
struct OwnClaim {
    file: File,
    bytes: Vec<u8>,
}

impl OwnClaim {
    /// `None` if another process has taken the claim over.
    fn open(path: &Path, holder: &Holder) -> io::Result<Option<OwnClaim>> {
        let mut file = OpenOptions::new().read(true).write(true).open(path)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok((bytes == holder.to_bytes()).then_some(OwnClaim { file, bytes }))
    }

    /// Writes the same bytes again: a write that is cut short leaves them as they are. A claim that replaces this one
    /// by now is another file.
    fn beat(mut self) -> io::Result<()> {
        self.file.rewind()?;
        self.file.write_all(&self.bytes)
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(heartbeat) = self.heartbeat.take() {
            let _ = heartbeat.join();
        }
        if matches!(read(&self.path), Ok(Some(holder)) if holder == self.holder) {
            let _ = remove(&self.path);
        }
    }
}

impl Holder {
    fn this() -> Holder {
        let nanoseconds = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
        let namespace = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        let pid = std::process::id();
        Holder {
            host: hostname(),
            pid,
            system: format!("{} {}", kernel_text("random/boot_id"), namespace.display()),
            began: process_began(pid).unwrap_or_default(),
            user: std::fs::metadata("/proc/self").map(|data| data.uid()).unwrap_or_default(),
            claim: format!("{pid}-{nanoseconds}-{}", NEXT.fetch_add(1, Ordering::Relaxed)),
        }
    }

    fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("texts and numbers are always JSON")
    }
}

/// A line of `/proc/sys/kernel`; empty where there is none.
fn kernel_text(name: &str) -> String {
    std::fs::read_to_string(Path::new("/proc/sys/kernel").join(name)).unwrap_or_default().trim().to_owned()
}

/// This process's file, which becomes a claim by a link or by renaming it.
struct OwnFile {
    path: PathBuf,
    holder: Holder,
}

impl OwnFile {
    fn create(folder: &Path, holder: &Holder) -> io::Result<OwnFile> {
        let path = folder.join(format!(".{}", holder.claim));
        let mut file = File::create_new(&path)?;
        let own = OwnFile { path, holder: holder.clone() };
        file.write_all(&holder.to_bytes())?;
        file.sync_all()?;
        Ok(own)
    }

    /// Gives the file a second name; false if there is a file of that name.
    fn link(&self, path: &Path) -> io::Result<bool> {
        match std::fs::hard_link(&self.path, path) {
            Ok(()) => Ok(true),
            // A server's answer may be lost, and the request repeated: the file's count of names tells (open(2),
            // O_EXCL).
            Err(_) if std::fs::metadata(&self.path)?.nlink() == 2 => Ok(true),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The file server's time at which the file was written, a moment ago.
    fn written(&self) -> io::Result<SystemTime> {
        std::fs::metadata(&self.path)?.modified()
    }
}

impl Drop for OwnFile {
    fn drop(&mut self) {
        let _ = remove(&self.path);
    }
}

/// The holder that a file names; `None` without the file. A file that names no holder counts as held by nobody.
fn read(path: &Path) -> io::Result<Option<Holder>> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some(serde_json::from_str(&String::from_utf8_lossy(&bytes)).unwrap_or_else(|_| Holder {
            host: String::new(),
            pid: 0,
            system: String::new(),
            began: String::new(),
            user: 0,
            claim: String::new(),
        }))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// When a process of this machine began, in the kernel's ticks (proc_pid_stat(5), field 22); `None` if there is none,
/// or only its exit status is left.
fn process_began(pid: u32) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the program's name in brackets, which may hold anything.
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut fields = rest.split(' ');
    let state = fields.next()?;
    (!matches!(state, "Z" | "X")).then(|| fields.nth(18).map(str::to_owned))?
}

/// The claim of another process, which lives.
#[cfg(test)]
pub(super) fn claim_of_another() -> Vec<u8> {
    Holder { claim: "other".into(), ..Holder::this() }.to_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    fn claims() -> (tempfile::TempDir, Claims) {
        let folder = tempfile::tempdir().expect("a folder");
        let claims = Claims::open(folder.path()).expect("a folder");
        (folder, claims)
    }

    fn files(claims: &Claims) -> usize {
        std::fs::read_dir(&claims.folder).expect("a folder").count()
    }

    #[test]
    fn a_step_is_claimed_once_until_the_claim_is_dropped() {
        let (_folder, claims) = claims();
        let claim = claims.try_claim("a").expect("writable").expect("free");
        assert!(claims.try_claim("a").expect("writable").is_none());
        assert!(claims.try_claim("b").expect("writable").is_some());
        drop(claim);
        assert_eq!(files(&claims), 0);
        assert!(claims.try_claim("a").expect("writable").is_some());
    }

    /// Of many threads that want a dead process's claim, again and again, one at a time gets it.
    #[test]
    fn the_claim_of_a_dead_process_is_taken_over_by_one() {
        use std::sync::atomic::AtomicU32;
        let (_folder, claims) = claims();
        let mut dead = Command::new("true").stdout(Stdio::null()).spawn().expect("true runs");
        let pid = dead.id();
        dead.wait().expect("it ends");
        for round in 0..50 {
            let holder = Holder { pid, began: "1".into(), claim: format!("dead {round}"), ..Holder::this() };
            std::fs::write(claims.folder.join("a"), holder.to_bytes()).expect("writable");
            let got = AtomicU32::new(0);
            std::thread::scope(|scope| {
                for _ in 0..8 {
                    scope.spawn(|| {
                        let claim = (0..20).find_map(|_| claims.try_claim("a").expect("writable"));
                        got.fetch_add(u32::from(claim.is_some()), Ordering::Relaxed);
                        // The claim stays, so that nobody else gets it.
                        std::mem::forget(claim);
                    });
                }
            });
            assert_eq!(got.into_inner(), 1, "round {round}");
            remove(&claims.folder.join("a")).expect("removed");
        }
        assert_eq!(files(&claims), 0);
    }

    #[test]
    fn a_sign_of_life_goes_to_the_own_claim_alone() {
        let (_folder, claims) = claims();
        let claim = claims.try_claim("a").expect("writable").expect("free");
        let long_ago = SystemTime::now() - 2 * PATIENCE;
        let age = |path: &Path| {
            let written = std::fs::metadata(path).and_then(|data| data.modified()).expect("the claim");
            SystemTime::now().duration_since(written).unwrap_or_default()
        };
        File::options().write(true).open(&claim.path).and_then(|file| file.set_modified(long_ago)).expect("set");
        OwnClaim::open(&claim.path, &claim.holder).expect("readable").expect("own").beat().expect("writable");
        assert!(age(&claim.path) < PATIENCE);
        assert_eq!(read(&claim.path).expect("readable").as_ref(), Some(&claim.holder));

        // Another process replaces the claim between the look at it and the sign of life.
        let own = OwnClaim::open(&claim.path, &claim.holder).expect("readable").expect("own");
        let other = Holder { claim: "other".into(), ..Holder::this() };
        let replacement = claims.folder.join("other");
        std::fs::write(&replacement, other.to_bytes()).expect("writable");
        std::fs::rename(&replacement, &claim.path).expect("renamed");
        own.beat().expect("writable");
        assert_eq!(read(&claim.path).expect("readable").as_ref(), Some(&other));
        assert!(OwnClaim::open(&claim.path, &claim.holder).expect("readable").is_none());
        // Nor does the end of the claim remove the other one.
        let path = claim.path.clone();
        drop(claim);
        assert_eq!(read(&path).expect("readable"), Some(other));
    }

    #[test]
    fn another_machine_is_dead_when_it_is_silent() {
        let (_folder, mut claims) = claims();
        let elsewhere = Holder { system: "another boot".into(), ..Holder::this() };
        let path = claims.folder.join("a");
        std::fs::write(&path, elsewhere.to_bytes()).expect("writable");
        assert!(claims.try_claim("a").expect("writable").is_none());
        let file = File::options().write(true).open(&path).expect("the claim");
        file.set_modified(SystemTime::now() - 2 * PATIENCE).expect("set");
        claims.patience = 3 * PATIENCE;
        assert!(claims.try_claim("a").expect("writable").is_none());
        claims.patience = PATIENCE;
        assert!(claims.try_claim("a").expect("writable").is_some());
    }

    #[test]
    fn a_hidden_process_of_another_user_is_dead_when_it_is_silent() {
        let (_folder, claims) = claims();
        let hidden = Holder { pid: u32::MAX, user: u32::MAX, ..Holder::this() };
        let path = claims.folder.join("a");
        std::fs::write(&path, hidden.to_bytes()).expect("writable");
        assert!(claims.try_claim("a").expect("writable").is_none());
        let file = File::options().write(true).open(&path).expect("the claim");
        file.set_modified(SystemTime::now() - 2 * PATIENCE).expect("set");
        assert!(claims.try_claim("a").expect("writable").is_some());
    }

    #[test]
    fn a_holder_sees_that_its_claim_was_taken_over() {
        let (_folder, claims) = claims();
        let claim = claims.try_claim("a").expect("writable").expect("free");
        let held = claim.held();
        assert!(held.is_held());
        let other = Holder { claim: "other".into(), ..Holder::this() };
        std::fs::write(&claim.path, other.to_bytes()).expect("writable");
        assert!(!held.is_held());
        drop(claim);
        remove(&held.path).expect("removed");
        assert!(!held.is_held());
    }

    #[test]
    fn a_cut_off_claim_counts_as_silent_when_it_is_old() {
        let (_folder, claims) = claims();
        let path = claims.folder.join("a");
        std::fs::write(&path, b"{\"ho").expect("writable");
        assert!(claims.try_claim("a").expect("writable").is_none());
        let file = File::options().write(true).open(&path).expect("the claim");
        file.set_modified(SystemTime::now() - 2 * PATIENCE).expect("set");
        assert!(claims.try_claim("a").expect("writable").is_some());
    }

    #[test]
    fn processes_are_told_apart_by_when_they_began() {
        let pid = std::process::id();
        let began = process_began(pid).expect("this process");
        assert!(began.parse::<u64>().expect("ticks") > 0);
        assert_eq!(process_began(u32::MAX), None);
    }
}
