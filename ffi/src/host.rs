// SPDX-License-Identifier: BSD-2-Clause
//! The *host*: the libfabric that loaded this provider.
//!
//! The provider does not link to it, for three reasons. First, one binary of the provider must work
//! with libfabric 1.17 to 2.x. Second, linking without symbol versions would bind old compatibility
//! entry points. Third, a libfabric in a Python wheel is not in the global scope of symbols.
//! Instead, the return address of `fi_prov_ini` identifies the library, and its symbols are looked
//! up there.

use std::{
    ffi::{CStr, CString, c_char, c_int, c_void},
    mem, ptr,
    sync::OnceLock,
};

use crate::{
    errno::{Errno, Result},
    sys,
};

type DupInfo = unsafe extern "C" fn(*const sys::fi_info) -> *mut sys::fi_info;
type FreeInfo = unsafe extern "C" fn(*mut sys::fi_info);
type ParamDefine = unsafe extern "C" fn(
    *const sys::fi_provider,
    *const c_char,
    sys::fi_param_type,
    *const c_char,
    ...
) -> c_int;
type ParamGet = unsafe extern "C" fn(*mut sys::fi_provider, *const c_char, *mut c_void) -> c_int;
type LogEnabled =
    unsafe extern "C" fn(*const sys::fi_provider, sys::fi_log_level, sys::fi_log_subsys) -> c_int;
type Log = unsafe extern "C" fn(
    *const sys::fi_provider,
    sys::fi_log_level,
    sys::fi_log_subsys,
    *const c_char,
    c_int,
    *const c_char,
    ...
);

/// Functions of the host.
#[derive(Debug)]
pub struct Host {
    version: u32,
    dup_info: DupInfo,
    free_info: FreeInfo,
    param_define: ParamDefine,
    param_get: ParamGet,
    log_enabled: LogEnabled,
    log: Log,
}

static HOST: OnceLock<Host> = OnceLock::new();

/// Returns a handle of the library or program that contains an address.
fn library_of(address: *const c_void) -> *mut c_void {
    let mut info = mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: dladdr only compares the address. `info` is valid for writes, and dli_fname is a C
    // string if the result is not zero.
    unsafe {
        if libc::dladdr(address, info.as_mut_ptr()) != 0 {
            let name = info.assume_init().dli_fname;
            let handle = libc::dlopen(name, libc::RTLD_LAZY | libc::RTLD_NOLOAD);
            if !handle.is_null() {
                return handle;
            }
        }
        // Otherwise the program links libfabric statically.
        libc::dlopen(ptr::null(), libc::RTLD_LAZY)
    }
}

impl Host {
    /// Finds the host by an address in its code. Later calls return the same host, whatever the
    /// address.
    ///
    /// # Errors
    /// `ENOSYS` if the host lacks a function.
    pub(crate) fn find(address: *const c_void) -> Result<&'static Self> {
        if let Some(host) = HOST.get() {
            return Ok(host);
        }
        let library = library_of(address);
        let symbol = |name: &CStr| {
            // SAFETY: `library` is a handle of dlopen or null, the global scope.
            let symbol = unsafe { libc::dlsym(library, name.as_ptr()) };
            if symbol.is_null() { Err(Errno::ENOSYS) } else { Ok(symbol) }
        };
        // SAFETY: the types are those of the headers, unchanged from 1.17 to 2.x.
        let host = unsafe {
            let version = mem::transmute::<*mut c_void, unsafe extern "C" fn() -> u32>(symbol(
                c"fi_version",
            )?);
            Self {
                version: version(),
                dup_info: mem::transmute::<*mut c_void, DupInfo>(symbol(c"fi_dupinfo")?),
                free_info: mem::transmute::<*mut c_void, FreeInfo>(symbol(c"fi_freeinfo")?),
                param_define: mem::transmute::<*mut c_void, ParamDefine>(symbol(
                    c"fi_param_define",
                )?),
                param_get: mem::transmute::<*mut c_void, ParamGet>(symbol(c"fi_param_get")?),
                log_enabled: mem::transmute::<*mut c_void, LogEnabled>(symbol(c"fi_log_enabled")?),
                log: mem::transmute::<*mut c_void, Log>(symbol(c"fi_log")?),
            }
        };
        Ok(HOST.get_or_init(|| host))
    }

    /// Returns the host; `None` before `Host::find` has found it.
    #[must_use]
    pub fn get() -> Option<&'static Self> {
        HOST.get()
    }

    /// Returns the version of the host, as `FI_VERSION(major, minor)`.
    #[must_use]
    pub fn version(&self) -> u32 {
        self.version
    }

    pub(crate) fn allocate_info(&self) -> Result<*mut sys::fi_info> {
        // SAFETY: fi_dupinfo(NULL) is fi_allocinfo().
        let info = unsafe { (self.dup_info)(ptr::null()) };
        if info.is_null() { Err(Errno::ENOMEM) } else { Ok(info) }
    }

    /// Frees a list of structures.
    ///
    /// # Safety
    /// `first` is null, or begins a list of structures of [`Host::allocate_info`] that only the
    /// caller has.
    pub(crate) unsafe fn free_infos(&self, first: *mut sys::fi_info) {
        if !first.is_null() {
            // SAFETY: the caller vouches for the list.
            unsafe { (self.free_info)(first) };
        }
    }

    /// Describes a parameter to libfabric, for `fi_info -e`.
    pub(crate) fn define_param(&self, provider: *const sys::fi_provider, name: &str, help: &str) {
        let (Ok(name), Ok(help)) = (CString::new(name), CString::new(help)) else { return };
        // SAFETY: C strings; the help text is passed as an argument of "%s".
        unsafe {
            (self.param_define)(
                provider,
                name.as_ptr(),
                sys::FI_PARAM_STRING,
                c"%s".as_ptr(),
                help.as_ptr(),
            );
        }
    }

    /// Returns the value of a parameter, if it is set.
    pub(crate) fn param(&self, provider: *mut sys::fi_provider, name: &str) -> Option<String> {
        let name = CString::new(name).ok()?;
        let mut value: *mut c_char = ptr::null_mut();
        // SAFETY: for a parameter of type string the result is a pointer to the value, which
        // libfabric keeps.
        unsafe {
            let status =
                (self.param_get)(provider, name.as_ptr(), ptr::from_mut(&mut value).cast());
            (status == 0 && !value.is_null())
                .then(|| CStr::from_ptr(value).to_string_lossy().into_owned())
        }
    }

    pub(crate) fn log_enabled(
        &self,
        provider: *const sys::fi_provider,
        level: sys::fi_log_level,
        subsystem: sys::fi_log_subsys,
    ) -> bool {
        // SAFETY: the provider structure is static.
        unsafe { (self.log_enabled)(provider, level, subsystem) != 0 }
    }

    pub(crate) fn log(
        &self,
        provider: *const sys::fi_provider,
        level: sys::fi_log_level,
        subsystem: sys::fi_log_subsys,
        function: &str,
        line: u32,
        text: &str,
    ) {
        let (Ok(function), Ok(text)) = (CString::new(function), CString::new(text)) else { return };
        // SAFETY: C strings; the text is passed as an argument of "%s".
        unsafe {
            (self.log)(
                provider,
                level,
                subsystem,
                function.as_ptr(),
                line.cast_signed(),
                c"%s\n".as_ptr(),
                text.as_ptr(),
            );
        }
    }
}

#[cfg(test)]
impl Host {
    /// Creates a host that can only allocate and free structures.
    pub(crate) fn with_infos(dup_info: DupInfo, free_info: FreeInfo) -> Self {
        unsafe extern "C" fn unused() {
            std::process::abort();
        }
        let unused = unused as *const ();
        // SAFETY: a test never calls the other functions; their types are those of pointers.
        unsafe {
            Self {
                version: 0,
                dup_info,
                free_info,
                param_define: mem::transmute::<*const (), ParamDefine>(unused),
                param_get: mem::transmute::<*const (), ParamGet>(unused),
                log_enabled: mem::transmute::<*const (), LogEnabled>(unused),
                log: mem::transmute::<*const (), Log>(unused),
            }
        }
    }
}
