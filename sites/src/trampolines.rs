// SPDX-License-Identifier: BSD-2-Clause
//! The exported functions of MPI. None of them touches an argument, so they serve every MPI and
//! every language.
//!
//! Only registers are used that a call may change and that pass no argument: rax, r10 and r11, or
//! x9 to x17. No function of MPI takes a floating-point number by value, so the vector registers
//! need not be kept.
#![allow(unsafe_code, reason = "naked functions are assembly")]
#![allow(non_snake_case, missing_docs, reason = "the names are those of MPI")]

use std::arch::naked_asm;

use crate::callers::changed;
use crate::next::{LIBRARIES, MODE, NEXT, resolve};

/// Notes the call and goes on to the next definition of the name whose number is in eax.
#[unsafe(naked)]
#[cfg(target_arch = "x86_64")]
unsafe extern "C" fn enter() {
    naked_asm!(
        ".cfi_startproc",
        "mov r10d, eax",
        "shl r10, 48",
        "or r10, qword ptr [rsp]",
        "mov r11, qword ptr [rip + tcam_site_word@GOTTPOFF]",
        "cmp r10, qword ptr fs:[r11]",
        "jne 3f",
        "2:",
        "lea r11, [rip + {next}]",
        "mov r11, qword ptr [r11 + 8*rax]",
        "test r11, r11",
        "jz 5f",
        "jmp r11",
        // Another place. Mode 1: the return address is the place, unless a library of MPI has it.
        "3:",
        "cmp dword ptr [rip + {mode}], 1",
        "jne 4f",
        ".set library, 0",
        ".rept {libraries}",
        "mov r11, qword ptr [rsp]",
        "sub r11, qword ptr [rip + {ranges} + library]",
        "cmp r11, qword ptr [rip + {ranges} + library + 8]",
        "jb 2b",
        ".set library, library + 16",
        ".endr",
        "mov r11, qword ptr [rip + tcam_site_word@GOTTPOFF]",
        "mov qword ptr fs:[r11], r10",
        "jmp 2b",
        // The first call, several callers, or a tool: `changed` notes the place.
        "4:",
        "lea r11, [rip + {changed}]",
        "jmp 6f",
        // The first call of this name.
        "5:",
        "lea r11, [rip + {resolve}]",
        "6:",
        "push rax", ".cfi_adjust_cfa_offset 8",
        "push rdi", ".cfi_adjust_cfa_offset 8",
        "push rsi", ".cfi_adjust_cfa_offset 8",
        "push rdx", ".cfi_adjust_cfa_offset 8",
        "push rcx", ".cfi_adjust_cfa_offset 8",
        "push r8", ".cfi_adjust_cfa_offset 8",
        "push r9", ".cfi_adjust_cfa_offset 8",
        "mov edi, eax",
        "mov rsi, qword ptr [rsp + 56]",
        "call r11",
        "pop r9", ".cfi_adjust_cfa_offset -8",
        "pop r8", ".cfi_adjust_cfa_offset -8",
        "pop rcx", ".cfi_adjust_cfa_offset -8",
        "pop rdx", ".cfi_adjust_cfa_offset -8",
        "pop rsi", ".cfi_adjust_cfa_offset -8",
        "pop rdi", ".cfi_adjust_cfa_offset -8",
        "pop rax", ".cfi_adjust_cfa_offset -8",
        "jmp 2b",
        ".cfi_endproc",
        next = sym NEXT,
        mode = sym MODE,
        ranges = sym LIBRARIES,
        libraries = const LIBRARIES.len(),
        changed = sym changed,
        resolve = sym resolve,
    )
}

/// Notes the call and goes on to the next definition of the name whose number is in w16.
#[unsafe(naked)]
#[cfg(target_arch = "aarch64")]
unsafe extern "C" fn enter() {
    naked_asm!(
        ".cfi_startproc",
        "orr x9, x30, x16, lsl #48",
        "adrp x10, :gottprel:tcam_site_word",
        "ldr x10, [x10, :gottprel_lo12:tcam_site_word]",
        "mrs x11, tpidr_el0",
        "add x10, x10, x11",
        "ldr x11, [x10]",
        "cmp x11, x9",
        "b.ne 3f",
        "2:",
        "adrp x11, {next}",
        "add x11, x11, :lo12:{next}",
        "ldr x17, [x11, x16, lsl #3]",
        "cbz x17, 5f",
        "br x17",
        "3:",
        "adrp x11, {mode}",
        "ldr w11, [x11, :lo12:{mode}]",
        "cmp w11, #1",
        "b.ne 4f",
        "adrp x11, {ranges}",
        "add x11, x11, :lo12:{ranges}",
        "mov w12, #{libraries}",
        "6:",
        "ldp x13, x14, [x11], #16",
        "sub x13, x30, x13",
        "cmp x13, x14",
        "b.lo 2b",
        "subs w12, w12, #1",
        "b.ne 6b",
        "str x9, [x10]",
        "b 2b",
        "4:",
        "adrp x17, {changed}",
        "add x17, x17, :lo12:{changed}",
        "b 7f",
        "5:",
        "adrp x17, {resolve}",
        "add x17, x17, :lo12:{resolve}",
        "7:",
        "stp x30, x16, [sp, #-96]!",
        ".cfi_def_cfa_offset 96",
        ".cfi_offset x30, -96",
        "stp x0, x1, [sp, #16]",
        "stp x2, x3, [sp, #32]",
        "stp x4, x5, [sp, #48]",
        "stp x6, x7, [sp, #64]",
        "str x8, [sp, #80]",
        "mov w0, w16",
        "mov x1, x30",
        "blr x17",
        "ldr x8, [sp, #80]",
        "ldp x0, x1, [sp, #16]",
        "ldp x2, x3, [sp, #32]",
        "ldp x4, x5, [sp, #48]",
        "ldp x6, x7, [sp, #64]",
        "ldp x30, x16, [sp], #96",
        ".cfi_def_cfa_offset 0",
        ".cfi_restore x30",
        "b 2b",
        ".cfi_endproc",
        next = sym NEXT,
        mode = sym MODE,
        ranges = sym LIBRARIES,
        libraries = const LIBRARIES.len(),
        changed = sym changed,
        resolve = sym resolve,
    )
}

/// [`enter`] for the library of functions with large counts. The trampolines here do not use an
/// exported name, because the linker's stub for it changes x16.
#[unsafe(naked)]
#[unsafe(no_mangle)]
unsafe extern "C" fn tcam_site_enter() {
    #[cfg(target_arch = "x86_64")]
    naked_asm!("jmp {enter}", enter = sym enter);
    #[cfg(target_arch = "aarch64")]
    naked_asm!("b {enter}", enter = sym enter);
}

/// The trampoline of a name.
macro_rules! trampoline {
    ($name:ident, $slot:literal) => {
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name() {
            #[cfg(target_arch = "x86_64")]
            naked_asm!("mov eax, {slot}", "jmp {enter}", slot = const $slot, enter = sym enter);
            #[cfg(target_arch = "aarch64")]
            naked_asm!("mov w16, #{slot}", "b {enter}", slot = const $slot, enter = sym enter);
        }
    };
}

include!(concat!(env!("OUT_DIR"), "/trampolines.rs"));
