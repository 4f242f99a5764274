// SPDX-License-Identifier: BSD-2-Clause
//! The attributes that the provider offers, and the checks of hints (`fi_getinfo(3)`). A hint that
//! cannot be met is refused with a log message.

use channel::wire::{INLINE, LONGEST};
use ffi::{
    Errno, flags,
    info::{DomainAttr, EpAttr, FabricAttr, Info, RxAttr, TxAttr},
    memory::IOV_LIMIT,
    ops::ep::rma::RemotePart,
    sys,
};

use crate::{mr_mode, params::api_at_least};

/// Name of the fabric.
pub(crate) const FABRIC: &str = "tcam";
/// Name of the domain.
pub(crate) const DOMAIN: &str = "tcam0";
/// Version of the provider, as `FI_VERSION(major, minor)`.
pub(crate) const VERSION: u32 = 1;

const PRIMARY: u64 = flags::MSG | flags::TAGGED | flags::RMA | flags::ATOMIC;
const MODIFIERS: u64 = flags::SEND
    | flags::RECV
    | flags::READ
    | flags::WRITE
    | flags::REMOTE_READ
    | flags::REMOTE_WRITE;
/// Secondary capabilities that change nothing for programs that do not request them.
const ALWAYS_OFFERED: u64 = flags::MULTI_RECV
    | DOMAIN_CAPS
    | flags::FENCE
    | flags::TRIGGER
    | flags::RMA_EVENT
    | flags::NAMED_RX_CTX;
/// Secondary capabilities that change the meaning of operations. With hints, only the requested
/// ones are offered.
const ON_REQUEST: u64 = flags::DIRECTED_RECV | flags::SOURCE;

/// As `ON_REQUEST`, but without hints these capabilities are not offered. MPICH requests every
/// capability that is offered without hints, and with `FI_EXACT_DIRECTED_RECV` its receives without
/// a source would fail. libfabric 2.0 added these capabilities. In earlier versions, the bit of
/// `FI_EXACT_DIRECTED_RECV` meant `FI_VARIABLE_MSG`.
const OFFERED_IF_NAMED: u64 =
    flags::TAGGED_DIRECTED_RECV | flags::EXACT_DIRECTED_RECV | flags::TAGGED_MULTI_RECV;

/// The capabilities that are offered without hints.
const OFFERED: u64 = PRIMARY | MODIFIERS | ALWAYS_OFFERED | ON_REQUEST;
const TX_CAPS: u64 = PRIMARY
    | flags::SEND
    | flags::READ
    | flags::WRITE
    | flags::FENCE
    | flags::TRIGGER
    | flags::NAMED_RX_CTX;
const RX_CAPS: u64 = PRIMARY
    | flags::RECV
    | flags::REMOTE_READ
    | flags::REMOTE_WRITE
    | flags::MULTI_RECV
    | flags::TRIGGER
    | flags::RMA_EVENT
    | ON_REQUEST
    | OFFERED_IF_NAMED;
pub(crate) const DOMAIN_CAPS: u64 =
    flags::LOCAL_COMM | flags::REMOTE_COMM | flags::SHARED_AV | flags::AV_USER_ID;

/// Returns all capabilities that an application with this API version may request.
pub(crate) const fn caps_of(api_version: u32) -> u64 {
    if api_at_least(api_version, 2, 0) { OFFERED | OFFERED_IF_NAMED } else { OFFERED }
}

/// Flags that a transmit may have by default.
pub(crate) const TX_OP_FLAGS: u64 = flags::COMPLETION
    | flags::INJECT
    | flags::INJECT_COMPLETE
    | flags::TRANSMIT_COMPLETE
    | flags::DELIVERY_COMPLETE
    | flags::MATCH_COMPLETE;
/// Flags that a receive may have by default.
pub(crate) const RX_OP_FLAGS: u64 = flags::COMPLETION | flags::MULTI_RECV;

/// Supported endpoint types. Datagrams need not arrive, but those of this provider do.
pub(crate) const EP_TYPES: [u32; 2] = [sys::FI_EP_RDM, sys::FI_EP_DGRAM];

/// Longest message: the largest value of a `ssize_t`.
pub(crate) const MAX_MSG_SIZE: usize = isize::MAX as usize;
/// Default for the maximum number of operations in progress per direction.
pub(crate) const QUEUE_SIZE: usize = 1024;
const MAX_QUEUE_SIZE: usize = 1 << 16;
const OBJECTS: usize = 1 << 16;
/// Maximum number of contexts per direction. The identity of an endpoint (`channel::identity`) has
/// 8 bits for the index of the context.
pub(crate) const MAX_CONTEXTS: usize = 1 << 8;
/// Orders that are kept. These are all orders, because all operations of a peer arrive over one
/// ring or one connection.
const ORDER: u64 = flags::ORDER_STRICT
    | flags::ORDER_RMA_RAR
    | flags::ORDER_RMA_RAW
    | flags::ORDER_RMA_WAR
    | flags::ORDER_RMA_WAW
    | flags::ORDER_ATOMIC_RAR
    | flags::ORDER_ATOMIC_RAW
    | flags::ORDER_ATOMIC_WAR
    | flags::ORDER_ATOMIC_WAW;
/// The application may use every bit of the match bits (`FI_TAG_GENERIC`).
const TAG_FORMAT: u64 = 0xaaaa_aaaa_aaaa_aaaa;
/// `FI_TAG_MPI` and `FI_TAG_CCL` of libfabric 2.x: formats that do not need arbitrary match bits.
const TAG_MPI: u64 = 1;
const TAG_CCL: u64 = 2;
/// A private protocol number, which is not in libfabric's list.
const PROTOCOL: u32 = 1 << 31 | 0x7463;

/// Returns the maximum length of an injected message, for a given `FI_TCAM_EAGER_SIZE`.
pub(crate) fn inject_size(eager_size: usize) -> usize {
    eager_size.clamp(INLINE, 4096)
}

/// Returns the length up to which a write (with the list of its parts) and the answer to a read are
/// sent at once through buffers, without a copy by the kernel.
pub(crate) fn short_size(eager_size: usize) -> usize {
    eager_size.clamp(INLINE, LONGEST)
}

/// Returns the maximum length of a read or write that no later one overtakes (`max_order_*_size`),
/// even if the kernel refuses to copy between processes.
pub(crate) fn order_size(eager_size: usize) -> usize {
    short_size(eager_size) - IOV_LIMIT * size_of::<RemotePart>()
}

/// Returns the whole offer, which is the answer of `fi_getinfo` without hints.
///
/// `eager_size` is `FI_TCAM_EAGER_SIZE`; `mr_mode` comes from [`crate::mr_mode::required`].
pub(crate) fn offer(eager_size: usize, mr_mode: i32, api_version: u32) -> Info {
    Info {
        caps: OFFERED,
        mode: 0,
        addr_format: sys::FI_SOCKADDR_IN,
        tx: Some(TxAttr {
            caps: TX_CAPS,
            msg_order: ORDER,
            inject_size: inject_size(eager_size),
            size: QUEUE_SIZE,
            iov_limit: IOV_LIMIT,
            rma_iov_limit: IOV_LIMIT,
            ..Default::default()
        }),
        rx: Some(RxAttr {
            caps: RX_CAPS & OFFERED,
            msg_order: ORDER,
            size: QUEUE_SIZE,
            iov_limit: IOV_LIMIT,
            ..Default::default()
        }),
        ep: Some(EpAttr {
            kind: sys::FI_EP_RDM,
            protocol: PROTOCOL,
            protocol_version: 1,
            max_msg_size: MAX_MSG_SIZE,
            max_order_raw_size: order_size(eager_size),
            max_order_war_size: order_size(eager_size),
            max_order_waw_size: order_size(eager_size),
            mem_tag_format: TAG_FORMAT,
            tx_ctx_cnt: 1,
            rx_ctx_cnt: 1,
            ..Default::default()
        }),
        domain: Some(DomainAttr {
            name: Some(DOMAIN.to_owned()),
            threading: sys::FI_THREAD_SAFE,
            control_progress: sys::FI_PROGRESS_MANUAL,
            data_progress: sys::FI_PROGRESS_MANUAL,
            resource_mgmt: sys::FI_RM_ENABLED,
            av_type: sys::FI_AV_UNSPEC,
            mr_mode,
            mr_key_size: 8,
            cq_data_size: 8,
            cq_cnt: OBJECTS,
            ep_cnt: OBJECTS,
            tx_ctx_cnt: OBJECTS,
            rx_ctx_cnt: OBJECTS,
            max_ep_tx_ctx: MAX_CONTEXTS,
            max_ep_rx_ctx: MAX_CONTEXTS,
            // Offered only on request: endpoints gain nothing from a shared context, and if it were
            // always offered, Sandia OpenSHMEM would bind one to an endpoint that is already
            // enabled.
            max_ep_stx_ctx: 0,
            max_ep_srx_ctx: OBJECTS,
            cntr_cnt: OBJECTS,
            mr_iov_limit: IOV_LIMIT,
            mr_cnt: OBJECTS,
            caps: DOMAIN_CAPS,
            ..Default::default()
        }),
        fabric: Some(FabricAttr {
            name: Some(FABRIC.to_owned()),
            prov_name: None,
            prov_version: VERSION,
            api_version,
        }),
        ..Default::default()
    }
}

/// Logs a hint that cannot be met. Returns `ENODATA`.
fn refuse<T>(
    what: &str,
    wanted: impl std::fmt::Debug,
    offered: impl std::fmt::Debug,
) -> Result<T, Errno> {
    tracing::info!("the hint {what} = {wanted:?} cannot be met: tcam offers {offered:?}");
    Err(Errno::ENODATA)
}

fn bits(what: &str, wanted: u64, offered: u64) -> Result<(), Errno> {
    if wanted & !offered == 0 {
        return Ok(());
    }
    refuse(what, format_args!("{wanted:#x}"), format_args!("{offered:#x}"))
}

fn at_most(what: &str, wanted: usize, offered: usize) -> Result<(), Errno> {
    if wanted <= offered { Ok(()) } else { refuse(what, wanted, offered) }
}

fn one_of(what: &str, wanted: u32, offered: &[u32]) -> Result<(), Errno> {
    if wanted == 0 || offered.contains(&wanted) { Ok(()) } else { refuse(what, wanted, offered) }
}

fn name(what: &str, wanted: Option<&str>, offered: &str) -> Result<(), Errno> {
    match wanted {
        Some(wanted) if !wanted.eq_ignore_ascii_case(offered) => refuse(what, wanted, offered),
        _ => Ok(()),
    }
}

/// `FI_PROGRESS_CONTROL_UNIFIED` of libfabric 2.0 and newer.
const PROGRESS_CONTROL_UNIFIED: u32 = 3;
/// `FI_SOCKADDR_IP` of libfabric 2.x.
const SOCKADDR_IP: u32 = 17;

/// Narrows the offer to what the hints ask for.
///
/// # Errors
/// `ENODATA` if a hint cannot be met.
pub(crate) fn meet(mut info: Info, hints: &Info) -> Result<Info, Errno> {
    let api_version = info.fabric.as_ref().map_or(0, |fabric| fabric.api_version);
    let known = caps_of(api_version);
    bits("caps", hints.caps, known)?;
    info.caps = capabilities(hints.caps);
    one_of(
        "addr_format",
        hints.addr_format,
        &[sys::FI_SOCKADDR, sys::FI_SOCKADDR_IN, SOCKADDR_IP],
    )?;
    if hints.handle {
        return refuse("handle", true, "no connections");
    }
    if let (Some(wanted), Some(tx)) = (&hints.tx, &mut info.tx) {
        meet_tx(tx, wanted)?;
    }
    if let (Some(wanted), Some(rx)) = (&hints.rx, &mut info.rx) {
        meet_rx(rx, wanted, known)?;
    }
    if let (Some(tx), Some(rx)) = (&mut info.tx, &mut info.rx) {
        tx.caps &= info.caps;
        rx.caps = (rx.caps | OFFERED_IF_NAMED) & info.caps;
    }
    if let (Some(wanted), Some(ep)) = (&hints.ep, &mut info.ep) {
        meet_ep(ep, wanted)?;
    }
    if let (Some(wanted), Some(domain)) = (&hints.domain, &mut info.domain) {
        meet_domain(domain, wanted, api_version)?;
    }
    let shares_tx = hints.ep.as_ref().is_some_and(|ep| ep.tx_ctx_cnt == SHARED_CONTEXT);
    let asks = hints.domain.as_ref().is_some_and(|domain| domain.max_ep_stx_ctx > 0);
    if let (true, Some(domain)) = (shares_tx || asks, &mut info.domain) {
        domain.max_ep_stx_ctx = OBJECTS;
    }
    if let Some(wanted) = &hints.fabric {
        name("fabric name", wanted.name.as_deref(), FABRIC)?;
    }
    Ok(info)
}

/// Returns the capabilities for a request (`fi_getinfo(3)`, "Capabilities"); 0 requests all that
/// are offered. Those in `ALWAYS_OFFERED` are always included. If the request has no primary
/// capability or no modifier, all of that group are included.
pub(crate) fn capabilities(wanted: u64) -> u64 {
    if wanted == 0 {
        return OFFERED;
    }
    let primary = if wanted & PRIMARY == 0 { PRIMARY } else { wanted & PRIMARY };
    let modifiers = if wanted & MODIFIERS == 0 { MODIFIERS } else { wanted & MODIFIERS };
    primary | modifiers | ALWAYS_OFFERED | wanted & (ON_REQUEST | OFFERED_IF_NAMED)
}

pub(crate) fn meet_tx(tx: &mut TxAttr, wanted: &TxAttr) -> Result<(), Errno> {
    // Capabilities of the other direction are ignored, as in libfabric's own providers.
    bits("tx caps", wanted.caps, TX_CAPS | DOMAIN_CAPS | RX_CAPS & OFFERED)?;
    bits("tx op_flags", wanted.op_flags, TX_OP_FLAGS)?;
    bits("tx msg_order", wanted.msg_order, ORDER)?;
    bits("tx comp_order", wanted.comp_order, 0)?;
    at_most("tx inject_size", wanted.inject_size, tx.inject_size)?;
    at_most("tx size", wanted.size, MAX_QUEUE_SIZE)?;
    at_most("tx iov_limit", wanted.iov_limit, IOV_LIMIT)?;
    at_most("tx rma_iov_limit", wanted.rma_iov_limit, IOV_LIMIT)?;
    tx.op_flags = wanted.op_flags;
    tx.size = if wanted.size == 0 { tx.size } else { wanted.size };
    if wanted.caps & PRIMARY != 0 {
        tx.caps = wanted.caps & TX_CAPS | TX_CAPS & MODIFIERS;
    }
    Ok(())
}

pub(crate) fn meet_rx(rx: &mut RxAttr, wanted: &RxAttr, known: u64) -> Result<(), Errno> {
    bits("rx caps", wanted.caps, RX_CAPS & known | DOMAIN_CAPS | TX_CAPS)?;
    bits("rx op_flags", wanted.op_flags, RX_OP_FLAGS)?;
    bits("rx msg_order", wanted.msg_order, ORDER)?;
    bits("rx comp_order", wanted.comp_order, 0)?;
    at_most("rx size", wanted.size, MAX_QUEUE_SIZE)?;
    at_most("rx iov_limit", wanted.iov_limit, IOV_LIMIT)?;
    rx.op_flags = wanted.op_flags;
    rx.size = if wanted.size == 0 { rx.size } else { wanted.size };
    if wanted.caps & PRIMARY != 0 {
        rx.caps = wanted.caps & RX_CAPS | RX_CAPS & MODIFIERS;
    }
    Ok(())
}

fn meet_ep(ep: &mut EpAttr, wanted: &EpAttr) -> Result<(), Errno> {
    one_of("endpoint type", wanted.kind, &EP_TYPES)?;
    if wanted.kind == sys::FI_EP_DGRAM {
        ep.kind = wanted.kind;
    }
    if matches!(wanted.mem_tag_format, TAG_MPI | TAG_CCL) {
        ep.mem_tag_format = wanted.mem_tag_format;
    }
    one_of("protocol", wanted.protocol, &[PROTOCOL])?;
    at_most("protocol_version", wanted.protocol_version as usize, 1)?;
    at_most("max_msg_size", wanted.max_msg_size, MAX_MSG_SIZE)?;
    at_most("msg_prefix_size", wanted.msg_prefix_size, 0)?;
    at_most("max_order_raw_size", wanted.max_order_raw_size, ep.max_order_raw_size)?;
    at_most("max_order_war_size", wanted.max_order_war_size, ep.max_order_war_size)?;
    at_most("max_order_waw_size", wanted.max_order_waw_size, ep.max_order_waw_size)?;
    ep.tx_ctx_cnt = contexts("tx_ctx_cnt", wanted.tx_ctx_cnt)?;
    ep.rx_ctx_cnt = contexts("rx_ctx_cnt", wanted.rx_ctx_cnt)?;
    at_most("auth_key_size", wanted.auth_key_size, 0)?;
    Ok(())
}

/// `FI_SHARED_CONTEXT`, as the number of contexts: the endpoint shares a context with other
/// endpoints.
pub(crate) const SHARED_CONTEXT: usize = usize::MAX;

/// Returns the number of contexts for a hint: 1 for 0, and otherwise the hint, which may be
/// [`SHARED_CONTEXT`]. Returns `ENODATA` if it is more than [`MAX_CONTEXTS`].
fn contexts(what: &str, wanted: usize) -> Result<usize, Errno> {
    match wanted {
        0 => Ok(1),
        1..=MAX_CONTEXTS | SHARED_CONTEXT => Ok(wanted),
        _ => refuse(what, wanted, MAX_CONTEXTS),
    }
}

/// Returns the numbers of transmit and receive contexts of an endpoint. Either may be
/// [`SHARED_CONTEXT`].
///
/// # Errors
/// `ENODATA` if a number is more than [`MAX_CONTEXTS`].
pub(crate) fn context_counts(info: &Info) -> Result<(usize, usize), Errno> {
    let (tx, rx) = info.ep.as_ref().map_or((1, 1), |ep| (ep.tx_ctx_cnt, ep.rx_ctx_cnt));
    Ok((contexts("tx_ctx_cnt", tx)?, contexts("rx_ctx_cnt", rx)?))
}

fn meet_domain(
    domain: &mut DomainAttr,
    wanted: &DomainAttr,
    api_version: u32,
) -> Result<(), Errno> {
    name("domain name", wanted.name.as_deref(), DOMAIN)?;
    bits("domain caps", wanted.caps, DOMAIN_CAPS)?;
    one_of(
        "control_progress",
        wanted.control_progress,
        &[sys::FI_PROGRESS_MANUAL, sys::FI_PROGRESS_AUTO, PROGRESS_CONTROL_UNIFIED],
    )?;
    one_of(
        "data_progress",
        wanted.data_progress,
        &[sys::FI_PROGRESS_MANUAL, sys::FI_PROGRESS_AUTO],
    )?;
    one_of("resource_mgmt", wanted.resource_mgmt, &[sys::FI_RM_DISABLED, sys::FI_RM_ENABLED])?;
    one_of("av_type", wanted.av_type, &[sys::FI_AV_MAP, sys::FI_AV_TABLE])?;
    at_most("mr_key_size", wanted.mr_key_size, domain.mr_key_size)?;
    at_most("cq_data_size", wanted.cq_data_size, domain.cq_data_size)?;
    at_most("cq_cnt", wanted.cq_cnt, OBJECTS)?;
    at_most("ep_cnt", wanted.ep_cnt, OBJECTS)?;
    at_most("domain tx_ctx_cnt", wanted.tx_ctx_cnt, OBJECTS)?;
    at_most("domain rx_ctx_cnt", wanted.rx_ctx_cnt, OBJECTS)?;
    at_most("max_ep_tx_ctx", wanted.max_ep_tx_ctx, MAX_CONTEXTS)?;
    at_most("max_ep_rx_ctx", wanted.max_ep_rx_ctx, MAX_CONTEXTS)?;
    at_most("max_ep_stx_ctx", wanted.max_ep_stx_ctx, OBJECTS)?;
    at_most("max_ep_srx_ctx", wanted.max_ep_srx_ctx, OBJECTS)?;
    at_most("cntr_cnt", wanted.cntr_cnt, OBJECTS)?;
    at_most("mr_iov_limit", wanted.mr_iov_limit, IOV_LIMIT)?;
    at_most("mr_cnt", wanted.mr_cnt, OBJECTS)?;
    at_most("domain auth_key_size", wanted.auth_key_size, 0)?;
    at_most("max_err_data", wanted.max_err_data, 0)?;
    domain.mr_mode = mr_mode::meet(domain.mr_mode, wanted.mr_mode, api_version)
        .map_or_else(|| refuse("mr_mode", wanted.mr_mode, domain.mr_mode), Ok)?;
    // The requested value must be returned: MPICH aborts on any other value.
    let keep = |wanted: u32, offered: &mut u32| {
        if wanted != 0 {
            *offered = wanted;
        }
    };
    keep(wanted.threading, &mut domain.threading);
    keep(wanted.control_progress, &mut domain.control_progress);
    keep(wanted.data_progress, &mut domain.data_progress);
    keep(wanted.av_type, &mut domain.av_type);
    keep(wanted.resource_mgmt, &mut domain.resource_mgmt);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hints() -> Info {
        Info {
            tx: Some(TxAttr::default()),
            rx: Some(RxAttr::default()),
            ep: Some(EpAttr::default()),
            domain: Some(DomainAttr::default()),
            fabric: Some(FabricAttr::default()),
            ..Default::default()
        }
    }

    fn answer_to(api_version: u32, hints: &Info) -> Result<Info, Errno> {
        meet(offer(8192, 0, api_version), hints)
    }

    fn answer(hints: &Info) -> Result<Info, Errno> {
        answer_to(2 << 16, hints)
    }

    #[test]
    fn empty_hints_get_everything() {
        assert_eq!(answer(&hints()).unwrap(), offer(8192, 0, 2 << 16));
    }

    #[test]
    fn bits_with_an_earlier_meaning_are_refused_to_older_programs() {
        for bit in [45, 46, 48] {
            let caps = flags::TAGGED | 1 << bit;
            let of_info = Info { caps, ..hints() };
            let of_rx = Info { rx: Some(RxAttr { caps, ..Default::default() }), ..hints() };
            for hints in [of_info, of_rx] {
                for minor in [4, 9, 14, 22] {
                    assert_eq!(answer_to(1 << 16 | minor, &hints), Err(Errno::ENODATA));
                }
                assert!(answer(&hints).is_ok());
            }
        }
    }

    #[test]
    fn directed_receives_are_offered_on_request() {
        let info = answer(&Info { caps: flags::TAGGED, ..hints() }).unwrap();
        assert_eq!(info.caps & (flags::MSG | flags::DIRECTED_RECV), 0);
        assert_eq!(info.caps & MODIFIERS, MODIFIERS);
        let info = answer(&Info { caps: flags::TAGGED | flags::DIRECTED_RECV, ..hints() }).unwrap();
        assert_ne!(info.caps & flags::DIRECTED_RECV, 0);
    }

    #[test]
    fn capabilities_that_change_receives_need_their_name() {
        assert_eq!(answer(&hints()).unwrap().caps & OFFERED_IF_NAMED, 0);
        let exact = flags::TAGGED | flags::EXACT_DIRECTED_RECV;
        let info = answer(&Info { caps: exact, ..hints() }).unwrap();
        assert_eq!(info.caps & OFFERED_IF_NAMED, flags::EXACT_DIRECTED_RECV);
        assert_eq!(info.rx.unwrap().caps & OFFERED_IF_NAMED, flags::EXACT_DIRECTED_RECV);
        for (format, answered) in [(0, TAG_FORMAT), (TAG_MPI, TAG_MPI), (TAG_CCL, TAG_CCL)] {
            let mut hints = hints();
            hints.ep.as_mut().unwrap().mem_tag_format = format;
            assert_eq!(answer(&hints).unwrap().ep.unwrap().mem_tag_format, answered);
        }
    }

    #[test]
    fn threading_comes_back_as_asked() {
        let mut hints = hints();
        hints.domain.as_mut().unwrap().threading = sys::FI_THREAD_DOMAIN;
        assert_eq!(answer(&hints).unwrap().domain.unwrap().threading, sys::FI_THREAD_DOMAIN);
    }

    #[test]
    fn unsupported_hints_are_refused() {
        let refused: [fn(&mut Info); 10] = [
            |info| info.caps = flags::HMEM,
            |info| info.addr_format = sys::FI_SOCKADDR_IN6,
            |info| info.ep.as_mut().unwrap().kind = sys::FI_EP_MSG,
            |info| info.ep.as_mut().unwrap().tx_ctx_cnt = MAX_CONTEXTS + 1,
            |info| info.tx.as_mut().unwrap().inject_size = 1 << 20,
            |info| info.tx.as_mut().unwrap().op_flags = 1 << 60,
            |info| info.rx.as_mut().unwrap().iov_limit = IOV_LIMIT + 1,
            |info| info.domain.as_mut().unwrap().data_progress = 77,
            |info| info.domain.as_mut().unwrap().name = Some("eth0".to_owned()),
            |info| info.fabric.as_mut().unwrap().name = Some("IB".to_owned()),
        ];
        for change in refused {
            let mut hints = hints();
            change(&mut hints);
            assert_eq!(answer(&hints).unwrap_err(), Errno::ENODATA);
        }
    }
}
