// SPDX-License-Identifier: BSD-2-Clause
//! Starts atomic operations on a peer's memory (`fi_atomic(3)`), and executes those of peers on
//! local memory, one at a time. A request contains the operands, like the data of a write. The
//! previous values come back like the answer to a read.

use channel::{
    bytes::SharedBytes,
    contract::{Payload, Sent},
    wire::{Header, Kind, LONGEST},
};
use ffi::{
    Errno, Result,
    atomic::{self, Datatype, Form, Op},
    flags,
    ops::ep::{
        atomic::{Atomic, MAX_BYTES},
        rma::RemoteParts,
    },
};

use super::{
    ops::{OpKind, SendOp},
    outgoing::Outgoing,
    peers::Peers,
    rma::request,
    tx::Tx,
};
use crate::regions::{Accesses, Target};

/// Encodes form, datatype and operation as the `bits` of a request.
fn pack(form: Form, datatype: Datatype, op: Op) -> u64 {
    let form = match form {
        Form::Base => 0,
        Form::Fetch => 1,
        Form::Compare => 2,
    };
    form | u64::from(datatype.raw()) << 8 | u64::from(op.raw()) << 16
}

/// Decodes the result of [`pack`]. Returns `None` if the operation is not supported.
fn unpack(bits: u64) -> Option<(Form, Datatype, Op)> {
    let form = match bits & 0xff {
        0 => Form::Base,
        1 => Form::Fetch,
        2 => Form::Compare,
        _ => return None,
    };
    let datatype = Datatype::from_raw((bits >> 8 & 0xff) as u32)?;
    let op = Op::from_raw((bits >> 16 & 0xff) as u32)?;
    atomic::supports(form, datatype, op).then_some((form, datatype, op))
}

/// The kinds of access that an atomic operation with these `bits` counts as (`fi_cntr(3)`). A
/// fetching or comparing operation reads and writes, as the sockets and psm3 providers count it;
/// `FI_ATOMIC_READ` only reads. Invalid `bits` count as no access.
pub(crate) fn accesses_of_atomic(bits: u64) -> Accesses {
    match unpack(bits) {
        Some((_, _, Op::Read)) => Accesses { reads: true, writes: false },
        Some((form, ..)) => Accesses { reads: form != Form::Base, writes: true },
        None => Accesses { reads: false, writes: false },
    }
}

impl Tx {
    /// Starts an atomic operation on a peer's memory. `work`: the deferred work that it is, or 0.
    ///
    /// # Errors
    /// `EAGAIN` if there is no room, `ECONNABORTED` if the peer is gone.
    pub(super) fn atomic(
        &mut self,
        peers: &mut Peers,
        work: u32,
        peer: u32,
        op: &Atomic,
        options: Outgoing,
    ) -> Result<()> {
        let new =
            SendOp::new(OpKind::of_atomic(op.form), peer, &op.result, op.context, options.report);
        let entry = SendOp { acknowledged: true, work, ..new };
        self.start_rma(peers, entry, op.remote.len(), |_, peers, number| {
            let data = [op.operand.clone(), op.compare.clone()];
            let mut header = request(Kind::Atomic, &op.remote, number);
            header.bits = pack(op.form, op.datatype, op.op);
            let payload = Payload::PartsAndData(op.remote.as_slice(), &data);
            let sent = peers.push(peer, &header, payload)?;
            if sent == Sent::Yes { Ok(()) } else { Err(Errno::EAGAIN) }
        })
    }
}

/// A request for an atomic operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct AtomicOp {
    form: Form,
    datatype: Datatype,
    op: Op,
    /// Length of the operand in bytes; 0 for `FI_ATOMIC_READ`.
    operand: usize,
    /// Length in bytes of the values to compare with; 0 if the operation does not compare.
    compare: usize,
}

impl AtomicOp {
    /// Decodes and checks a request for an atomic operation on `parts` of local memory. `rest`
    /// contains the operand and the values to compare with.
    ///
    /// # Errors
    /// `EOPNOTSUPP` if the operation is not supported, `EPROTO` if a length is wrong.
    pub(super) fn read(
        header: &Header,
        parts: &RemoteParts,
        rest: SharedBytes<'_>,
    ) -> Result<Self> {
        let (form, datatype, op) = unpack(header.bits).ok_or(Errno::EOPNOTSUPP)?;
        let len = parts.len() as usize;
        let size = datatype.size() as u64;
        let whole = parts.as_slice().iter().all(|part| part.len.is_multiple_of(size));
        let operand = if op == Op::Read { 0 } else { len };
        let compare = if form == Form::Compare { len } else { 0 };
        if !whole || len > MAX_BYTES || rest.len() < operand + compare {
            return Err(Errno::EPROTO);
        }
        Ok(Self { form, datatype, op, operand, compare })
    }

    /// Returns the access to local memory that the operation needs: `FI_REMOTE_READ` or
    /// `FI_REMOTE_WRITE`.
    pub(super) fn access(&self) -> u64 {
        if self.op == Op::Read { flags::REMOTE_READ } else { flags::REMOTE_WRITE }
    }
}

/// Buffers for the results, the operand and the compared values of the atomic operation that is
/// being executed.
#[derive(Debug, Default)]
pub(super) struct AtomicBuffers(Vec<u8>);

impl AtomicBuffers {
    /// Executes an atomic operation on local memory. Returns whether the peer gets the results.
    pub(super) fn execute(
        &mut self,
        request: &AtomicOp,
        target: &Target,
        rest: SharedBytes<'_>,
    ) -> bool {
        self.0.resize(3 * MAX_BYTES, 0);
        let (results, others) = self.0.split_at_mut(MAX_BYTES);
        let (operand, compare) = others.split_at_mut(MAX_BYTES);
        rest.first(request.operand).copy_to(operand);
        rest.skip(request.operand).first(request.compare).copy_to(compare);
        for (at, buffer) in target.placed() {
            let part = at..at + buffer.len();
            let operands = (&operand[part.clone()], &compare[part.clone()]);
            let (datatype, op) = (request.datatype, request.op);
            atomic::execute(buffer, datatype, op, operands.0, operands.1, &mut results[part]);
        }
        request.form != Form::Base
    }

    /// The first `len` bytes of the results of the last operation.
    pub(super) fn results(&self, len: usize) -> &[u8] {
        &self.0[..len]
    }
}

// Operand, comparison and the descriptions of four parts must fit a buffer.
const _: () = assert!(2 * MAX_BYTES + 4 * 24 <= LONGEST);
