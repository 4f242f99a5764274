// SPDX-License-Identifier: BSD-2-Clause
//! Host engines: what matches the elements that do not fit the table.

mod list;

pub use list::List;

use crate::{Element, Key};

/// Names an element of an [`Engine`] from its insertion to its removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostHandle(pub(crate) u32);

/// An element of an [`Engine`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostHit {
    /// The element.
    pub handle: HostHandle,
    /// Its token.
    pub token: u32,
    /// Its age as given to [`Engine::insert`].
    pub age: u64,
}

/// A software matching engine.
///
/// Elements come in age order, oldest first, each with an age larger than all
/// before; a search must return the oldest that matches.
pub trait Engine {
    /// Adds an element, the youngest.
    fn insert(&mut self, element: Element, age: u64) -> HostHandle;

    /// The oldest element that matches.
    fn first_match(&self, key: &Key) -> Option<HostHit>;

    /// Takes an element out. The handle must be live.
    fn remove(&mut self, handle: HostHandle) -> Element;

    /// The oldest element of all: a match in the table that is older needs no
    /// search here, and this is the one to promote.
    fn oldest(&self) -> Option<HostHit>;

    /// Elements a list in age order would have compared to reach this one, itself
    /// counted.
    fn depth(&self, handle: HostHandle) -> usize;

    /// Elements held.
    fn len(&self) -> usize;

    /// Whether it holds nothing.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Tokens and ages, oldest first.
    fn iter(&self) -> impl Iterator<Item = (u32, u64)> + '_;
}

/// The engine to use (`FI_TCAM_HOST_ENGINE`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostEngine {
    /// One linked list in age order, as MPICH's.
    #[default]
    List,
}

impl std::fmt::Display for HostEngine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::List => "list",
        })
    }
}

/// Not the name of a [`HostEngine`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no host engine: there is list")]
pub struct UnknownEngine(String);

impl std::str::FromStr for HostEngine {
    type Err = UnknownEngine;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            "list" => Ok(Self::List),
            _ => Err(UnknownEngine(name.to_owned())),
        }
    }
}
