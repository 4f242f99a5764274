// SPDX-License-Identifier: BSD-2-Clause
//! `fi_scalable_ep`: one address, several transmit and receive contexts (`fi_endpoint(3)`).
//!
//! The transmit and the receive context with one index share a normal endpoint, with its own
//! segment, lock and match tables. Their ports are consecutive, so that a peer finds every context
//! from the address of index 0. Matching compares the address of index 0, whichever context sends.
//! [`crate::engine`] derives this address from the sender's identity.
//!
//! ```text
//! scalable endpoint   10.0.0.1:4711            inserted by peers, named by receives
//!   index 0           10.0.0.1:4711  tx  rx
//!   index 1           10.0.0.1:4712  tx  rx
//!   index 2           10.0.0.1:4713  tx        more transmit than receive contexts
//! ```
//!
//! The endpoints live as long as the scalable endpoint. Messages that arrive before a context is
//! opened wait until it is opened. If one context closes, receives of peers that name the scalable
//! endpoint do not fail.

use std::{net::SocketAddrV4, sync::Arc};

use channel::address::pack;
use ffi::{
    Errno, OpContext, Result,
    info::{Info, RxAttr, TxAttr},
    object::{Bound, Control, Object},
    ops, sys,
};
use nic::params::Params;
use parking_lot::Mutex;

use crate::{
    attr,
    context::{Contexts, Direction, EpContext},
    device::receive::RecvSettings,
    domain::{Domain, OfDomain},
    ep::Endpoint,
    ep_shared::{self, Held},
    eq::EventQueue,
    wait::pollable::Pollable,
};

/// Maximum number of attempts to hold consecutive ports. An attempt fails if another process holds
/// one of these ports.
const ROWS: usize = 64;

/// A scalable endpoint.
#[derive(Debug)]
pub(crate) struct ScalableEndpoint {
    domain: Arc<Domain>,
    info: Info,
    /// The address of context 0.
    address: SocketAddrV4,
    /// Number of transmit and of receive contexts.
    counts: (usize, usize),
    indices: Vec<ContextPair>,
    eq: Mutex<Option<Arc<EventQueue>>>,
}

/// State that the transmit and the receive context of an index share.
#[derive(Debug)]
struct ContextPair {
    endpoint: Arc<Endpoint>,
    opened: Mutex<Vec<Direction>>,
}

impl ContextPair {
    /// Removes the endpoint from the domain's `unpolled`, so that other endpoints stop making
    /// progress on it. The application polls an opened context, and a closed endpoint needs no
    /// polls.
    fn leave_unpolled(&self) {
        let Endpoint { domain, shared, .. } = &*self.endpoint;
        let is_other =
            |other: &Arc<dyn Pollable>| !std::ptr::addr_eq(Arc::as_ptr(other), Arc::as_ptr(shared));
        domain.unpolled.lock().retain(is_other);
    }
}

/// Holds `count` consecutive ports. The first is that of `wanted`, or any port if that is 0.
/// Returns `EADDRINUSE` if the ports are not free.
fn hold(wanted: SocketAddrV4, count: usize, params: &Params) -> Result<Vec<Held>> {
    let mut tries = if wanted.port() == 0 { ROWS } else { 1 };
    loop {
        tries -= 1;
        match hold_row(wanted, count, params) {
            Err(Errno::EADDRINUSE) if tries > 0 => {}
            Err(Errno::EADDRINUSE) => {
                tracing::warn!("{wanted}: no {count} consecutive ports are free");
                return Err(Errno::EADDRINUSE);
            }
            held => return held,
        }
    }
}

fn hold_row(wanted: SocketAddrV4, count: usize, params: &Params) -> Result<Vec<Held>> {
    let mut row = vec![ep_shared::hold(wanted, 0, None, params)?];
    let (first, secret) = (row[0].address, row[0].secret);
    for context in 1..count {
        let context = u8::try_from(context).map_err(|_| Errno::EINVAL)?;
        let port = first.port().checked_add(context.into()).ok_or(Errno::EADDRINUSE)?;
        let address = SocketAddrV4::new(*first.ip(), port);
        row.push(ep_shared::hold(address, context, Some(secret), params)?);
    }
    Ok(row)
}

impl ScalableEndpoint {
    pub(crate) fn open(domain: &Arc<Domain>, info: &Info) -> Result<Self> {
        let wanted = Endpoint::address_for(domain, info)?;
        let (transmit, receive) = attr::context_counts(info).map_err(|_| Errno::EINVAL)?;
        if transmit.max(receive) > attr::MAX_CONTEXTS {
            tracing::warn!("a scalable endpoint with shared contexts is not supported");
            return Err(Errno::EINVAL);
        }
        let row = hold(wanted, transmit.max(receive), &domain.params)?;
        let address = row[0].address;
        let is_one = row.len() == 1;
        let mut indices = Vec::new();
        for (index, held) in (0..).zip(row) {
            let endpoint = Arc::new(Endpoint::from_held(domain, info, held, address)?);
            endpoint.with(|engine| {
                engine.is_context = true;
                engine.context = (!is_one).then_some(index);
                Ok(())
            })?;
            indices.push(ContextPair { endpoint, opened: Mutex::default() });
        }
        Ok(Self {
            domain: Arc::clone(domain),
            info: info.clone(),
            address,
            counts: (transmit, receive),
            indices,
            eq: Mutex::default(),
        })
    }

    /// Returns the packed address under which peers list the scalable endpoint.
    pub(crate) fn listed_address(&self) -> u64 {
        pack(self.address)
    }

    /// Opens a context, after `set` has applied its attributes to the endpoint.
    ///
    /// # Errors
    /// `EINVAL` if there is no such context, `EBUSY` if it is open already, and the errors of
    /// [`Endpoint::start`] and `set`.
    fn open_context(
        self: &Arc<Self>,
        index: usize,
        direction: Direction,
        set: impl FnOnce(&Endpoint) -> Result<()>,
    ) -> Result<Arc<EpContext>> {
        let count = match direction {
            Direction::Transmit => self.counts.0,
            Direction::Receive => self.counts.1,
        };
        if index >= count {
            tracing::warn!(
                "{direction} context {index} does not exist: the scalable endpoint has {count}"
            );
            return Err(Errno::EINVAL);
        }
        let of_index = &self.indices[index];
        let ContextPair { endpoint, opened } = of_index;
        let mut opened = opened.lock();
        if opened.contains(&direction) {
            tracing::warn!("{direction} context {index} of a scalable endpoint is open already");
            return Err(Errno::EBUSY);
        }
        endpoint.start()?;
        set(endpoint)?;
        opened.push(direction);
        of_index.leave_unpolled();
        let of = Arc::clone(self) as Arc<dyn Contexts>;
        Ok(Arc::new(EpContext::new(of, index, direction, endpoint)))
    }

    fn offer(&self) -> Info {
        let domain = &self.domain;
        attr::offer(domain.params.eager_size, 0, domain.api_version())
    }
}

impl Contexts for ScalableEndpoint {
    fn address(&self) -> SocketAddrV4 {
        self.address
    }

    fn closed(&self, index: usize, direction: Direction) {
        let of_index = &self.indices[index];
        let mut opened = of_index.opened.lock();
        opened.retain(|open| *open != direction);
        if opened.is_empty() {
            let shared = Arc::clone(&of_index.endpoint.shared);
            self.domain.unpolled.lock().push(shared);
        }
    }
}

impl ops::ep::scalable::ScalableEndpoint for ScalableEndpoint {
    type Context = EpContext;

    fn tx_context(
        self: &Arc<Self>,
        index: usize,
        wanted: Option<&TxAttr>,
    ) -> Result<(Arc<EpContext>, TxAttr)> {
        let mut has = self.offer().tx.unwrap_or_default();
        let own = self.info.tx.clone().unwrap_or_default();
        attr::meet_tx(&mut has, wanted.unwrap_or(&own)).map_err(|_| Errno::EINVAL)?;
        let context = self.open_context(index, Direction::Transmit, |endpoint| {
            endpoint.with(|engine| {
                engine.tx.set_size(has.size);
                engine.tx.settings.set_op_flags(has.op_flags)
            })
        })?;
        Ok((context, has))
    }

    fn rx_context(
        self: &Arc<Self>,
        index: usize,
        wanted: Option<&RxAttr>,
    ) -> Result<(Arc<EpContext>, RxAttr)> {
        let mut has = self.offer().rx.unwrap_or_default();
        let own = self.info.rx.clone().unwrap_or_default();
        let known = attr::caps_of(self.domain.api_version());
        attr::meet_rx(&mut has, wanted.unwrap_or(&own), known).map_err(|_| Errno::EINVAL)?;
        // Without requested capabilities, the context has those of the scalable endpoint.
        let given = wanted.map_or(0, |wanted| wanted.caps);
        let caps = if given == 0 { self.info.caps } else { given };
        let context = self.open_context(index, Direction::Receive, |endpoint| {
            endpoint.with(|engine| {
                engine.rx.settings = Arc::new(RecvSettings::new(caps, has.op_flags));
                Ok(())
            })
        })?;
        Ok((context, has))
    }
}

impl Object for ScalableEndpoint {
    type Raw = sys::fid_ep;

    fn bind(&self, other: &Bound, bind_flags: u64) -> Result<()> {
        match other.class() {
            sys::FI_CLASS_AV => {
                for index in &self.indices {
                    index.endpoint.bind_object(other, bind_flags)?;
                }
                Ok(())
            }
            sys::FI_CLASS_EQ => {
                *self.eq.lock() = Some(other.get::<EventQueue>()?);
                Ok(())
            }
            // Queues and counters are bound to the contexts.
            _ => Err(Errno::EINVAL),
        }
    }

    fn control(&self, command: Control<'_>) -> Result<()> {
        match command {
            // Contexts are enabled separately. This only checks that an address vector is bound.
            Control::Enable => self.indices[0]
                .endpoint
                .with(|engine| engine.peers.av.as_ref().map(|_| ()).ok_or(Errno::ENOAV)),
            _ => Err(Errno::ENOSYS),
        }
    }

    fn close(&self) -> Result<()> {
        for index in &self.indices {
            index.leave_unpolled();
            index.endpoint.close()?;
        }
        self.eq.lock().take();
        Ok(())
    }
}

impl OfDomain for ScalableEndpoint {
    fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }
}

/// A scalable endpoint has an address and options. Its contexts have the operations.
impl ops::ep::Endpoint for ScalableEndpoint {
    fn cancel(&self, _context: OpContext) -> Result<()> {
        Err(Errno::ENOENT)
    }

    fn name(&self) -> Result<Vec<u8>> {
        Ok(self.indices[0].endpoint.shared.name_at(self.address))
    }

    fn option(&self, name: u32) -> Result<usize> {
        self.indices[0].endpoint.option(name)
    }

    fn set_option(&self, name: u32, value: usize) -> Result<()> {
        for index in &self.indices {
            index.endpoint.set_option(name, value)?;
        }
        Ok(())
    }
}
