// SPDX-License-Identifier: BSD-2-Clause
//! A reference model of a matching unit (`unit.rs`): two naive lists.

use super::Unit;
use matching::{Element, Key, oracle::Oracle};

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
    Post(Element),
    Arrive(Element),
    Cancel(u32),
    Probe(Key),
}

/// The result of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Answer {
    Token(Option<u32>),
    Cancelled(bool),
}

impl Op {
    pub(super) fn run(self, unit: &impl Unit) -> Answer {
        match self {
            Self::Post(receive) => Answer::Token(unit.post(receive)),
            Self::Arrive(message) => Answer::Token(unit.arrive(message)),
            Self::Cancel(token) => Answer::Cancelled(unit.cancel(token)),
            Self::Probe(key) => Answer::Token(unit.probe(&key)),
        }
    }
}

/// The two naive lists.
#[derive(Clone, Default)]
pub(super) struct Model {
    receives: Oracle,
    messages: Oracle,
}

impl Model {
    pub(super) fn run(&mut self, op: Op) -> Answer {
        let Self { receives, messages } = self;
        match op {
            Op::Post(receive) => Answer::Token(meet(messages, receives, receive)),
            Op::Arrive(message) => Answer::Token(meet(receives, messages, message)),
            Op::Cancel(token) => Answer::Cancelled(receives.remove(token)),
            Op::Probe(key) => Answer::Token(messages.find(&key).map(|(_, token)| token)),
        }
    }

    /// Returns the tokens of both lists, earliest first.
    pub(super) fn tokens(&self) -> [Vec<u32>; 2] {
        [&self.receives, &self.messages]
            .map(|list| list.elements().iter().map(|element| element.token).collect())
    }
}

fn meet(theirs: &mut Oracle, mine: &mut Oracle, own: Element) -> Option<u32> {
    let Element { bits, ignore, source, .. } = own;
    let found = theirs.find(&Key { bits, ignore, source }).map(|(_, token)| token);
    match found {
        Some(token) => assert!(theirs.remove(token)),
        None => mine.insert(own),
    }
    found
}

/// Checks that a unit without running operations has the elements of the model.
pub(super) fn check_rest(unit: &mut impl Unit, model: &Model) {
    assert_eq!([unit.receives(), unit.messages()], model.tokens(), "receives and messages");
}
