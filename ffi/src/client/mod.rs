// SPDX-License-Identifier: BSD-2-Clause
//! Another provider of the same libfabric, as its application sees it: a network below this one.
//!
//! ```text
//! open      fi_getinfo (also what FI_PROVIDER leaves out, never this provider itself),
//!           fabric, domain, address vector, queue, one endpoint for messages
//! insert    the name of a peer's endpoint -> where to send
//! stage     memory to fill -> send: it is lent until Event::Sent
//! arm       the descriptor of the queue becomes readable when something comes
//! read      Event::Came: bytes in memory for several messages, which is lent until it is given back
//! ```
//!
//! All memory that the provider is given is an [`Area`] that is there as long as the endpoint, but
//! for what an application's [`Buffer`](crate::Buffer) vouches for.

mod area;
mod getinfo;
mod lent;
mod opened;
mod traffic;
mod wait;

pub use area::Area;
pub use opened::{Client, Wanted, is_kernel};
pub use traffic::Event;

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{Client, Event, Wanted};
    use crate::{Errno, host::Host, memory::Window};

    const WANTED: Wanted<'static> = Wanted {
        provider: "sockets",
        node: Some("127.0.0.1"),
        staging: (4, 16 * 1024),
        receives: (2, 256 * 1024),
        longest: 64 * 1024,
    };

    fn open(provider: &str) -> Option<Client> {
        Host::load().expect("a libfabric");
        match Client::open(&Wanted { provider, ..WANTED }) {
            Ok(client) => Some(client),
            Err(Errno::ENODATA) => {
                eprintln!("skipped: this libfabric has no {provider}");
                None
            }
            Err(errno) => panic!("{provider}: {errno} {errno:?}"),
        }
    }

    /// What comes at one of two ends, until it is so much.
    fn wait(ends: &mut [Client; 2], at: usize, len: usize) -> Vec<u8> {
        let (start, mut bytes) = (Instant::now(), Vec::new());
        while bytes.len() < len {
            assert!(start.elapsed() < Duration::from_secs(10), "{} of {len} bytes", bytes.len());
            for (index, end) in ends.iter_mut().enumerate() {
                let area = std::sync::Arc::clone(end.receives());
                end.read(|event| match event {
                    Event::Came { block, at: from, len } if index == at => {
                        let from = area.part(block, from, len).unwrap();
                        // SAFETY: the provider has written these, and does not again.
                        bytes.extend_from_slice(unsafe { std::slice::from_raw_parts(from, len) });
                    }
                    Event::Sent(_) => {}
                    other => panic!("{other:?}"),
                });
            }
        }
        bytes
    }

    fn send_to(ends: &mut [Client; 2], mut send: impl FnMut(&mut Client) -> Result<(), Errno>) {
        let start = Instant::now();
        loop {
            match send(&mut ends[0]) {
                Ok(()) => return,
                Err(errno) => assert_eq!(errno, Errno::EAGAIN),
            }
            assert!(start.elapsed() < Duration::from_secs(10));
            ends.iter_mut().for_each(|end| _ = end.read(|_| ()));
        }
    }

    /// Whether the descriptor of an end is readable within a time, where it has one.
    fn rings(end: &Client, within: Duration) -> Option<bool> {
        let bell = end.descriptor()?;
        let mut polled = [rustix::event::PollFd::new(&bell, rustix::event::PollFlags::IN)];
        let within = rustix::fs::Timespec::try_from(within).unwrap();
        Some(rustix::event::poll(&mut polled, Some(&within)).unwrap() == 1)
    }

    /// The end sleeps until the next message: what was done before is over.
    fn settle(end: &mut Client) {
        let start = Instant::now();
        while !end.arm() || rings(end, Duration::ZERO) == Some(true) {
            assert!(start.elapsed() < Duration::from_secs(10), "it never rests");
            end.read(|_| ());
        }
    }

    fn exchange(provider: &str) {
        let (Some(first), Some(second)) = (open(provider), open(provider)) else { return };
        let mut ends = [first, second];
        let name = ends[1].name().to_vec();
        let to = ends[0].insert(&name).unwrap();
        send_to(&mut ends, |end| end.inject(to, &[7; 8]));
        assert_eq!(wait(&mut ends, 1, 8), [7; 8]);
        if ends[1].descriptor().is_some() {
            settle(&mut ends[1]);
            assert_eq!(rings(&ends[1], Duration::from_millis(20)), Some(false));
            ends[0].inject(to, &[8; 8]).unwrap();
            assert_eq!(rings(&ends[1], Duration::from_secs(10)), Some(true));
            assert_eq!(wait(&mut ends, 1, 8), [8; 8]);
        }
        let memory: &'static mut [u8] = Vec::leak((0..60_000).map(|at| at as u8).collect());
        let long = Window::from(memory).part(0, 60_000).unwrap();
        let lends = ends[0].lends_memory();
        send_to(&mut ends, |end| {
            let fill = |to: &mut [u8]| {
                to[..3].copy_from_slice(b"abc");
                3
            };
            end.send(to, fill, lends.then_some(&long)).map(|_| ())
        });
        let came = wait(&mut ends, 1, if lends { 60_003 } else { 3 });
        assert_eq!(&came[..3], b"abc");
        assert!(came[3..].iter().zip(0..).all(|(&byte, at): (&u8, usize)| byte == at as u8));
        assert_eq!(ends[0].insert(&name[1..]), Err(Errno::EINVAL));
    }

    #[test]
    fn messages_go_over_other_providers() {
        assert!(matches!(
            Client::open(&Wanted { provider: "no such", ..WANTED }),
            Err(Errno::ENODATA | Errno::ENOSYS)
        ));
        ["tcp", "net", "sockets", "udp;ofi_rxd"].into_iter().for_each(exchange);
    }
}
