// SPDX-License-Identifier: BSD-2-Clause
//! `fi_ep_bind`: the objects that an endpoint uses. A bind with invalid arguments changes nothing.

use std::sync::Arc;

use ffi::{
    Errno, Result, flags,
    object::{Bound, direction},
    sys,
};

use crate::{
    av::AddressVector, cntr::Counter, cq::CompletionQueue, engine::completions::CqBinding,
    ep::Endpoint, eq::EventQueue, srx::SharedReceive, stx::SharedTransmit,
};

/// Binds an object at a place. Returns `EINVAL` if another object is bound there already.
fn bind_once<T>(place: &mut Option<T>, object: T) -> Result<()> {
    if place.is_some() {
        return Err(Errno::EINVAL);
    }
    *place = Some(object);
    Ok(())
}

impl Endpoint {
    pub(crate) fn bind_object(&self, other: &Bound, bind_flags: u64) -> Result<()> {
        match other.class() {
            sys::FI_CLASS_AV => {
                let av = self.domain.own::<AddressVector>(other)?;
                self.with(|engine| bind_once(&mut engine.peers.av, Arc::clone(&av)))?;
                av.endpoints.add(&self.shared)
            }
            sys::FI_CLASS_CQ => self.bind_cq(&self.domain.own(other)?, bind_flags),
            sys::FI_CLASS_CNTR => self.bind_cntr(&self.domain.own(other)?, bind_flags),
            sys::FI_CLASS_SRX_CTX => self.bind_shared_receive(&self.domain.own(other)?),
            sys::FI_CLASS_STX_CTX => {
                self.domain.own::<SharedTransmit>(other)?;
                self.with(|engine| {
                    if engine.enabled || !std::mem::take(&mut engine.awaits_stx) {
                        tracing::info!(
                            "a shared transmit context is bound once, before fi_enable, and to an \
                             endpoint opened with tx_ctx_cnt = FI_SHARED_CONTEXT"
                        );
                        return Err(Errno::EINVAL);
                    }
                    Ok(())
                })
            }
            // The queue stays empty, because an endpoint without connections reports no events.
            sys::FI_CLASS_EQ => {
                let eq = other.get::<EventQueue>()?;
                self.with(|engine| {
                    engine.eq = Some(eq);
                    Ok(())
                })
            }
            _ => Err(Errno::EINVAL),
        }
    }

    fn bind_cq(&self, cq: &Arc<CompletionQueue>, bind_flags: u64) -> Result<()> {
        ffi::object::check_flags(
            bind_flags,
            flags::TRANSMIT | flags::RECV | flags::SELECTIVE_COMPLETION,
        )?;
        let (transmit, receive) = direction(bind_flags);
        if !transmit && !receive {
            return Err(Errno::EINVAL);
        }
        let selective = bind_flags & flags::SELECTIVE_COMPLETION != 0;
        self.with(|engine| {
            if transmit && engine.completions.tx.cq.is_some()
                || receive && engine.completions.rx.cq.is_some()
            {
                return Err(Errno::EINVAL);
            }
            let bind = |binding: &mut CqBinding| {
                binding.cq = Some(Arc::clone(cq));
                binding.selective = selective;
            };
            if transmit {
                bind(&mut engine.completions.tx);
            }
            if receive {
                bind(&mut engine.completions.rx);
            }
            Ok(())
        })?;
        if transmit {
            self.stop_sends();
        }
        cq.endpoints.add(&self.shared)
    }

    fn bind_cntr(&self, cntr: &Arc<Counter>, bind_flags: u64) -> Result<()> {
        self.with(|engine| {
            let mut unknown = bind_flags;
            let mut places = Vec::new();
            for (flag, place) in engine.completions.counters.all() {
                unknown &= !flag;
                if bind_flags & flag != 0 {
                    places.push(place);
                }
            }
            ffi::object::check_flags(unknown, 0)?;
            if places.iter().any(|place| place.is_some()) {
                return Err(Errno::EINVAL);
            }
            for place in places {
                *place = Some(Arc::clone(cntr));
            }
            Ok(())
        })?;
        if bind_flags & flags::SEND != 0 {
            self.stop_sends();
        }
        cntr.endpoints.add(&self.shared)
    }

    fn bind_shared_receive(&self, srx: &Arc<SharedReceive>) -> Result<()> {
        self.with(|engine| {
            if engine.enabled || engine.rx.device.is_shared() {
                return Err(Errno::EINVAL);
            }
            engine.rx.device.share(srx.join(&self.shared));
            Ok(())
        })
    }
}
