// SPDX-License-Identifier: BSD-2-Clause
//! Sends from and receives into buffers of the application through a socket, without a copy.

use std::{
    io, mem,
    os::fd::{AsRawFd as _, BorrowedFd},
    ptr,
    time::Duration,
};

use super::buffer::{Buffer, IOV_LIMIT};

/// Maximum number of buffers in one call. The answer to a read has the most: one for each part of
/// the memory that the read names.
pub const SEND_LIMIT: usize = IOV_LIMIT;

fn checked(count: isize) -> io::Result<usize> {
    usize::try_from(count).map_err(|_| io::Error::last_os_error())
}

fn message(iov: &mut [libc::iovec]) -> libc::msghdr {
    // SAFETY: a structure of integers and pointers, which may all be zero.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    (message.msg_iov, message.msg_iovlen) = (iov.as_mut_ptr(), iov.len() as _);
    message
}

/// Sends `head` and then up to [`SEND_LIMIT`] buffers, but only as many bytes as the socket takes
/// without waiting. Returns the number of sent bytes.
///
/// # Errors
/// That of `sendmsg(2)`; `WouldBlock` if the socket takes none.
///
/// # Panics
/// If there are more than [`SEND_LIMIT`] buffers.
pub fn send(socket: BorrowedFd<'_>, head: &[u8], data: &[Buffer]) -> io::Result<usize> {
    assert!(data.len() <= SEND_LIMIT, "too many buffers");
    let mut iov =
        [libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 }; 1 + SEND_LIMIT * IOV_LIMIT];
    iov[0] = libc::iovec { iov_base: head.as_ptr().cast_mut().cast(), iov_len: head.len() };
    let mut count = 1;
    for segment in data.iter().flat_map(Buffer::segments).filter(|segment| segment.len > 0) {
        iov[count] =
            libc::iovec { iov_base: segment.addr as *mut libc::c_void, iov_len: segment.len };
        count += 1;
    }
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    if count == 1 {
        // SAFETY: the head is a slice.
        return checked(unsafe {
            libc::send(socket.as_raw_fd(), head.as_ptr().cast(), head.len(), flags)
        });
    }
    let message = message(&mut iov[..count]);
    // SAFETY: the head is a slice, and the application vouches for the segments of its buffers. The
    // kernel only reads them.
    checked(unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const message, flags) })
}

impl Buffer {
    /// Receives the bytes that have arrived and fit, into the buffer from `offset` on. Returns
    /// their number, 0 at the end of the stream.
    ///
    /// # Errors
    /// That of `recvmsg(2)`; `WouldBlock` if no byte has arrived, `InvalidInput` if the buffer is a
    /// copy ([`Buffer::copied`]) or ends at `offset`.
    pub fn receive(&self, socket: BorrowedFd<'_>, offset: usize) -> io::Result<usize> {
        if self.is_copied() || offset >= self.len() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let rest = self.part(offset, self.len() - offset);
        let mut iov = [libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 }; IOV_LIMIT];
        let segments = rest.segments();
        for (entry, segment) in iov.iter_mut().zip(segments) {
            *entry =
                libc::iovec { iov_base: segment.addr as *mut libc::c_void, iov_len: segment.len };
        }
        let mut message = message(&mut iov[..segments.len()]);
        // SAFETY: the application vouches for the segments of its buffer, which a receive may
        // write.
        checked(unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_DONTWAIT) })
    }
}

/// Returns the time since the peer of a TCP connection last acknowledged or sent data; `None` if
/// the peer has acknowledged all data and window probes.
///
/// # Errors
/// That of `getsockopt(2)`.
pub fn unacknowledged_for(socket: BorrowedFd<'_>) -> io::Result<Option<Duration>> {
    // SAFETY: a structure of integers, which may all be zero.
    let mut info: libc::tcp_info = unsafe { mem::zeroed() };
    let mut len = mem::size_of::<libc::tcp_info>() as libc::socklen_t;
    // SAFETY: `info` has room for `len` bytes.
    let status = unsafe {
        let to = (&raw mut info).cast();
        libc::getsockopt(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, to, &raw mut len)
    };
    checked(status as isize)?;
    let owes = info.tcpi_unacked > 0 || info.tcpi_probes > 0;
    let silent = info.tcpi_last_ack_recv.min(info.tcpi_last_data_recv);
    Ok(owes.then(|| Duration::from_millis(silent.into())))
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read as _, Write as _},
        net::{TcpListener, TcpStream},
        os::fd::AsFd as _,
    };

    use super::*;
    use crate::memory::RegionMemory;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let dialed = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (dialed, listener.accept().unwrap().0)
    }

    fn buffer(bytes: &'static mut [u8]) -> Buffer {
        let len = bytes.len();
        RegionMemory::from(bytes).part(0, len).unwrap()
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri does not interpret sendmsg")]
    fn buffers_go_from_socket_to_socket() {
        let (one, mut other) = pair();
        let (first, second) = (buffer(vec![1; 3].leak()), buffer(vec![2; 4].leak()));
        assert_eq!(send(one.as_fd(), b"head", &[first, second]).unwrap(), 11);
        let mut came = [0; 11];
        other.read_exact(&mut came).unwrap();
        assert_eq!(&came, b"head\x01\x01\x01\x02\x02\x02\x02");
        while unacknowledged_for(one.as_fd()).unwrap().is_some() {}
        let memory: &'static mut [u8] = vec![0; 8].leak();
        let into = buffer(memory);
        assert_eq!(into.receive(one.as_fd(), 0).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        other.write_all(b"abcdefghij").unwrap();
        while into.receive(one.as_fd(), 2).is_err() {}
        let mut read = [0; 8];
        into.read_to(&mut read);
        assert_eq!(&read, b"\0\0abcdef");
        assert_eq!(into.receive(one.as_fd(), 8).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        assert_eq!(
            into.copied().receive(one.as_fd(), 0).unwrap_err().kind(),
            io::ErrorKind::InvalidInput
        );
        drop(other);
        while into.receive(one.as_fd(), 0).is_ok_and(|count| count > 0) {}
    }
}
