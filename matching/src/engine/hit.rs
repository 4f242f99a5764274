// SPDX-License-Identifier: BSD-2-Clause
//! The handle and the search result that engines and their storages return.

/// Identifies an element of an [`Engine`](super::Engine) from its insertion to its removal. A
/// search may return another handle for the same element, which is valid until the next insertion
/// or removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostHandle(pub(crate) u64);

/// An element of an [`Engine`](super::Engine).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostHit {
    /// Handle of the element.
    pub handle: HostHandle,
    /// Token of the element.
    pub token: u32,
    /// Age of the element, as given to [`Engine::insert`](super::Engine::insert).
    pub age: u64,
}
