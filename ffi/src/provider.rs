// SPDX-License-Identifier: BSD-2-Clause
//! `fi_provider(7)`: the trait of a provider, and the functions with which libfabric loads, queries
//! and unloads it.

use std::{
    cell::UnsafeCell,
    ffi::{c_char, c_int, c_void},
    sync::{Arc, Once},
};

use crate::{
    errno::{Errno, Result},
    guard,
    host::Host,
    info::{FabricAttr, Info, RawInfos},
    log,
    ops::{
        answer,
        fabric::{self, Fabric},
        text,
    },
    sys,
};

/// The arguments of `fi_getinfo`.
#[derive(Debug)]
pub struct Query<'a> {
    /// Version of the API that the application uses.
    pub version: u32,
    /// Host name or address.
    pub node: Option<&'a str>,
    /// Service name or port.
    pub service: Option<&'a str>,
    /// `FI_SOURCE`, `FI_NUMERICHOST`, ...
    pub flags: u64,
    /// Hints of the application; `None` if it passes none, and so asks for everything.
    pub hints: Option<Info>,
}

/// A provider, for [`export_provider!`](crate::export_provider).
pub trait Provider: Send + Sync + 'static {
    /// Fabrics of the provider.
    type Fabric: Fabric;
    /// Name, as in `FI_PROVIDER`.
    const NAME: &'static std::ffi::CStr;
    /// Version, `FI_VERSION(major, minor)`.
    const VERSION: u32;

    /// Returns the name and the help of every parameter.
    fn params() -> impl Iterator<Item = (&'static str, String)>;

    /// `fi_getinfo`.
    ///
    /// # Errors
    /// `ENODATA` if the provider cannot satisfy the hints.
    fn getinfo(query: Query<'_>) -> Result<Vec<Info>>;

    /// `fi_fabric`.
    ///
    /// # Errors
    /// The provider cannot meet the attributes.
    fn fabric(attr: &FabricAttr) -> Result<Arc<Self::Fabric>>;

    /// Ends the work of the provider. It is called before libfabric unloads the library and when
    /// the process exits, so possibly twice.
    fn cleanup();
}

/// The only `struct fi_provider`. libfabric keeps a pointer to it, and writes to the field
/// `context`.
struct ProviderCell(UnsafeCell<sys::fi_provider>);

// SAFETY: `start` writes it once, before libfabric has the pointer. After that only libfabric
// writes to it, and only to `context`.
unsafe impl Sync for ProviderCell {}

static PROVIDER: ProviderCell = ProviderCell(UnsafeCell::new(
    // SAFETY: integers, null pointers and empty options may be all zero.
    unsafe { std::mem::zeroed() },
));

static STARTED: Once = Once::new();

/// Implements `fi_prov_ini`. `caller` is an address in the libfabric that loads the provider.
/// Returns null if this libfabric lacks a function that the provider needs.
#[must_use]
pub extern "C" fn start<P: Provider>(caller: *const c_void) -> *mut sys::fi_provider {
    guard::call(|| {
        let host = Host::find(caller)?;
        let provider = PROVIDER.0.get();
        STARTED.call_once(|| {
            // SAFETY: the only write, before libfabric gets the pointer.
            unsafe {
                (*provider).version = P::VERSION;
                (*provider).fi_version = host.version();
                (*provider).name = P::NAME.as_ptr();
                (*provider).getinfo = Some(getinfo::<P>);
                (*provider).fabric = Some(open_fabric::<P>);
                (*provider).cleanup = Some(exit::<P>);
            }
            log::install(host, provider);
        });
        for (name, help) in P::params() {
            host.define_param(provider, name, &help);
        }
        Ok(provider)
    })
}

/// Returns the value of a parameter, if it is set. `name` is in lower case, without `FI_TCAM_`.
#[must_use]
pub fn param(name: &str) -> Option<String> {
    Host::get()?.param(PROVIDER.0.get(), name)
}

unsafe extern "C" fn getinfo<P: Provider>(
    version: u32,
    node: *const c_char,
    service: *const c_char,
    query_flags: u64,
    hints: *const sys::fi_info,
    to: *mut *mut sys::fi_info,
) -> c_int {
    guard::call(|| {
        // SAFETY: libfabric passes C strings or nulls, and complete hints or null.
        let query = unsafe {
            Query {
                version,
                node: text(node)?,
                service: text(service)?,
                flags: query_flags,
                hints: hints.as_ref().map(|hints| Info::read(hints)),
            }
        };
        let host = Host::get().ok_or(Errno::EOTHER)?;
        let mut list = RawInfos::new(host);
        P::getinfo(query)?.into_iter().rev().try_for_each(|info| list.push_front(info))?;
        if list.is_empty() {
            return Err(Errno::ENODATA);
        }
        // SAFETY: `to` is null or valid for a write.
        unsafe { answer(to, || Ok(list.into_raw())) }
    })
}

unsafe extern "C" fn open_fabric<P: Provider>(
    attr: *mut sys::fi_fabric_attr,
    to: *mut *mut sys::fid_fabric,
    context: *mut c_void,
) -> c_int {
    guard::call(|| {
        // SAFETY: libfabric passes complete attributes.
        let attr = unsafe { FabricAttr::read(attr.as_ref().ok_or(Errno::EINVAL)?) };
        // SAFETY: `to` is null or valid for a write.
        unsafe { answer(to, || Ok(fabric::create(P::fabric(&attr)?, context))) }
    })
}

/// Calls [`Provider::cleanup`] when the library is unloaded or the process exits.
pub extern "C" fn exit<P: Provider>() {
    guard::call::<(), ()>(|| {
        P::cleanup();
        Ok(())
    });
}

/// Exports `fi_prov_ini` and the exit hook of a [`Provider`].
///
/// `fi_prov_ini` takes no argument, but the provider needs its return address (see
/// [`host`](crate::host)). Only assembly can read it.
#[macro_export]
macro_rules! export_provider {
    ($p:ty) => {
        /// Entry point that libfabric looks up (`fi_provider(7)`).
        ///
        /// # Safety
        /// Called by libfabric only.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn fi_prov_ini() -> *mut $crate::sys::fi_provider {
            #[cfg(target_arch = "x86_64")]
            core::arch::naked_asm!("mov rdi, [rsp]", "jmp {}", sym $crate::provider::start::<$p>);
            #[cfg(target_arch = "aarch64")]
            core::arch::naked_asm!("mov x0, x30", "b {}", sym $crate::provider::start::<$p>);
        }

        #[used]
        #[unsafe(link_section = ".fini_array")]
        static AT_EXIT: extern "C" fn() = $crate::provider::exit::<$p>;
    };
}
