// SPDX-License-Identifier: BSD-2-Clause
//! How queues are stored.

/// How the queues of an engine are stored (`FI_TCAM_QUEUE`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Queue {
    /// Arrays searched by the compare kernel of the table.
    #[default]
    Packed,
    /// Linked lists, as in the papers.
    Linked,
}

impl Queue {
    /// Every storage.
    pub const ALL: [Self; 2] = [Self::Packed, Self::Linked];

    /// Name, as in `FI_TCAM_QUEUE`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Packed => "packed",
            Self::Linked => "linked",
        }
    }
}

impl std::fmt::Display for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// Not the name of a [`Queue`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no queue: there are {all}", all = Queue::ALL.map(Queue::name).join(", "))]
pub struct UnknownQueue(String);

impl std::str::FromStr for Queue {
    type Err = UnknownQueue;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|queue| queue.name() == name);
        found.ok_or_else(|| UnknownQueue(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed() {
        for queue in Queue::ALL {
            assert_eq!(queue.name().parse(), Ok(queue));
        }
        assert_eq!(
            "array".parse::<Queue>().unwrap_err().to_string(),
            "`array` is no queue: there are packed, linked"
        );
    }
}
