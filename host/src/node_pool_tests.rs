// SPDX-License-Identifier: BSD-2-Clause
//! Tests of the shared pool, with members that leave or die, and with files that are in the way.

use std::os::unix::fs::MetadataExt as _;

use super::*;
use crate::{
    names::{self, SPACE},
    owner::{self, own_start},
};

const SHARE: Share = Share { reserved: 0, max: 100 };

/// A stand-in for an endpoint's segment: a locked file with its name.
struct Segment(File, u16);

fn segment(port: u16) -> Segment {
    Segment(owner::take_name(&names::name_of(port)).unwrap(), port)
}

impl Segment {
    fn owner(&self) -> Owner {
        let inode = self.0.metadata().unwrap().ino();
        Owner { port: self.1, inode, pid: std::process::id(), started: own_start() }
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        owner::remove_files(self.1, self.owner().inode);
    }
}

/// Returns the error of a failed call.
fn refusal(joined: io::Result<NodePool>) -> Option<Errno> {
    Errno::from_io_error(&joined.unwrap_err())
}

fn place(entries: u32) -> std::path::PathBuf {
    crate::directory::path().join(name_of(entries, 1))
}

/// Joins a pool of a size that no other test uses.
fn join(entries: u32, of: &Segment) -> io::Result<NodePool> {
    NodePool::join(entries, 1, SHARE, &of.owner())
}

#[test]
fn endpoints_share_entries_and_the_last_removes_the_file() {
    let (one, other) = (segment(90), segment(91));
    let (first, second) = (join(1001, &one).unwrap(), join(1001, &other).unwrap());
    assert_ne!(first.number, second.number);
    for _ in 0..60 {
        assert_eq!((first.take(), second.take()), (Ok(()), Ok(())));
    }
    assert_eq!(second.ledger.taken(), Ok(120));
    first.give_back();
    drop(first);
    assert_eq!(second.ledger.taken(), Ok(60));
    assert!(place(1001).exists());
    clean_up();
    assert!(place(1001).exists(), "it has a member");
    drop(second);
    assert!(!place(1001).exists());
}

#[test]
fn entries_of_a_dead_member_are_reclaimed() {
    let (one, other) = (segment(92), segment(93));
    let (first, second) = (join(1002, &one).unwrap(), join(1002, &other).unwrap());
    for _ in 0..5 {
        first.take().unwrap();
    }
    second.look_around();
    assert_eq!(second.ledger.taken(), Ok(5), "it lives");
    // As if the first member's process was killed: its segment and process no longer match.
    let map = second.ledger.words();
    let gone = Owner { inode: 1, started: 1, ..one.owner() };
    map.set_owner(first.number, &gone, SHARE);
    // `look_around` skips the member if another thread has the lock.
    while second.ledger.taken() != Ok(0) {
        second.look_around();
    }
    assert_eq!(map.owner(first.number), None);
    drop(first);
    assert_eq!(second.take(), Ok(()));
}

#[test]
fn every_member_is_checked_if_one_call_cannot_check_all() {
    let owners: Vec<_> = (120..122 + MEMBERS_PER_LOOK as u16).map(segment).collect();
    let pools: Vec<_> = owners.iter().map(|of| join(1008, of).unwrap()).collect();
    let (first, last) = (&pools[0], &pools[pools.len() - 1]);
    last.take().unwrap();
    let gone = Owner { inode: 1, started: 1, ..owners[owners.len() - 1].owner() };
    first.ledger.words().set_owner(last.number, &gone, SHARE);
    let until = Instant::now() + Duration::from_secs(10);
    // `look_around` skips the member if another thread has the lock.
    while first.ledger.taken() != Ok(0) {
        first.look_around();
        assert!(Instant::now() < until, "the last member is never looked at");
    }
}

#[test]
fn a_pool_without_members_is_made_anew_whatever_it_holds() {
    let one = segment(94);
    for content in [vec![], vec![0xff; LENGTH], vec![7; 100]] {
        std::fs::write(place(1003), content).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(place(1003), mode).unwrap();
        let pool = join(1003, &one).unwrap();
        assert_eq!((pool.take(), pool.ledger.taken()), (Ok(()), Ok(1)));
    }
    assert!(!place(1003).exists());
}

#[test]
fn damage_is_an_error() {
    let (one, other) = (segment(95), segment(96));
    let pool = join(1004, &one).unwrap();
    let map = pool.ledger.words();
    map.header(ENTRIES).store(7, Ordering::Relaxed);
    assert_eq!(refusal(join(1004, &other)), Some(Errno::PROTO));
    map.header(ENTRIES).store(1004, Ordering::Relaxed);
    assert!(join(1004, &other).is_ok());
    for word in [u64::MAX, 0x1_ffff] {
        map.word(STATE).store(word, Ordering::Relaxed);
        assert_eq!(pool.take(), Err(Refusal::Damaged));
        pool.give_back();
        assert_eq!(refusal(join(1004, &other)), Some(Errno::PROTO));
    }
}

#[test]
fn reserves_beyond_the_pool_and_files_open_to_others_are_refused() {
    let (one, other) = (segment(97), segment(98));
    let share = Share { reserved: 600, max: 600 };
    let pool = NodePool::join(1005, 1, share, &one.owner()).unwrap();
    let refused = NodePool::join(1005, 1, share, &other.owner());
    assert_eq!(refusal(refused), Some(Errno::INVAL));
    drop(pool);
    std::fs::write(place(1006), "").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    std::fs::set_permissions(place(1006), mode).unwrap();
    assert_eq!(refusal(join(1006, &one)), Some(Errno::ACCESS));
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(place(1006), mode).unwrap();
    // Only root can change the owner of a file.
    if std::os::unix::fs::chown(place(1006), Some(54_321), None).is_ok() {
        assert_eq!(refusal(join(1006, &one)), Some(Errno::ACCESS));
    }
    std::fs::remove_file(place(1006)).unwrap();
}

#[test]
fn an_exit_does_not_wait_for_a_lock_of_its_own_thread() {
    let own = segment(116);
    let pool = join(1009, &own).unwrap();
    // As if a signal handler called `exit` while this thread joins another pool.
    let turn = TURN.lock();
    pool.leave_at_exit();
    drop(turn);
    assert!(place(1009).exists());
    pool.leave_at_exit();
    assert!(!place(1009).exists());
}

/// Environment variable with the port of a process that
/// [`killed_processes_leave_accounts_that_add_up`] starts.
const PORT: &str = "TCAM_TEST_VICTIM";

#[test]
fn killed_processes_leave_accounts_that_add_up() {
    let own = segment(99);
    let pool = join(1007, &own).unwrap();
    for round in 0..10_u16 {
        let mut victims = [100, 101].map(|port| {
            std::process::Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "node_pool::tests::victim", "--ignored"])
                .env(PORT, port.to_string())
                .env(SPACE, std::process::id().to_string())
                .stdout(std::process::Stdio::null())
                .spawn()
                .unwrap()
        });
        let members = || (0..MAX_MEMBERS).filter(|&n| pool.ledger.words().owner(n).is_some());
        while members().count() < 3 {
            let ended = victims.iter_mut().any(|victim| victim.try_wait().unwrap().is_some());
            assert!(!ended, "a victim ended by itself");
        }
        // Kill the victims at another instant in each round, while they take and return entries.
        for _ in 0..3000 + 777 * round {
            if pool.take().is_ok() {
                pool.give_back();
            }
        }
        pool.take().unwrap();
        for victim in &mut victims {
            victim.kill().unwrap();
            victim.wait().unwrap();
        }
        while members().count() > 1 {
            pool.look_around();
        }
        assert_eq!(pool.ledger.taken(), Ok(u32::from(round) + 1), "only our own entries are left");
    }
}

#[test]
#[ignore = "killed_processes_leave_accounts_that_add_up runs it"]
fn victim() {
    let Ok(port) = std::env::var(PORT) else { return };
    let own = segment(port.parse().unwrap());
    let pool = join(1007, &own).unwrap();
    for held in (0..90).cycle() {
        if held < 45 {
            let _ = pool.take();
        } else {
            pool.give_back();
        }
    }
}

#[test]
fn endpoints_are_given_to_the_engines_in_turn() {
    let owners: Vec<_> = (110..115).map(segment).collect();
    let join = |of: &Segment| NodePool::join(12, 4, SHARE, &of.owner()).unwrap();
    let pools: Vec<_> = owners.iter().map(join).collect();
    for _ in 0..3 {
        pools[0].take().unwrap();
    }
    let takes: Vec<_> = pools.iter().map(EntryPool::take).collect();
    let empty = Err(Refusal::Empty);
    // The first and the fifth endpoint share an engine of three entries.
    assert_eq!(takes, [empty, Ok(()), Ok(()), Ok(()), empty]);
    assert!(pools[4].is_half_taken() && !pools[1].is_half_taken());
    drop(pools);
    assert!(!crate::directory::path().join(name_of(12, 4)).exists());
}
