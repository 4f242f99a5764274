// SPDX-License-Identifier: BSD-2-Clause
//! Checks the provider library, and that libfabric finds it.

use std::process::Command;

use nic::params::PREFIX;
use rustix::fs::{StatVfsMountFlags, statvfs};

use super::findings::{Findings, Subject};
use crate::file;
use crate::launch::Library;
use crate::launch::launcher::output_text;

/// Checks that FI_PROVIDER does not exclude tcam.
pub(super) fn filter(_: &Subject<'_>, findings: &mut Findings) {
    judge_filter(std::env::var("FI_PROVIDER").ok().as_deref(), findings);
}

fn judge_filter(value: Option<&str>, findings: &mut Findings) {
    let Some(value) = value else {
        return findings.good("FI_PROVIDER is not set; `tcam run` sets it to tcam");
    };
    let (excludes, list) = match value.strip_prefix('^') {
        Some(list) => (true, list),
        None => (false, value),
    };
    let named = list.split([',', ';']).any(|name| name.trim() == "tcam");
    if named != excludes {
        return findings.good(format!("FI_PROVIDER={value} admits tcam"));
    }
    findings.note(
        format!("FI_PROVIDER={value} keeps libfabric from offering tcam"),
        "`tcam run` replaces it; without it: unset FI_PROVIDER, or FI_PROVIDER=tcam",
    );
}

/// Checks that the library exists and can be loaded, and that FI_PROVIDER_PATH contains its
/// directory.
pub(super) fn library(subject: &Subject<'_>, findings: &mut Findings) {
    match &subject.library {
        Ok(library) => {
            loadable(library, findings);
            path(library, findings);
        }
        Err(error) => {
            findings.bad(format!("provider: {error}"), "without the library nothing else can work");
        }
    }
}

/// Checks that libfabric can load the library. The library must have the entry point of a provider,
/// its file system must not be mounted with noexec, and the loader must find its dependencies.
fn loadable(library: &Library, findings: &mut Findings) {
    let file = library.file.display();
    let content = match host::regular::read(&library.file, file::LONGEST) {
        Ok(content) => content,
        Err(error) => {
            return findings.bad(
                format!("provider: {file}: {error}"),
                "the user who runs the program must be able to read it",
            );
        }
    };
    let entry = b"fi_prov_ini";
    if !content.windows(entry.len()).any(|window| window == entry) {
        return findings.bad(
            format!("provider: {file} has no fi_prov_ini: it is no libfabric provider"),
            "build it again: cargo build --release -p tcam-provider",
        );
    }
    if statvfs(&library.file).is_ok_and(|of| of.f_flag.contains(StatVfsMountFlags::NOEXEC)) {
        return findings.bad(
            format!("provider: {file} cannot be loaded: its file system is mounted with noexec"),
            "put it on another file system, or mount this one without noexec",
        );
    }
    if let Ok(output) = Command::new("ldd").arg(&library.file).output() {
        let text = String::from_utf8_lossy(&output.stdout);
        if let Some(line) = text.lines().find(|line| line.contains("not found")) {
            return findings.bad(
                format!("provider: {file} cannot be loaded: {}", line.trim()),
                "install what is missing, or build the provider on this machine",
            );
        }
    }
    findings.good(format!("provider: {file} can be loaded"));
}

/// Checks FI_PROVIDER_PATH, which matters for programs that are started without `tcam run`.
fn path(library: &Library, findings: &mut Findings) {
    let wanted = library.directory.display();
    let Some(list) = std::env::var_os("FI_PROVIDER_PATH") else {
        return findings.good(format!(
            "FI_PROVIDER_PATH is not set; `tcam run` sets it (by hand: FI_PROVIDER_PATH={wanted})"
        ));
    };
    let shown = list.to_string_lossy();
    let mut places = std::env::split_paths(&list);
    if places.any(|place| place.canonicalize().is_ok_and(|place| place == library.directory)) {
        return findings.good(format!("FI_PROVIDER_PATH={shown} holds the provider"));
    }
    findings.note(
        format!("FI_PROVIDER_PATH={shown} does not hold this provider"),
        format!("`tcam run` sets it; by hand: FI_PROVIDER_PATH={wanted}"),
    );
}

/// Checks that libfabric's fi_info lists the provider, if fi_info is installed.
pub(super) fn fi_info(subject: &Subject<'_>, findings: &mut Findings) {
    let Ok(library) = &subject.library else { return };
    let Ok(text) = output_text(Command::new("fi_info").arg("--version")) else {
        return findings.note(
            "libfabric: there is no fi_info to ask",
            "MPIs that bring their own libfabric do not need it; Debian has it in libfabric-bin",
        );
    };
    let version = text.lines().find_map(|line| line.strip_prefix("libfabric:"));
    let version = version.unwrap_or("?").trim();
    let mut listing = Command::new("fi_info");
    listing.args(["-p", "tcam"]).env("FI_PROVIDER_PATH", &library.directory);
    // A wrong value of these variables would hide the provider. Another check reports wrong values.
    for (name, _) in std::env::vars_os() {
        if name.as_encoded_bytes().starts_with(PREFIX.as_bytes()) {
            listing.env_remove(name);
        }
    }
    let listing = output_text(listing.env_remove("FI_PROVIDER")).unwrap_or_default();
    if listing.lines().any(|line| line.trim() == "provider: tcam") {
        return findings.good(format!("libfabric {version} (fi_info) lists the provider"));
    }
    let said = listing.lines().last().unwrap_or_default();
    findings.bad(
        format!("libfabric {version} (fi_info) does not list the provider: {said}"),
        format!(
            "see why: FI_PROVIDER_PATH={} FI_LOG_LEVEL=info fi_info -p tcam",
            library.directory.display()
        ),
    );
}

#[cfg(test)]
mod tests {
    use super::super::findings::Verdict;
    use super::super::findings::tests::verdict;
    use super::*;

    #[test]
    fn filters_are_read_as_libfabric_reads_them() {
        for (value, expected) in [
            (None, Verdict::Good),
            (Some("tcam"), Verdict::Good),
            (Some("tcp,tcam"), Verdict::Good),
            (Some("tcp"), Verdict::Note),
            (Some("^tcp"), Verdict::Good),
            (Some("^tcam"), Verdict::Note),
            (Some("^shm,tcam"), Verdict::Note),
        ] {
            assert_eq!(
                verdict(|findings| judge_filter(value, findings)),
                Some(expected),
                "{value:?}"
            );
        }
    }

    #[test]
    fn a_file_without_the_entry_point_is_no_provider() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("libtcam-fi.so"), "not a library").unwrap();
        let library = Library::find(Some(directory.path())).unwrap();
        assert_eq!(verdict(|findings| loadable(&library, findings)), Some(Verdict::Bad));
    }
}
