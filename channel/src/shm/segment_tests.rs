// SPDX-License-Identifier: BSD-2-Clause
//! Tests of opening segments, of segments that dead owners leave behind, and of damaged segments.

use std::{
    net::Ipv4Addr,
    panic::{AssertUnwindSafe, catch_unwind},
};

use host::owner::{left_name, remove, remove_if_dead, remove_if_unclaimed, try_lock};
use rustix::fs::{FlockOperation, flock};

use super::*;

use crate::address::unpack;

fn directory() -> Directory {
    Directory::open().unwrap()
}

fn is_file(port: u16) -> bool {
    directory::path().join(name_of(port)).symlink_metadata().is_ok()
}

/// An address with a fixed port.
fn address(port: u16) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)
}

#[test]
fn a_segment_is_found_by_its_port_and_goes_with_its_owner() {
    let own = Segment::create(address(61)).unwrap();
    assert_eq!(Segment::create(address(61)).unwrap_err(), Errno::EADDRINUSE);
    let opened = Segment::open(61).unwrap().0;
    assert_eq!(opened.pid(), std::process::id());
    assert_eq!(opened.liveness(Look::Closely), Liveness::Alive);
    drop(own);
    assert_eq!(opened.liveness(Look::Closely), Liveness::Closed);
    assert_eq!(Segment::open(61).unwrap_err(), Errno::ECONNREFUSED);
}

#[test]
fn the_segment_of_a_dead_owner_is_removed() {
    let own = Segment::create(address(62)).unwrap();
    let opened = Segment::open(62).unwrap().0;
    // The lock is released and the file stays, as when a process is killed.
    flock(own.lock.as_ref().unwrap(), FlockOperation::Unlock).unwrap();
    assert_eq!(opened.liveness(Look::Closely), Liveness::Dead);
    assert!(!is_file(62));
    assert!(!opened.is_open(), "the process that removes it marks it");
    assert_eq!(opened.liveness(Look::Closely), Liveness::Dead);
}

#[test]
fn a_claimed_segment_is_left_to_its_claimant() {
    let job = 0x7e57 << 32 | u64::from(std::process::id());
    let own = Segment::create(address(71)).unwrap();
    own.show(&Live { job, ..Live::default() });
    flock(own.lock.as_ref().unwrap(), FlockOperation::Unlock).unwrap();
    let claim = directory::create_locked(&host::names::claim_of(job)).unwrap();
    let name = name_of(71);
    let file = directory().file(&name).unwrap();
    assert!(remove_if_dead(&directory(), &name) && !is_file(71));
    assert_eq!(Segment::open(71).unwrap_err(), Errno::ECONNREFUSED);
    let next = Segment::create(address(71)).unwrap();
    assert!(!remove(&directory(), &file, &name));
    assert_eq!(Segment::open(71).unwrap().0.inode, next.inode);
    let left = format!("{}-{}", left_name(&name).unwrap(), own.inode);
    remove_if_unclaimed(&directory(), &left);
    assert!(directory().inode(&left).is_some());
    drop(claim);
    remove_if_unclaimed(&directory(), &left);
    assert!(directory().inode(&left).is_none());
    directory().remove(&host::names::claim_of(job)).unwrap();
}

#[test]
fn a_lock_that_a_child_holds_does_not_keep_its_parent_alive() {
    let own = Segment::create(address(68)).unwrap();
    let opened = Segment::open(68).unwrap().0;
    assert_eq!(opened.liveness(Look::Closely), Liveness::Alive);
    // The lock is still held, but the process with this process id started at another time.
    own.word(STARTED).store(1, Ordering::Relaxed);
    assert_eq!(opened.liveness(Look::Closely), Liveness::Dead);
    assert!(!is_file(68));
}

#[test]
fn a_process_of_another_namespace_is_alive_while_the_lock_is_held() {
    let own = Segment::create(address(69)).unwrap();
    let opened = Segment::open(69).unwrap().0;
    own.word(STARTED).store(1, Ordering::Relaxed);
    own.word(NAMESPACE).store(*PROCESS_NAMESPACE + 1, Ordering::Relaxed);
    assert_eq!(opened.liveness(Look::Closely), Liveness::Alive);
}

#[test]
fn removing_a_file_that_is_gone_keeps_its_successor() {
    let first = Segment::create(address(70)).unwrap();
    let file = directory().file(&name_of(70)).unwrap();
    drop(first);
    let second = Segment::create(address(70)).unwrap();
    assert!(!remove(&directory(), &file, &name_of(70)));
    assert_eq!(Segment::open(70).unwrap().0.inode, second.inode);
}

#[test]
fn an_owner_that_lost_its_file_is_alive() {
    let own = Segment::create(address(67)).unwrap();
    let opened = Segment::open(67).unwrap().0;
    directory().remove(&name_of(67)).unwrap();
    assert_eq!(opened.liveness(Look::Closely), Liveness::Alive);
    drop(own);
    assert_eq!(opened.liveness(Look::Closely), Liveness::Closed);
}

/// Makes a file with the name of a segment. It is locked while the test uses it, because programs
/// that start meanwhile remove files without an owner.
fn put(port: u16, content: &[u8], mode: u32) -> File {
    let mut file = directory::create_locked(&name_of(port)).unwrap();
    assert!(!try_lock(&directory().file(&name_of(port)).unwrap()));
    std::io::Write::write_all(&mut file, content).unwrap();
    file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
    file
}

#[test]
fn damaged_files_are_refused() {
    for (port, content, errno) in [
        (63, vec![0; LENGTH], Errno::EPROTO),
        (64, vec![1; 100], Errno::EPROTO),
        (65, vec![0xff; LENGTH], Errno::EPROTO),
    ] {
        let _file = put(port, &content, 0o600);
        assert_eq!(Segment::open(port).unwrap_err(), errno);
        directory().remove(&name_of(port)).unwrap();
    }
}

#[test]
fn a_damaged_process_id_takes_no_segment_from_its_maker() {
    let own = Segment::create(address(85)).unwrap();
    let (peers, _file) = Segment::open(85).unwrap();
    own.word32(PID).store(1, Ordering::Relaxed);
    assert!(own.is_ours() && !peers.is_ours());
}

#[test]
fn files_open_to_others_are_refused() {
    let _file = put(66, &[0; LENGTH], 0o666);
    assert_eq!(Segment::open(66).unwrap_err(), Errno::EACCES);
    directory().remove(&name_of(66)).unwrap();
}

#[test]
fn addresses_fit_a_word() {
    let address = SocketAddrV4::new(Ipv4Addr::new(255, 1, 2, 254), 65535);
    assert_eq!(unpack(pack(address)), address);
    assert_ne!(pack(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0)), 0);
}

#[test]
fn no_word_lies_outside_of_a_segment() {
    let own = Segment::create(address(76)).unwrap();
    let is_refused = |get: &dyn Fn() -> u64| catch_unwind(AssertUnwindSafe(get)).is_err();
    for offset in [1, 4, LENGTH - 4, LENGTH, usize::MAX - 7] {
        assert!(is_refused(&|| own.word(offset).load(Ordering::Relaxed)), "{offset}");
    }
    for offset in [2, LENGTH, usize::MAX - 3] {
        assert!(is_refused(&|| own.word32(offset).load(Ordering::Relaxed).into()), "{offset}");
    }
    assert_eq!(own.word(LENGTH - 8).load(Ordering::Relaxed), 0);
}
