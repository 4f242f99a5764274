// SPDX-License-Identifier: BSD-2-Clause
//! `FI_TCAM_TAG_LAYOUT=auto`: detects the MPI of this process, which determines the layout of the
//! match bits.

use matching::TagLayout;
use nic::params::{Params, types::Auto};

/// Returns the layout of match bits on an endpoint. `directed`: receives may name a source
/// (`FI_DIRECTED_RECV`).
pub(crate) fn tag_layout(params: &Params, directed: bool) -> TagLayout {
    match params.tag_layout {
        Auto::Auto => {
            // If the file is unreadable, the variables of the launcher may still identify the MPI.
            let loaded = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
            let layout = layout_of(&loaded, directed, |name| std::env::var(name).ok());
            tracing::info!("FI_TCAM_TAG_LAYOUT=auto: {layout}");
            layout
        }
        Auto::Set(layout) => layout,
    }
}

/// Returns the layout of the MPI whose library is mapped. If the MPI is linked statically,
/// variables of its launcher identify it. Without an MPI, the layout is `Opaque`.
fn layout_of(maps: &str, directed: bool, variable: impl Fn(&str) -> Option<String>) -> TagLayout {
    let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let libmpi = |version: &str| {
        let mut paths = maps.lines().filter_map(|line| line.split_once('/'));
        paths.find(|(_, path)| {
            let name = name(path);
            name.starts_with("libmpi") && name.contains(version)
        })
    };
    if libmpi(".so.40").is_some() || variable("OMPI_COMM_WORLD_RANK").is_some() {
        return match variable("OMPI_MCA_mtl_ofi_tag_mode").as_deref() {
            Some("ofi_tag_1") => TagLayout::OpenMpiTag1,
            Some("ofi_tag_2") => TagLayout::OpenMpiTag2,
            _ => TagLayout::OpenMpi,
        };
    }
    let mpich = libmpi(".so.12");
    // Intel MPI has the library name of MPICH, and libraries that MPICH does not have.
    let intel = mpich.and_then(|(_, path)| path.rsplit_once('/')).is_some_and(|(folder, _)| {
        std::path::Path::new(&format!("/{folder}/libmpi_shm_heap_proxy.so")).exists()
    });
    if intel {
        return TagLayout::IntelMpi;
    }
    if mpich.is_none() && variable("PMI_RANK").is_none() {
        return TagLayout::Opaque;
    }
    // MPICH has the source in its completion-queue data if receives may name one.
    if directed { TagLayout::Mpich } else { TagLayout::MpichSourceInTag }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loaded_mpi_determines_the_layout() {
        let maps = |file: &str| {
            format!(
                "7f00-7f01 r-xp 0 fe:00 9  /usr/lib/libc.so.6\n7f02-7f03 r-xp 0 fe:00 9  {file}\n7f04 rw-p 0\n"
            )
        };
        let layout = |file: &str, set: &[(&str, &str)]| {
            layout_of(&maps(file), true, |name| {
                set.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
            })
        };
        let debian = "/usr/lib/x86_64-linux-gnu/libmpi.so.40.30.4";
        assert_eq!(layout(debian, &[("PMI_RANK", "0")]), TagLayout::OpenMpi);
        let tag_1 = [("OMPI_MCA_mtl_ofi_tag_mode", "ofi_tag_1")];
        assert_eq!(layout(debian, &tag_1), TagLayout::OpenMpiTag1);
        for mpich in ["/opt/venv/lib/libmpi.so.12", "/usr/lib/libmpich.so.12.1.10"] {
            assert_eq!(layout(mpich, &[]), TagLayout::Mpich);
            let undirected = layout_of(&maps(mpich), false, |_| None);
            assert_eq!(undirected, TagLayout::MpichSourceInTag);
        }
        // A program without MPI, or with one that is linked statically.
        let other = "/usr/lib/libmpfr.so.6";
        assert_eq!(layout(other, &[]), TagLayout::Opaque);
        assert_eq!(layout(other, &[("PMI_RANK", "1")]), TagLayout::Mpich);
        assert_eq!(layout(other, &[("OMPI_COMM_WORLD_RANK", "1")]), TagLayout::OpenMpi);
    }

    #[test]
    fn intel_mpi_differs_from_mpich_by_its_other_libraries() {
        let folder = std::env::temp_dir().join(format!("tcam-impi-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("libmpi_shm_heap_proxy.so"), "").unwrap();
        let maps = format!("7f02-7f03 r-xp 0 fe:00 9  {}/libmpi.so.12.0.0\n", folder.display());
        let layout = layout_of(&maps, true, |_| None);
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(layout, TagLayout::IntelMpi);
    }
}
