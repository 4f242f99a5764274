// SPDX-License-Identifier: BSD-2-Clause
//! The list entries of Cassini's matching engines in the match modes *hardware* and *hybrid*, by
//! reading of libfabric af8ddbe (prov/cxi/src) and shs-cxi-driver 9ce667e.
//!
//! ```text
//! an engine has a number of entries; an endpoint holds some of them for its buffers
//! a receive or an unexpected message comes to endpoint e:
//!   its engine has a free entry    -> the element takes it
//!   hardware, e has unexpected     -> flow control: they all move to the host, and the element
//!   messages in the hardware          takes an entry            (cxip_msg_hpc.c:2026, 2215)
//!   hardware, e has none           -> the job aborts
//!   hybrid                         -> e leaves the hardware for good: its unexpected messages move
//!                                     to the host, and later elements are on the host. Receives
//!                                     keep their entries until they match (cxip.h:1796)
//! ```
//! The victim of an abort may be another endpoint than the one that holds most entries.

/// A list entry of an endpoint is on engine `number of the endpoint % ENGINES` of its NIC
/// (driver, `cass_lni.c:155`). Endpoints are numbered in the order in which they open; the order of
/// ranks is assumed.
pub(crate) const ENGINES: usize = 4;
/// List entries of an engine (driver, `cass_pt.c:24`).
pub(crate) const ENTRIES: u64 = 16_384;

/// Values of the provider on which the demand depends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Provider {
    /// Bytes of the longest message that is sent eagerly: `RDZV_THRESHOLD` and `RDZV_GET_MIN`.
    pub(crate) eager: u64,
    /// Bytes of a longer message that are sent before it is matched (`RDZV_EAGER_SIZE`).
    pub(crate) first_part: u64,
    /// List entries of an engine that the job may use.
    pub(crate) available: u64,
}

impl Provider {
    /// Returns true for a message that is sent eagerly, and its bytes in a buffer while no receive
    /// matches it.
    pub(crate) fn buffered(&self, len: u64) -> (bool, u64) {
        let is_eager = len <= self.eager;
        (is_eager, if is_eager { len } else { self.first_part })
    }
}

/// The values of libfabric 2.6 (`cxip_info.c:621`), for all entries of an engine.
pub(crate) const PROVIDER: Provider =
    Provider { eager: 16_384 + 2_049, first_part: 2_048, available: ENTRIES };

/// The modes that use list entries for messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UsesEntries {
    Hardware,
    Hybrid,
}

impl UsesEntries {
    /// Returns the entries that an endpoint holds for its buffers: 3 overflow buffers, and in mode
    /// hybrid 6 request buffers (`cxip_msg_hpc.c:3970`).
    pub(crate) const fn buffers(self) -> u64 {
        match self {
            Self::Hardware => 3,
            Self::Hybrid => 9,
        }
    }
}

/// A receive or an unexpected message, with its number among those of its trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Element {
    Receive(u64),
    Message(u64),
}

/// A context of an endpoint, which has a trace.
#[derive(Clone, Copy, Debug)]
struct OfContext {
    endpoint: usize,
    /// Receives in list entries now.
    receives: u64,
    /// Receives, and messages, before these numbers were added earlier.
    receives_seen: u64,
    messages_seen: u64,
    /// Receives from this number on are on the host.
    receives_from: u64,
    /// Unexpected messages before this number are on the host.
    messages_before: u64,
}

/// Counts of an endpoint.
#[derive(Clone, Debug, Default)]
pub(crate) struct OfEndpoint {
    engine: usize,
    /// Receives and unexpected messages in list entries now.
    receives: u64,
    messages: u64,
    /// It has left the hardware (mode hybrid).
    pub(crate) has_left: bool,
    /// Receives that waited, and unexpected messages, in the whole run.
    pub(crate) all_receives: u64,
    pub(crate) all_messages: u64,
    /// Those of them that came after the endpoint had left the hardware.
    pub(crate) receives_on_host: u64,
    pub(crate) messages_on_host: u64,
    /// Unexpected messages that moved from list entries to the host, and the number of times that
    /// the endpoint moved some.
    pub(crate) moved: u64,
    pub(crate) moves: u64,
}

/// The first element without an entry of an endpoint that has nothing to move to the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Abort {
    /// Number of the endpoint.
    pub(crate) victim: usize,
    pub(crate) is_receive: bool,
    /// Receives of its context that wait.
    pub(crate) receives: u64,
    /// Entries that the endpoints of the engine hold for elements, by number of the endpoint.
    pub(crate) held: Vec<(usize, u64)>,
}

/// The state of all engines, see the module.
#[derive(Clone, Debug)]
pub(crate) struct ListEntries {
    mode: UsesEntries,
    available: u64,
    held: Vec<u64>,
    pub(crate) endpoints: Vec<OfEndpoint>,
    contexts: Vec<OfContext>,
    pub(crate) abort: Option<Abort>,
}

impl ListEntries {
    /// Makes engines with `available` entries each. `engine_of` gives the engine of each endpoint,
    /// and `endpoint_of` the endpoint of each context.
    pub(crate) fn new(
        mode: UsesEntries,
        available: u64,
        engine_of: &[usize],
        endpoint_of: &[usize],
    ) -> Self {
        let mut held = vec![0; engine_of.iter().map(|engine| engine + 1).max().unwrap_or(0)];
        engine_of.iter().for_each(|engine| held[*engine] += mode.buffers());
        let endpoints = engine_of.iter().map(|&engine| OfEndpoint { engine, ..Default::default() });
        let contexts = endpoint_of.iter().map(|&endpoint| OfContext {
            endpoint,
            receives: 0,
            receives_seen: 0,
            messages_seen: 0,
            receives_from: u64::MAX,
            messages_before: 0,
        });
        let (endpoints, contexts) = (endpoints.collect(), contexts.collect());
        Self { mode, available, held, endpoints, contexts, abort: None }
    }

    /// Adds an element of a context.
    pub(crate) fn add(&mut self, context: usize, element: Element) {
        if self.abort.is_some() {
            return;
        }
        let endpoint = self.contexts[context].endpoint;
        let is_receive = matches!(element, Element::Receive(_));
        let of = &mut self.endpoints[endpoint];
        *if is_receive { &mut of.all_receives } else { &mut of.all_messages } += 1;
        if !of.has_left && self.held[of.engine] >= self.available {
            if self.mode == UsesEntries::Hardware && of.messages == 0 {
                return self.end(context, is_receive);
            }
            self.move_messages(endpoint);
        }
        let (of, own) = (&mut self.endpoints[endpoint], &mut self.contexts[context]);
        match element {
            Element::Receive(number) => own.receives_seen = number + 1,
            Element::Message(number) => own.messages_seen = number + 1,
        }
        match (of.has_left, is_receive) {
            (true, true) => of.receives_on_host += 1,
            (true, false) => of.messages_on_host += 1,
            (false, _) => {
                self.held[of.engine] += 1;
                *if is_receive { &mut of.receives } else { &mut of.messages } += 1;
                own.receives += u64::from(is_receive);
            }
        }
    }

    /// Removes an element of a context that was matched, cancelled or dropped.
    pub(crate) fn remove(&mut self, context: usize, element: Element) {
        if self.abort.is_some() {
            return;
        }
        let OfContext { endpoint, receives_from, messages_before, .. } = self.contexts[context];
        let of = &mut self.endpoints[endpoint];
        let held = match element {
            Element::Receive(number) if number < receives_from => {
                self.contexts[context].receives -= 1;
                &mut of.receives
            }
            Element::Message(number) if number >= messages_before => &mut of.messages,
            _ => return,
        };
        *held -= 1;
        self.held[of.engine] -= 1;
    }

    /// Moves all unexpected messages of an endpoint to the host. In mode hybrid, the endpoint leaves
    /// the hardware.
    fn move_messages(&mut self, endpoint: usize) {
        let of = &mut self.endpoints[endpoint];
        self.held[of.engine] -= of.messages;
        of.moved += std::mem::take(&mut of.messages);
        of.has_left = self.mode == UsesEntries::Hybrid;
        of.moves += 1;
        let has_left = of.has_left;
        for own in self.contexts.iter_mut().filter(|own| own.endpoint == endpoint) {
            own.messages_before = if has_left { u64::MAX } else { own.messages_seen };
            if has_left {
                own.receives_from = own.receives_seen;
            }
        }
    }

    fn end(&mut self, context: usize, is_receive: bool) {
        let OfContext { endpoint: victim, receives, .. } = self.contexts[context];
        let engine = self.endpoints[victim].engine;
        let held = self.endpoints.iter().enumerate().filter(|(_, of)| of.engine == engine);
        let held = held.map(|(endpoint, of)| (endpoint, of.receives + of.messages)).collect();
        self.abort = Some(Abort { victim, is_receive, receives, held });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds elements `numbers` of a context.
    fn add(
        entries: &mut ListEntries,
        context: usize,
        of: fn(u64) -> Element,
        numbers: std::ops::Range<u64>,
    ) {
        numbers.for_each(|number| entries.add(context, of(number)));
    }

    /// An endpoint with two contexts, and another endpoint on the same engine.
    fn two(mode: UsesEntries, available: u64) -> ListEntries {
        ListEntries::new(mode, available, &[0, 0], &[0, 0, 1])
    }

    #[test]
    fn an_endpoint_without_unexpected_messages_aborts() {
        let mut alone = ListEntries::new(UsesEntries::Hardware, ENTRIES, &[0], &[0, 0]);
        add(&mut alone, 1, Element::Receive, 0..8);
        add(&mut alone, 0, Element::Receive, 0..16_373);
        assert_eq!(alone.abort, None);
        alone.add(0, Element::Receive(16_373));
        let held = vec![(0, 16_381)];
        let abort = Abort { victim: 0, is_receive: true, receives: 16_373, held };
        assert_eq!(alone.abort, Some(abort));
    }

    #[test]
    fn the_victim_may_hold_nothing() {
        let mut both = two(UsesEntries::Hardware, 16);
        add(&mut both, 0, Element::Message, 0..10);
        both.add(2, Element::Receive(0));
        let Abort { victim, receives, ref held, .. } = *both.abort.as_ref().unwrap();
        assert_eq!((victim, receives, held.as_slice()), (1, 0, &[(0, 10), (1, 0)][..]));
    }

    #[test]
    fn unexpected_messages_make_room_in_hardware() {
        let mut both = two(UsesEntries::Hardware, 16);
        add(&mut both, 0, Element::Message, 0..6);
        add(&mut both, 1, Element::Message, 0..4);
        both.add(0, Element::Receive(0));
        let OfEndpoint { moves, moved, messages_on_host, .. } = both.endpoints[0];
        assert_eq!((both.held[0], moves, moved, messages_on_host), (6 + 1, 1, 10, 0));
        // Messages on the host have no entries to give back, and later ones have.
        both.remove(0, Element::Message(5));
        both.add(1, Element::Message(4));
        both.remove(1, Element::Message(4));
        both.remove(0, Element::Receive(0));
        assert_eq!((both.held[0], both.abort), (6, None));
    }

    #[test]
    fn hybrid_keeps_receives_and_leaves_for_good() {
        let mut alone = ListEntries::new(UsesEntries::Hybrid, ENTRIES, &[0], &[0, 0]);
        add(&mut alone, 1, Element::Receive, 0..8);
        add(&mut alone, 0, Element::Receive, 0..20_001);
        assert_eq!(alone.endpoints[0].receives_on_host, 20_001 - 16_367);
        (0..20_001).for_each(|number| alone.remove(0, Element::Receive(number)));
        assert_eq!(alone.held[0], 9 + 8);
        alone.add(0, Element::Message(0));
        assert_eq!((alone.held[0], alone.endpoints[0].messages_on_host), (9 + 8, 1));
        alone.remove(0, Element::Message(0));
        assert_eq!(alone.held[0], 9 + 8);
    }
}
