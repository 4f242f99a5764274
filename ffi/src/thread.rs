// SPDX-License-Identifier: BSD-2-Clause
//! Identifies the calling thread without a system call and without a call to `__tls_get_addr`.

/// Returns a number that no other running thread of this process has; never 0.
#[cfg(all(target_os = "linux", target_arch = "x86_64", not(miri)))]
#[inline(always)]
#[must_use]
pub fn current() -> usize {
    let thread;
    // SAFETY: in the ABI of x86-64, `fs` points to the thread's control block, which begins with
    // its own address.
    unsafe {
        std::arch::asm!(
            "mov {}, fs:0",
            out(reg) thread,
            options(pure, readonly, nostack, preserves_flags)
        );
    }
    thread
}

/// Returns a number that no other running thread of this process has; never 0.
#[cfg(not(all(target_os = "linux", target_arch = "x86_64", not(miri))))]
#[inline]
#[must_use]
pub fn current() -> usize {
    thread_local!(static HERE: u8 = const { 0 });
    HERE.with(|here| std::ptr::from_ref(here).addr())
}

/// Returns an index below `places` for this thread. Threads with adjacent stacks mostly get
/// different indices. `places` is not 0.
#[inline]
#[must_use]
pub fn current_of(places: usize) -> usize {
    // The numbers are addresses at the ends of stacks, so they have regular distances. The
    // multiplication by the golden ratio spreads them over the places.
    let spread = (current() as u64 >> 6).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (((spread >> 32) * places as u64) >> 32) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_have_numbers_of_their_own() {
        let here = current();
        assert_eq!(here, current());
        let there = std::thread::scope(|scope| scope.spawn(current).join().unwrap());
        assert!(here != there && here != 0 && there != 0);
    }

    #[test]
    fn threads_have_places() {
        assert_eq!(current_of(4), current_of(4));
        let gate = std::sync::Barrier::new(8);
        let place = || {
            gate.wait();
            current_of(4)
        };
        let mut places = std::thread::scope(|scope| {
            let threads = [(); 8].map(|()| scope.spawn(place));
            threads.map(|thread| thread.join().unwrap())
        });
        places.sort_unstable();
        assert!(places[0] < places[7] && places[7] < 4, "{places:?}");
    }
}
