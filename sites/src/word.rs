// SPDX-License-Identifier: BSD-2-Clause
//! The word of each thread. Rust cannot name it, because the trampolines do.
#![allow(unsafe_code, reason = "naked functions are assembly")]

use std::arch::{global_asm, naked_asm};

// The word of a thread. The library is preloaded, so it may use the static block of thread-locals.
global_asm!(
    ".pushsection .tbss,\"awT\",%nobits",
    ".globl tcam_site_word",
    ".hidden tcam_site_word",
    ".type tcam_site_word,%object",
    ".size tcam_site_word,8",
    ".balign 8",
    "tcam_site_word: .zero 8",
    ".popsection",
);

/// Returns the word of the calling thread; 0 if it has not called MPI.
#[unsafe(naked)]
#[cfg(target_arch = "x86_64")]
pub(crate) extern "C" fn word() -> u64 {
    naked_asm!(
        "mov rax, qword ptr [rip + tcam_site_word@GOTTPOFF]",
        "mov rax, qword ptr fs:[rax]",
        "ret",
    )
}

/// Returns the word of the calling thread; 0 if it has not called MPI.
#[unsafe(naked)]
#[cfg(target_arch = "aarch64")]
pub(crate) extern "C" fn word() -> u64 {
    naked_asm!(
        "adrp x0, :gottprel:tcam_site_word",
        "ldr x0, [x0, :gottprel_lo12:tcam_site_word]",
        "mrs x1, tpidr_el0",
        "ldr x0, [x0, x1]",
        "ret",
    )
}

/// Sets the word of the calling thread.
#[unsafe(naked)]
#[cfg(target_arch = "x86_64")]
pub(crate) extern "C" fn set_word(word: u64) {
    naked_asm!(
        "mov rax, qword ptr [rip + tcam_site_word@GOTTPOFF]",
        "mov qword ptr fs:[rax], rdi",
        "ret",
    )
}

/// Sets the word of the calling thread.
#[unsafe(naked)]
#[cfg(target_arch = "aarch64")]
pub(crate) extern "C" fn set_word(word: u64) {
    naked_asm!(
        "adrp x1, :gottprel:tcam_site_word",
        "ldr x1, [x1, :gottprel_lo12:tcam_site_word]",
        "mrs x2, tpidr_el0",
        "str x0, [x1, x2]",
        "ret",
    )
}
