// SPDX-License-Identifier: BSD-2-Clause
//! Error numbers of libfabric (`fi_errno(3)`).

use std::ffi::CStr;

/// A positive error number. C sees it negated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.text().to_string_lossy())]
pub struct Errno(i32);

/// Result of an operation of an object.
pub type Result<T> = std::result::Result<T, Errno>;

macro_rules! errnos {
    ($($name:ident = $value:expr, $text:literal;)*) => {
        impl Errno {
            $(#[doc = $text] pub const $name: Self = Self($value);)*

            /// Describes the error, for `fi_cq_strerror` and logs.
            #[must_use]
            pub fn text(self) -> &'static CStr {
                $(if self == Self::$name { return const {
                    match CStr::from_bytes_with_nul(concat!($text, "\0").as_bytes()) {
                        Ok(text) => text,
                        Err(_) => panic!("no text of an error holds a NUL"),
                    }
                }; })*
                c"unknown error"
            }
        }
    };
}

errnos! {
    EPERM = libc::EPERM, "operation not permitted";
    ENOENT = libc::ENOENT, "no such entry";
    EIO = libc::EIO, "peer died or its memory could not be read";
    E2BIG = libc::E2BIG, "too many segments";
    EAGAIN = libc::EAGAIN, "no resources now, make progress and try again";
    ENOMEM = libc::ENOMEM, "out of memory";
    EACCES = libc::EACCES, "permission denied: another user's endpoint, or one that was not opened for this, or a memory region that does not allow it";
    EFAULT = libc::EFAULT, "bad address, or one outside of its memory region";
    EBUSY = libc::EBUSY, "still in use by another object";
    EEXIST = libc::EEXIST, "exists already";
    EINVAL = libc::EINVAL, "invalid argument";
    ENOSPC = libc::ENOSPC, "no space left in /dev/shm or on the disk, or no table entry is free";
    ENOSYS = libc::ENOSYS, "not implemented by tcam";
    ENODATA = libc::ENODATA, "tcam offers nothing that meets the request";
    EMSGSIZE = libc::EMSGSIZE, "message is too long";
    ENOMSG = libc::ENOMSG, "no message matches";
    ENOPROTOOPT = libc::ENOPROTOOPT, "no such option";
    EOPNOTSUPP = libc::EOPNOTSUPP, "not supported on this object";
    EADDRINUSE = libc::EADDRINUSE, "address is in use";
    EADDRNOTAVAIL = libc::EADDRNOTAVAIL, "address is not one of this host";
    ENETUNREACH = libc::ENETUNREACH, "the network is off, or has no route to the peer's host";
    ECONNREFUSED = libc::ECONNREFUSED, "no endpoint of this user has that address";
    ENETDOWN = libc::ENETDOWN, "the network interface is down";
    EHOSTDOWN = libc::EHOSTDOWN, "the peer's host is down";
    EHOSTUNREACH = libc::EHOSTUNREACH, "no route leads to the peer's host";
    ENOTCONN = libc::ENOTCONN, "not connected";
    EPIPE = libc::EPIPE, "the peer has closed the connection";
    ECONNRESET = libc::ECONNRESET, "the peer's host has reset the connection";
    EMFILE = libc::EMFILE, "this process has too many open files (ulimit -n)";
    ENFILE = libc::ENFILE, "this host has too many open files";
    ENOBUFS = libc::ENOBUFS, "too many answers wait at the peer for this endpoint, or the kernel has no memory for sockets";
    ECONNABORTED = libc::ECONNABORTED, "peer died";
    ETIMEDOUT = libc::ETIMEDOUT, "timed out";
    EALREADY = libc::EALREADY, "already done";
    ECANCELED = libc::ECANCELED, "cancelled";
    EPROTO = libc::EPROTO, "the peer is damaged, of another version of tcam, or no endpoint";
    EOTHER = 256, "internal error of tcam";
    ETOOSMALL = 257, "buffer is too small";
    EOPBADSTATE = 258, "operation not permitted in this state";
    EAVAIL = 259, "an error entry is available";
    EBADFLAGS = 260, "flags not supported";
    ENOEQ = 261, "no event queue is bound";
    EDOMAIN = 262, "objects of different domains";
    ENOCQ = 263, "no completion queue is bound";
    ECRC = 264, "bytes differ from those that were sent";
    ETRUNC = 265, "message was longer than the receive buffer";
    ENOKEY = 266, "no memory region has that key";
    ENOAV = 267, "no address vector is bound";
}

impl Errno {
    /// Converts a number of C, positive or negated.
    #[must_use]
    pub const fn new(value: i32) -> Self {
        Self(value.saturating_abs())
    }

    /// Converts a status of C: a count, or a negated error number.
    pub(crate) fn check(status: i32) -> Result<usize> {
        usize::try_from(status).map_err(|_| Self::new(status))
    }

    /// Returns the positive number.
    #[must_use]
    pub const fn get(self) -> i32 {
        self.0
    }
}

impl From<std::io::Error> for Errno {
    fn from(error: std::io::Error) -> Self {
        error.raw_os_error().map_or(Self::EOTHER, Self::new)
    }
}
