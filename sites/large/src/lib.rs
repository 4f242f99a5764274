// SPDX-License-Identifier: BSD-2-Clause
//! `libtcam-sites-large.so`: the trampolines of functions with large counts, such as `MPI_Irecv_c`,
//! and of extensions, such as `MPIX_Stream_irecv`, which lead into `libtcam-sites.so`. A program may
//! check whether its MPI has such a function, as mpi4py does. So `tcam run --sites` preloads this
//! library only for MPICH and Intel MPI, which have most of them.
//!
//! It uses nothing of the standard library. If it is built with `panic = "abort"`, as for the wheel,
//! it does without it, and is a seventh as large.
#![cfg_attr(panic = "abort", no_std)]
#![allow(unsafe_code, reason = "naked functions are assembly")]
#![allow(non_snake_case, reason = "the names are those of MPI")]

use core::arch::naked_asm;

#[cfg(panic = "abort")]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}

/// The trampoline of a name. The reference is weak, because the dynamic linker would otherwise end a
/// process that has only this library.
macro_rules! trampoline {
    ($name:ident, $slot:literal) => {
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name() {
            #[cfg(target_arch = "x86_64")]
            naked_asm!(
                ".weak tcam_site_enter",
                "mov eax, {slot}",
                "jmp qword ptr [rip + tcam_site_enter@GOTPCREL]",
                slot = const $slot,
            );
            #[cfg(target_arch = "aarch64")]
            naked_asm!(
                ".weak tcam_site_enter",
                "mov w16, #{slot}",
                "adrp x17, :got:tcam_site_enter",
                "ldr x17, [x17, :got_lo12:tcam_site_enter]",
                "br x17",
                slot = const $slot,
            );
        }
    };
}

include!(concat!(env!("OUT_DIR"), "/trampolines.rs"));
