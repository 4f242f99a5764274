// SPDX-License-Identifier: BSD-2-Clause
//! `fi_srx_context`: shared receive contexts (`fi_endpoint(3)`).
//!
//! The device of a shared receive context matches the messages of every endpoint that is bound to
//! it. The endpoint that received a message does the rest: it has the bytes, answers the sender and
//! reports the completion. An unexpected message is kept with the number of that endpoint, its
//! *holder*.
//!
//! ```text
//! arrival   engine locked: context locked: match or keep; engine delivers
//! post      context locked: match; unlocked; if a message matches: holder's engine locked: deliver
//! ```

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Instant,
};

use ffi::{
    Errno, OpContext, Result,
    info::RxAttr,
    object::{Control, Object},
    ops::{
        self,
        ep::Recv,
        profile::{Variable, Variables},
    },
    sys,
};
use host::{node_pool::NodePool, owner::Owner};
use matching::Source;
use nic::{
    message::{Envelope, Grant},
    report::WrittenAt,
};
use parking_lot::Mutex;
use slab::Slab;

use crate::{
    attr,
    device::{
        carried::{Kept, RecvOp},
        flow::Flow,
        make,
        matcher::{Holders, Member},
        receive::{Directed, RecvSettings},
        shared::Shared,
    },
    domain::{Domain, OfDomain},
    engine::{Engine, tagged},
    ep_shared::EpShared,
    record::{exit::AtExit, profile, report, trace},
    wait::pollable::Pollable as _,
};

/// A shared receive context.
#[derive(Debug)]
pub(crate) struct SharedReceive {
    pub(crate) domain: Arc<Domain>,
    /// Distinguishes the context from others of this process in reports and traces.
    name: String,
    opened: Instant,
    /// The process that opened the context.
    pid: u32,
    processes: u32,
    node_pool: Option<Arc<NodePool>>,
    shared: Arc<Shared>,
    /// The endpoints that are bound to the context.
    members: Mutex<Slab<Arc<EpShared>>>,
    settings: RecvSettings,
    /// See [`Engine::arrival_of_nic`].
    arrival_of_nic: bool,
}

impl SharedReceive {
    pub(crate) fn open(domain: &Arc<Domain>, attr: &RxAttr) -> Result<Self> {
        static OPENED: AtomicU32 = AtomicU32::new(0);
        if attr.caps & !(attr::caps_of(domain.api_version()) | attr::DOMAIN_CAPS) != 0
            || attr.op_flags & !attr::RX_OP_FLAGS != 0
        {
            return Err(Errno::EINVAL);
        }
        let params = &domain.params;
        let opened = Instant::now();
        let node_pool = make::node_pool(params, &Owner::of_process())?;
        let directed = Directed::of(attr.caps);
        let (mut device, processes) = make::device(params, directed, node_pool.as_ref(), opened)?;
        let name = format!("srx{}", OPENED.fetch_add(1, Ordering::Relaxed));
        trace::start(&mut device, params, &domain.peers, &name, &name)?;
        Ok(Self {
            domain: Arc::clone(domain),
            name,
            opened,
            pid: std::process::id(),
            processes,
            node_pool,
            shared: Arc::new(Shared::new(device, Flow::from_params(params), domain.locked)),
            members: Mutex::default(),
            settings: RecvSettings::new(attr.caps, attr.op_flags),
            arrival_of_nic: params.has_arrival_of_nic(),
        })
    }

    /// Adds an endpoint. Returns its membership.
    pub(crate) fn join(self: &Arc<Self>, member: &Arc<EpShared>) -> Member {
        let holder = self.members.lock().insert(Arc::clone(member)) as u32;
        Member::new(&self.shared, Arc::clone(self) as Arc<dyn Holders>, holder)
    }

    /// Calls `work` with the engine of a member: of `holder`, or of any member if it is `None`.
    /// Returns `EOPBADSTATE` if there is no such member.
    fn with_member<T>(
        &self,
        holder: Option<u32>,
        work: impl FnOnce(&mut Engine) -> Result<T>,
    ) -> Result<T> {
        let member = {
            let members = self.members.lock();
            match holder {
                Some(holder) => members.get(holder as usize).cloned(),
                None => members.iter().next().map(|(_, member)| Arc::clone(member)),
            }
        };
        member.ok_or(Errno::EOPBADSTATE)?.with_engine(work)
    }

    fn source(&self, op: &Recv) -> Result<Source> {
        if !self.settings.names_source(op)? {
            return Ok(Source::ANY);
        }
        self.with_member(None, |engine| engine.peers.source_at(op.source))
    }

    /// Lets a member, if there is one, watch the peer that a posted receive names.
    fn watch(&self, peer: u32) {
        let _ = self.with_member(None, |engine| {
            engine.watch(Source::new(peer));
            Ok(())
        });
    }

    /// Gives a message to its receive. Returns false if the endpoint that holds the message has
    /// just closed. The message is then lost.
    fn deliver(&self, grant: Grant<RecvOp>, envelope: &Envelope, message: Kept) -> bool {
        let delivered = self.with_member(Some(message.holder), |engine| {
            engine.deliver(grant, envelope, message);
            Ok(())
        });
        if delivered.is_err() {
            tracing::warn!("lost a message, because the endpoint that held it was closed");
        }
        delivered.is_ok()
    }

    /// Returns the members that `is_wanted` selects. Allocates nothing if there are none.
    fn members(&self, is_wanted: impl Fn(&EpShared) -> bool) -> Vec<Arc<EpShared>> {
        let members = self.members.lock();
        let wanted = members.iter().filter(|(_, member)| is_wanted(member));
        wanted.map(|(_, member)| Arc::clone(member)).collect()
    }

    /// Handles all messages that have come to the members, before an operation on the context. With
    /// `FI_TCAM_ARRIVAL=poll`, does nothing.
    fn receive_before_operation(&self) {
        if self.arrival_of_nic {
            for member in self.members(EpShared::may_have_arrivals) {
                // A member that has just closed has no messages.
                let _ = member.receive_arrived();
            }
        }
    }

    fn probe(&self, op: &Recv, given: u64) -> Result<()> {
        let probe = tagged::Probe::read(op, given)?;
        if probe == tagged::Probe::TakeClaimed {
            let claimed = self.shared.lock().tagged.take_claimed(op.context.0 as u64);
            let (envelope, kept) = claimed.ok_or(Errno::ENOMSG)?;
            return self.with_member(Some(kept.holder), |engine| {
                engine.give_claimed(op, given, (envelope, kept));
                Ok(())
            });
        }
        if self.arrival_of_nic {
            self.receive_before_operation();
        } else {
            for member in self.members(|_| true) {
                member.progress();
            }
        }
        let source = self.source(op)?;
        let found = probe.find(&mut self.shared.lock(), op, source)?;
        let holder = found.as_ref().map(|found| found.holder);
        self.with_member(holder, |engine| {
            engine.probed(op, found);
            Ok(())
        })
    }
}

impl SharedReceive {
    /// Writes the report, if one is requested.
    fn write_report(&self, written_at: WrittenAt) {
        let params = &self.domain.params;
        // A forked child did none of the counted work.
        if !report::is_wanted(params) || self.pid != std::process::id() {
            return;
        }
        let device = match written_at {
            WrittenAt::Exit => self.shared.lock_at_exit(),
            WrittenAt::Close | WrittenAt::Running => Some(self.shared.lock()),
        };
        let Some(device) = device else {
            tracing::error!(
                "{}: the process exits in the middle of a call: its last counts are not reported",
                self.name
            );
            return;
        };
        let (tagged, msg) = (device.tagged.counters(), device.msg.counters());
        drop(device);
        let mut report = report::make(params, self.name.clone(), self.opened, written_at);
        (report.processes, report.tagged, report.msg) = (self.processes, tagged, msg);
        report::finish(params, &mut report, None);
    }
}

impl AtExit for SharedReceive {
    fn at_exit(&self) {
        self.write_report(WrittenAt::Exit);
        if let Some(pool) = &self.node_pool {
            pool.leave_at_exit();
        }
    }
}

impl Holders for SharedReceive {
    fn remove(&self, holder: u32) {
        self.members.lock().try_remove(holder as usize);
    }
}

impl Variables for SharedReceive {
    fn list(&self) -> &'static [Variable] {
        &profile::VARIABLES
    }

    fn values(&self) -> Result<Vec<u64>> {
        Ok(profile::values(&self.shared.lock()))
    }
}

impl Object for SharedReceive {
    type Raw = sys::fid_ep;

    fn variables(self: &Arc<Self>) -> Result<Arc<dyn Variables>> {
        Ok(Arc::clone(self) as Arc<dyn Variables>)
    }

    fn close(&self) -> Result<()> {
        self.write_report(WrittenAt::Close);
        Ok(())
    }

    fn control(&self, command: Control<'_>) -> Result<()> {
        match command {
            Control::Enable => Ok(()),
            Control::GetOpsFlag(value) => {
                *value = self.settings.op_flags();
                Ok(())
            }
            Control::SetOpsFlag(value) => self.settings.set_op_flags(value),
            _ => Err(Errno::ENOSYS),
        }
    }
}

impl OfDomain for SharedReceive {
    fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }
}

impl ops::ep::Endpoint for SharedReceive {
    fn recv(&self, op: &Recv) -> Result<()> {
        if let Some(given) = tagged::probe_flags(op) {
            return self.probe(op, given);
        }
        self.receive_before_operation();
        let mut receive = self.settings.receive(op, self.source(op)?, 0)?;
        let deliver = |grant, envelope: &_, message| self.deliver(grant, envelope, message);
        if let Some(peer) = self.shared.post(op.tag.is_some(), &mut receive, deliver)? {
            self.watch(peer);
        }
        Ok(())
    }

    fn cancel(&self, context: OpContext) -> Result<()> {
        self.receive_before_operation();
        self.with_member(None, |engine| engine.cancel(context))
    }

    fn name(&self) -> Result<Vec<u8>> {
        Err(Errno::EOPNOTSUPP)
    }

    fn option(&self, name: u32) -> Result<usize> {
        match name {
            sys::FI_OPT_MIN_MULTI_RECV => Ok(self.settings.min_multi_recv()),
            _ => Err(Errno::ENOPROTOOPT),
        }
    }

    fn set_option(&self, name: u32, value: usize) -> Result<()> {
        match name {
            sys::FI_OPT_MIN_MULTI_RECV => {
                self.settings.set_min_multi_recv(value);
                Ok(())
            }
            _ => Err(Errno::ENOPROTOOPT),
        }
    }
}
