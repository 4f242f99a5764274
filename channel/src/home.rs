// SPDX-License-Identifier: BSD-2-Clause
//! An endpoint's own end of its channels: it opens links, sends, and knows who sends here.

use std::sync::Arc;

use ffi::Errno;
use host::publish;

#[cfg(any(test, feature = "testing"))]
use crate::twin;
use crate::{
    contract::{Payload, Sent, Settings},
    identity::Identity,
    shm::{self, outbox::Outbox, segment::Segment},
    way::{Inbox, Link},
    wire::Header,
};

/// Ways that there are.
pub const WAYS: usize = if cfg!(any(test, feature = "testing")) { 2 } else { 1 };

/// What has come over each way. An inbox is taken out while it is looked at.
pub type Inboxes = [Option<Box<Inbox>>; WAYS];

/// See the module.
#[derive(Debug)]
pub struct Home {
    own: Arc<Segment>,
    outbox: Outbox,
    settings: Settings,
    #[cfg(any(test, feature = "testing"))]
    twin: Option<Arc<twin::End>>,
}

impl Home {
    /// The end of the endpoint that has this segment.
    #[must_use]
    pub fn new(own: &Arc<Segment>, settings: Settings) -> Self {
        Self {
            own: Arc::clone(own),
            outbox: Outbox::new(settings.checks),
            settings,
            #[cfg(any(test, feature = "testing"))]
            twin: None,
        }
    }

    /// Where what is sent to it arrives.
    #[must_use]
    pub fn inboxes(&self) -> Inboxes {
        [
            Some(Box::new(Inbox::Shm(shm::inbox::Inbox::new(&self.own)))),
            #[cfg(any(test, feature = "testing"))]
            self.twin.as_ref().map(|end| Box::new(Inbox::Twin(end.inbox()))),
        ]
    }

    /// Opens whichever endpoint holds a port now.
    ///
    /// # Errors
    /// `ECONNREFUSED` nobody has it, `EACCES` another user is in the way, `EPROTO` it is damaged or
    /// of another version of tcam, `ENOSPC` if there is no room to enter it as a sender.
    pub fn open(&self, port: u16) -> Result<Link, Errno> {
        #[cfg(any(test, feature = "testing"))]
        if let Some(end) = &self.twin {
            return end.open(port, self.settings).map(Link::Twin);
        }
        shm::link::Link::open(&self.own, port, self.settings).map(Link::Shm)
    }

    /// The same of one endpoint and of no other that has its port since.
    ///
    /// # Errors
    /// As [`Home::open`]; `ECONNREFUSED` if it is gone.
    pub fn open_only(&self, peer: Identity) -> Result<Link, Errno> {
        #[cfg(any(test, feature = "testing"))]
        if let Some(end) = &self.twin {
            return end.open_only(peer, self.settings).map(Link::Twin);
        }
        shm::link::Link::open_only(&self.own, peer, self.settings).map(Link::Shm)
    }

    /// Whether there is an endpoint at a port, of this user.
    #[must_use]
    pub fn is_there(&self, port: u16) -> bool {
        #[cfg(any(test, feature = "testing"))]
        if let Some(end) = &self.twin {
            return end.is_there(port);
        }
        publish::is_there(port)
    }

    /// Sends a slot and what goes with it to a peer of this number.
    #[inline(always)]
    pub fn send(
        &mut self,
        link: &mut Link,
        peer: u32,
        header: Header,
        payload: Payload<'_>,
    ) -> Sent {
        match link {
            Link::Shm(link) => self.outbox.send(&self.own, link, peer, header, payload),
            #[cfg(any(test, feature = "testing"))]
            Link::Twin(link) => link.send(header, payload),
        }
    }

    /// Whether so many bytes go with a slot without a buffer.
    #[inline(always)]
    #[must_use]
    pub fn fits(&self, len: usize) -> bool {
        self.outbox.fits(len)
    }

    /// Whether no buffer was free for a while, all along.
    #[must_use]
    pub fn is_stuck(&self) -> bool {
        self.outbox.is_stuck()
    }

    /// Whether a buffer is free.
    pub fn has_room(&mut self) -> bool {
        self.outbox.has_room(&self.own)
    }

    /// Whether receivers have not emptied all that was sent.
    pub fn is_lent(&mut self) -> bool {
        self.outbox.is_lent(&self.own)
    }

    /// Takes back what a peer of this number has that is gone.
    pub fn reclaim(&mut self, peer: u32) {
        self.outbox.reclaim(&self.own, peer);
    }

    /// Who sends here under a number.
    #[must_use]
    pub fn listed(&self, number: u16) -> Option<Identity> {
        #[cfg(any(test, feature = "testing"))]
        if let Some(end) = &self.twin {
            return end.listed(number);
        }
        self.own.listed(number)
    }

    /// Those who send here, of a part of the list. Parts are numbered around and around.
    #[must_use]
    pub fn listed_in(&self, part: usize) -> Vec<(u16, Identity)> {
        self.own.listed_in(part)
    }

    /// Parts of the list.
    #[must_use]
    pub fn list_parts(&self) -> usize {
        self.own.list_pages()
    }

    /// Gives the number of a sender back that is gone, all whose slots were handled.
    pub fn strike(&self, number: u16, who: Identity) {
        #[cfg(any(test, feature = "testing"))]
        if let Some(end) = &self.twin {
            return end.strike(number, who);
        }
        self.own.strike(number, who);
    }

    /// Messages go within this process from now on.
    #[cfg(any(test, feature = "testing"))]
    pub fn join(&mut self, end: &Arc<twin::End>) {
        self.twin = Some(Arc::clone(end));
    }

    /// Changes what holds for links that are opened from now on.
    #[cfg(any(test, feature = "testing"))]
    pub fn set(&mut self, settings: Settings) {
        self.settings = settings;
        self.outbox = Outbox::new(settings.checks);
    }

    /// Lends all buffers.
    #[cfg(any(test, feature = "testing"))]
    pub fn take_all(&mut self, peer: u32) {
        self.outbox.take_all(&self.own, peer);
    }
}
