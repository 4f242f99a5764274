// SPDX-License-Identifier: BSD-2-Clause
//! Generates Rust bindings of the libfabric headers that are installed on this machine (1.17 or
//! newer).

use std::{env, path::PathBuf};

fn main() {
    println!("cargo:rerun-if-changed=libfabric.h");
    let include = pkg_config::Config::new()
        .cargo_metadata(false)
        .probe("libfabric")
        .map(|library| library.include_paths)
        .unwrap_or_default();
    let bindings = bindgen::Builder::default()
        .header("libfabric.h")
        .clang_args(include.iter().map(|path| format!("-I{}", path.display())))
        .allowlist_recursively(true)
        .allowlist_type("fi_.*|fid.*")
        .allowlist_var("FI_.*")
        .blocklist_function(".*")
        .prepend_enum_name(false)
        .derive_default(true)
        .layout_tests(false)
        .merge_extern_blocks(true)
        .generate()
        .expect("libfabric headers: install libfabric-dev (1.17 or newer) and libclang-dev");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    bindings.write_to_file(out.join("libfabric.rs")).expect("OUT_DIR can be written");
}
