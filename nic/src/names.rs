// SPDX-License-Identifier: BSD-2-Clause
//! Finds the oldest posted receive with a *name*: the identifier by which the caller cancels it.
//! Several receives may have the same name.
//!
//! ```text
//! post ---> log ---cancel---> ends, by name:    oldest and youngest receive of the name
//!                             nodes, by token:  name, and the next older and younger one
//! ```
//!
//! These structures are empty until the first cancel. From then on each post adds an entry to the
//! log, and the next cancel processes the log. If the log fills up first, all structures are
//! dropped, and the next cancel builds them again. So the average time of a cancel does not depend
//! on the number of posted receives, but is proportional to the number of posts since the last
//! cancel.
//!
//! Matches do not update these structures. The node of a receive that was matched stays until a
//! cancel of its name finds and removes it, or until another receive reuses its token.

use std::collections::HashMap;

/// Minimum capacity of the log, which also holds at least as many posts as there are tokens.
const LEAST_LOG: usize = if cfg!(test) { 8 } else { 256 };

/// The lists of receives by name; see the module.
pub(crate) struct Names {
    /// Indexed by token.
    nodes: Vec<Option<NamedReceive>>,
    ends: HashMap<u64, Ends>,
    /// Never exceeds its initial capacity.
    log: Vec<LoggedPost>,
}

/// A logged post.
#[derive(Clone, Copy)]
struct LoggedPost {
    token: u32,
    /// The lower half of the receive's number, which distinguishes it from earlier receives with
    /// its token.
    number: u32,
}

/// A receive in the list of its name.
#[derive(Clone, Copy)]
struct NamedReceive {
    name: u64,
    older: Option<Token>,
    younger: Option<Token>,
}

#[derive(Clone, Copy)]
struct Ends {
    oldest: Token,
    youngest: Token,
}

/// One more than the token, so that `Option<Token>` needs no extra space.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Token(std::num::NonZeroU32);

impl Token {
    fn new(token: u32) -> Self {
        Self(std::num::NonZeroU32::new(token + 1).expect("fewer than 2^32 receives"))
    }

    const fn get(self) -> u32 {
        self.0.get() - 1
    }
}

impl Names {
    /// Creates the lists for receives with tokens below `tokens`.
    pub(crate) fn new(tokens: usize) -> Self {
        Self {
            nodes: vec![None; tokens],
            ends: HashMap::with_capacity(tokens),
            log: Vec::with_capacity(tokens.max(LEAST_LOG)),
        }
    }

    /// Logs a post. Returns false if the log is full.
    #[must_use]
    pub(crate) fn log(&mut self, token: u32, number: u64) -> bool {
        let has_room = self.log.len() < self.log.capacity();
        if has_room {
            self.log.push(LoggedPost { token, number: number as u32 });
        }
        has_room
    }

    /// Processes the log. `name` must return the name of the receive with this token, or `None` if
    /// that receive is no longer posted or has another number.
    pub(crate) fn catch_up(&mut self, name: impl Fn(u32, u32) -> Option<u64>) {
        for at in 0..self.log.len() {
            let LoggedPost { token, number } = self.log[at];
            if let Some(name) = name(token, number) {
                self.add(token, name);
            }
        }
        self.log.clear();
    }

    /// Adds the youngest receive of a name. If an earlier receive had the same token, removes it.
    pub(crate) fn add(&mut self, token: u32, name: u64) {
        self.leave(token);
        let new = Token::new(token);
        let ends = self.ends.entry(name).or_insert(Ends { oldest: new, youngest: new });
        let older = std::mem::replace(&mut ends.youngest, new);
        let older = (older != new).then_some(older);
        if let Some(node) = older.and_then(|older| self.nodes[older.get() as usize].as_mut()) {
            node.younger = Some(new);
        }
        if token as usize >= self.nodes.len() {
            self.nodes.resize((token as usize + 1).next_power_of_two(), None);
        }
        self.nodes[token as usize] = Some(NamedReceive { name, older, younger: None });
    }

    /// Removes the oldest receive of a name that is still posted, and returns its token. `None` if
    /// there is none.
    pub(crate) fn take(&mut self, name: u64, is_posted: impl Fn(u32) -> bool) -> Option<u32> {
        loop {
            let oldest = self.ends.get(&name)?.oldest.get();
            self.leave(oldest);
            if is_posted(oldest) {
                return Some(oldest);
            }
        }
    }

    fn leave(&mut self, token: u32) {
        let node = self.nodes.get_mut(token as usize).and_then(Option::take);
        let Some(NamedReceive { name, older, younger }) = node else { return };
        if let Some(node) = older.and_then(|older| self.nodes[older.get() as usize].as_mut()) {
            node.younger = younger;
        }
        if let Some(node) = younger.and_then(|younger| self.nodes[younger.get() as usize].as_mut())
        {
            node.older = older;
        }
        let Some(ends) = self.ends.get_mut(&name) else { return };
        match (older, younger) {
            (None, None) => drop(self.ends.remove(&name)),
            (None, Some(younger)) => ends.oldest = younger,
            (Some(older), None) => ends.youngest = older,
            (Some(_), Some(_)) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_of_a_name_that_is_posted_is_taken() {
        let mut names = Names::new(2);
        for (token, name) in [(0, 7), (1, 8), (2, 7), (3, 7)] {
            names.add(token, name);
        }
        // A receive that is added again becomes the youngest.
        names.add(0, 7);
        assert_eq!(names.take(7, |token| token != 2), Some(3));
        assert_eq!(names.take(7, |_| true), Some(0));
        assert_eq!(names.take(7, |_| true), None);
        assert_eq!(names.take(8, |_| false), None);
        assert!(names.ends.is_empty());
    }

    #[test]
    fn a_log_that_is_full_takes_no_more() {
        let mut names = Names::new(0);
        let logged = (0..100).take_while(|&post| names.log(0, post)).count();
        assert!((LEAST_LOG..100).contains(&logged));
        names.catch_up(|_, number| (number + 1 == logged as u32).then_some(1));
        assert!(names.log(0, 100));
        assert_eq!(names.take(1, |_| true), Some(0));
    }
}
