// SPDX-License-Identifier: BSD-2-Clause
//! An endpoint's own end of its channels: it opens links, sends, and knows who sends here.

use std::{net::SocketAddrV4, sync::Arc, time::Duration};

use ffi::Errno;
use host::publish;

#[cfg(any(test, feature = "testing"))]
use crate::twin;
use crate::{
    contract::{Payload, Sent, Settings},
    identity::Identity,
    net::{self, end::Net, secret::Secret},
    polling::Turns,
    sending::Sending,
    shm::{self, segment::Segment},
    way::{Inbox, Link},
    wire::{FAR, Header},
};

/// Ways that there are.
pub const WAYS: usize = if cfg!(any(test, feature = "testing")) { 3 } else { 2 };

/// The one over the network.
pub const NET: usize = 1;

/// What has come over each way. An inbox is taken out while it is looked at.
pub type Inboxes = [Option<Box<Inbox>>; WAYS];

/// See the module.
#[derive(Debug)]
pub struct Home {
    own: Arc<Segment>,
    /// To peers of this host.
    near: Arc<Sending>,
    settings: Settings,
    net: Option<Arc<Net>>,
    /// When the inbox of the network is looked into.
    pub turns: Turns,
    /// Messages that were sent whole over the network, and their bytes.
    sent_far: (u64, u64),
    #[cfg(any(test, feature = "testing"))]
    twin: Option<Arc<twin::End>>,
}

impl Home {
    /// The end of the endpoint that has this segment, and this network if it has one. It is `locked`
    /// if several threads may send.
    #[must_use]
    pub fn new(
        own: &Arc<Segment>,
        net: Option<Arc<Net>>,
        turns: Turns,
        settings: Settings,
        locked: bool,
    ) -> Self {
        Self {
            own: Arc::clone(own),
            near: Arc::new(Sending::new(own, settings.checks, locked)),
            settings,
            net,
            turns,
            sent_far: (0, 0),
            #[cfg(any(test, feature = "testing"))]
            twin: None,
        }
    }

    /// Where what is sent to it arrives.
    #[must_use]
    pub fn inboxes(&self) -> Inboxes {
        [
            Some(Box::new(Inbox::Shm(shm::inbox::Inbox::new(&self.own)))),
            self.net.as_ref().map(|net| Box::new(Inbox::Net(net::inbox::Inbox::new(net)))),
            #[cfg(any(test, feature = "testing"))]
            self.twin.as_ref().map(|end| Box::new(Inbox::Twin(end.inbox()))),
        ]
    }

    /// Whether peers of other hosts can be reached.
    #[must_use]
    pub fn has_net(&self) -> bool {
        self.net.is_some()
    }

    /// Opens whichever endpoint is at the address of another host now, or of this one where it has no
    /// segment that we see; `secret` is proved to it unless the job has one.
    ///
    /// # Errors
    /// `EAGAIN` as long as it has not said who it is, `ENETUNREACH` without a network, `EACCES` if it
    /// refuses us, and why it cannot be reached.
    pub fn open_far(&self, address: SocketAddrV4, secret: Option<Secret>) -> Result<Link, Errno> {
        let net = self.net.as_ref().ok_or(Errno::ENETUNREACH)?;
        let (number, who) = net.meet(address, secret)?;
        Ok(Link::Net(net::link::Link::new(net, number, who, self.settings)))
    }

    /// Whether the sender of this number is at the address that [`Home::listed`] says: over the network, it
    /// knows the secret in the name of the endpoint there. If it is not, nothing more comes from it.
    #[must_use]
    pub fn is_at_its_address(&self, number: u32, secret: impl FnOnce() -> Option<Secret>) -> bool {
        self.of_net(number).is_none_or(|net| net.is_at_its_address(number, secret))
    }

    /// Whether that is certain.
    #[must_use]
    pub fn is_vouched_for(&self, number: u32) -> bool {
        self.of_net(number).is_none_or(|net| net.is_vouched_for(number))
    }

    /// Disconnects the sender of this number, if it is one of the network.
    pub fn disown(&self, number: u32) {
        if let Some(net) = self.of_net(number) {
            net.disown(number);
        }
    }

    /// Opens whichever endpoint holds a port of this host now.
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

    /// Opens who sends here under a number.
    ///
    /// # Errors
    /// As [`Home::open_only`].
    pub fn open_sender(&self, number: u32, who: Identity) -> Result<Link, Errno> {
        match self.of_net(number) {
            None => self.open_only(who),
            Some(net) => {
                let link = net::link::Link::new(net, number as u16, who, self.settings);
                if link.is_open() { Ok(Link::Net(link)) } else { Err(Errno::ECONNREFUSED) }
            }
        }
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

    /// From now on this link leads to a peer.
    pub fn connect(&self, peer: u32, link: &Link) {
        self.near.connect(peer, link);
    }

    /// Nothing more goes to a peer that is gone, and what it has comes back.
    pub fn disconnect(&self, peer: u32) {
        self.near.disconnect(peer);
    }

    /// What sends to peers of this host, for threads without the engine.
    #[must_use]
    pub fn near(&self) -> &Arc<Sending> {
        &self.near
    }

    /// Sends a slot and what goes with it to a peer of this host that is connected; none if there is
    /// none.
    #[inline(always)]
    #[must_use]
    pub fn send_near(&self, peer: u32, header: &Header, payload: Payload<'_>) -> Option<Sent> {
        self.near.send(peer, header, payload)
    }

    /// The same over any other way.
    #[inline(always)]
    pub fn send(&mut self, link: &mut Link, header: &Header, payload: Payload<'_>) -> Sent {
        match link {
            // Not connected: nobody takes anything.
            Link::Shm(_) => Sent::NoRoom,
            Link::Net(link) => self.send_far(link, header, payload),
            #[cfg(any(test, feature = "testing"))]
            Link::Twin(link) => link.send(*header, payload),
        }
    }

    /// The checksum of what goes to a peer with the next slot.
    pub fn set_check(&self, peer: u32, link: &mut Link, check: u32) {
        if !self.near.outbox().0.set_check(peer, check) {
            link.set_check(check);
        }
    }

    /// The same over the network. Out of line: in line, a message over shared memory takes six more
    /// instructions.
    #[cold]
    #[inline(never)]
    fn send_far(
        &mut self,
        link: &mut net::link::Link,
        header: &Header,
        payload: Payload<'_>,
    ) -> Sent {
        let is_whole = matches!(payload, Payload::Message(_) | Payload::IfQuick(_));
        let sent = link.send(*header, payload);
        self.turns.sent_far();
        if sent == Sent::Yes && is_whole {
            self.sent_far = (self.sent_far.0 + 1, self.sent_far.1 + header.len);
        }
        sent
    }

    /// Messages that were sent whole over the network, and their bytes.
    #[must_use]
    pub fn sent_far(&self) -> (u64, u64) {
        self.sent_far
    }

    /// Whether so many bytes go with a slot without a buffer.
    #[inline(always)]
    #[must_use]
    pub fn fits(&self, len: usize) -> bool {
        self.near.fits(len)
    }

    /// Whether no buffer was free for a while, all along.
    #[must_use]
    pub fn is_stuck(&self) -> bool {
        self.near.outbox().0.is_stuck()
    }

    /// Whether a buffer is free.
    pub fn has_room(&self) -> bool {
        let (mut outbox, own) = self.near.outbox();
        outbox.has_room(own)
    }

    /// Whether receivers have not emptied all that was sent.
    pub fn is_lent(&self) -> bool {
        let (mut outbox, own) = self.near.outbox();
        outbox.is_lent(own) || self.net.as_ref().is_some_and(|net| net.is_lent())
    }

    /// How long a peer of another host may take until it has seen what was sent to it.
    #[must_use]
    pub fn patience(&self) -> Duration {
        self.net.as_ref().map_or(Duration::ZERO, |net| net.timeout())
    }

    /// Who sends here under a number, and from where if that is not this host.
    #[must_use]
    pub fn listed(&self, number: u32) -> Option<(Identity, Option<SocketAddrV4>)> {
        if let Some(net) = self.of_net(number) {
            return net.listed(number).map(|(who, address)| (who, Some(address)));
        }
        let number = u16::try_from(number).ok()?;
        #[cfg(any(test, feature = "testing"))]
        if let Some(end) = &self.twin {
            return Some((end.listed(number)?, None));
        }
        Some((self.own.listed(number)?, None))
    }

    /// The network, if the number of a sender is one of its.
    fn of_net(&self, number: u32) -> Option<&Arc<Net>> {
        self.net.as_ref().filter(|_| number >= FAR)
    }

    /// Those who send here, of a part of the list. Parts are numbered around and around.
    #[must_use]
    pub fn listed_in(&self, part: usize) -> Vec<(u32, Identity)> {
        self.own.listed_in(part).into_iter().map(|(number, who)| (number.into(), who)).collect()
    }

    /// Parts of the list.
    #[must_use]
    pub fn list_parts(&self) -> usize {
        self.own.list_pages()
    }

    /// Gives the number of a sender back that is gone, all whose slots were handled.
    pub fn strike(&self, number: u32, who: Identity) {
        // Those of the network are gone with their links.
        let Ok(number) = u16::try_from(number) else { return };
        #[cfg(any(test, feature = "testing"))]
        if let Some(end) = &self.twin {
            return end.strike(number, who);
        }
        self.own.strike(number, who);
    }

    /// Sees to the network, as is to be done now and then.
    pub fn look_around(&self) {
        if let Some(net) = &self.net {
            net.look_around();
        }
    }

    /// Before a sleep: whether whatever comes over the network ends it. False if something has come
    /// there, or nothing would ring.
    pub fn arm_net(&self) -> bool {
        self.net.as_ref().is_none_or(|net| net.arm())
    }

    /// Tells peers of other hosts that nothing more is sent.
    pub fn say_bye(&self) {
        if let Some(net) = &self.net {
            net.say_bye();
        }
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
        self.near = Arc::new(Sending::new(&self.own, settings.checks, false));
    }

    /// Lends all buffers.
    #[cfg(any(test, feature = "testing"))]
    pub fn take_all(&self, peer: u32) {
        let (mut outbox, own) = self.near.outbox();
        outbox.take_all(own, peer);
    }
}
