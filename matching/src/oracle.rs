// SPDX-License-Identifier: BSD-2-Clause
//! A naive list of elements, with which tests compare every table, engine and overflow model. It is
//! slow, and correct by inspection.

use crate::{Element, Key};

/// Elements in age order, searched from the oldest.
#[derive(Clone, Debug, Default)]
pub struct Oracle {
    elements: Vec<Element>,
}

impl Oracle {
    /// Adds the youngest element.
    pub fn insert(&mut self, element: Element) {
        self.elements.push(element);
    }

    /// Returns the age rank (from 0) and the token of the oldest element that matches, or `None`.
    #[must_use]
    pub fn find(&self, key: &Key) -> Option<(usize, u32)> {
        let rank = self.elements.iter().position(|element| element.matches(key))?;
        Some((rank, self.elements[rank].token))
    }

    /// Removes the element with this token. Returns false if there is none.
    pub fn remove(&mut self, token: u32) -> bool {
        let rank = self.elements.iter().position(|element| element.token == token);
        rank.map(|rank| self.elements.remove(rank)).is_some()
    }

    /// All elements, oldest first.
    #[must_use]
    pub fn elements(&self) -> &[Element] {
        &self.elements
    }
}
