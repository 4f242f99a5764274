// SPDX-License-Identifier: BSD-2-Clause
//! `fi_atomic(3)`: operations that the peer executes on its memory, one at a time. They are sent
//! like writes, with their operands. The previous values return like the answer of a read.

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

use crate::{
    engine::{
        Engine,
        ops::{OpKind, SendOp},
        request::{Served, request},
    },
    regions::Accesses,
    sizes::Class,
};

/// Encodes form, datatype and operation as the `bits` of a request.
fn pack(form: Form, datatype: Datatype, op: Op) -> u64 {
    let form = match form {
        Form::Base => 0,
        Form::Fetch => 1,
        Form::Compare => 2,
    };
    form | u64::from(datatype.raw()) << 8 | u64::from(op.raw()) << 16
}

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
/// `FI_ATOMIC_READ` only reads.
pub(crate) fn accesses_of_atomic(bits: u64) -> Accesses {
    match unpack(bits) {
        Some((_, _, Op::Read)) => Accesses { reads: true, writes: false },
        Some((form, ..)) => Accesses { reads: form != Form::Base, writes: true },
        None => Accesses { reads: false, writes: false },
    }
}

impl Engine {
    /// Any form of `fi_atomic`, `fi_fetch_atomic` and `fi_compare_atomic`.
    pub(crate) fn atomic(&mut self, op: &Atomic) -> Result<()> {
        let len = op.remote.len() as usize;
        let start = self.start_rma(op.peer, op.flags, (Class::Atomic, len, op.operand.len()))?;
        let peer = start.peer;
        let kind = OpKind::of_atomic(op.form);
        let number = self.sends.enter(SendOp {
            kind,
            peer,
            buffer: op.result.clone(),
            remote: RemoteParts::default(),
            data: None,
            context: op.context,
            report: start.report,
            acknowledged: true,
            work: self.completions.work(),
            age: 0,
        });
        let sent = self.send_atomic(peer, op, number);
        if sent != Ok(true) {
            self.sends.take(number);
            return sent.and(Err(Errno::EAGAIN));
        }
        self.rma_under_way.start();
        self.peers.channels.rma.sent += 1;
        self.peers.channels.rma.sent_bytes += op.remote.len();
        Ok(())
    }

    fn send_atomic(&mut self, peer: u32, op: &Atomic, number: u64) -> Result<bool> {
        let parts = op.remote.as_slice();
        let data = [op.operand.clone(), op.compare.clone()];
        let mut header = request(Kind::Atomic, &op.remote, number);
        header.bits = pack(op.form, op.datatype, op.op);
        let sent = self.peers.push(peer, &header, Payload::Frame(parts, &data))?;
        Ok(sent == Sent::Yes)
    }

    /// Executes an atomic operation on local memory. The previous values are left in `scratch`.
    pub(crate) fn serve_atomic(
        &mut self,
        header: &Header,
        parts: &RemoteParts,
        rest: SharedBytes<'_>,
    ) -> Result<Served> {
        let (form, datatype, op) = unpack(header.bits).ok_or(Errno::EOPNOTSUPP)?;
        let len = parts.len() as usize;
        let size = datatype.size() as u64;
        let whole = parts.as_slice().iter().all(|part| part.len.is_multiple_of(size));
        let operand_len = if op == Op::Read { 0 } else { len };
        let compare_len = if form == Form::Compare { len } else { 0 };
        if !whole || len > MAX_BYTES || rest.len() < operand_len + compare_len {
            return Err(Errno::EPROTO);
        }
        let access = if op == Op::Read { flags::REMOTE_READ } else { flags::REMOTE_WRITE };
        let target = self.target(parts, flags::ATOMIC, access)?;
        if self.scratch.is_empty() {
            self.scratch = vec![0; 3 * MAX_BYTES];
        }
        let (results, rest_of_scratch) = self.scratch.split_at_mut(MAX_BYTES);
        let (operand, compare) = rest_of_scratch.split_at_mut(MAX_BYTES);
        rest.first(operand_len).copy_to(operand);
        rest.skip(operand_len).first(compare_len).copy_to(compare);
        for (at, buffer) in target.placed() {
            let end = at + buffer.len();
            let results = &mut results[at..end];
            atomic::execute(buffer, datatype, op, &operand[at..end], &compare[at..end], results);
        }
        Ok(if form == Form::Base { Served::Done } else { Served::Results(len) })
    }
}

// Operand, comparison and four parts must fit a buffer.
const _: () = assert!(2 * MAX_BYTES + 4 * 24 <= LONGEST);
