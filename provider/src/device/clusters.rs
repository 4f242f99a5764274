// SPDX-License-Identifier: BSD-2-Clause
//! The clusters of this process (`FI_TCAM_CLUSTERS`), for the engine `kmeans`.

use std::{fs::File, io::BufReader, path::Path, sync::OnceLock};

use ffi::{Errno, Result};
use matching::HostEngine;
use nic::{
    clusters::{self, ClustersError, ClustersHeader, OwnClusters},
    params::Params,
};

use crate::job;

/// The reason why the file has no source of this process, once found.
static REMARK: OnceLock<String> = OnceLock::new();

fn is_wanted(params: &Params) -> bool {
    params.host_engine == HostEngine::Kmeans
}

fn open(params: &Params) -> std::result::Result<BufReader<File>, ClustersError> {
    Ok(host::regular::open(Path::new(&params.clusters))?)
}

fn refuse(params: &Params, error: &ClustersError) -> Errno {
    tracing::error!("FI_TCAM_CLUSTERS={}: {error}", &params.clusters);
    Errno::EINVAL
}

/// Refuses an invalid file before anything is opened.
///
/// # Errors
/// `EINVAL`.
pub(crate) fn check(params: &Params) -> Result<()> {
    if !is_wanted(params) {
        return Ok(());
    }
    let head = open(params).and_then(|mut file| ClustersHeader::read(&mut file));
    head.map(drop).map_err(|error| refuse(params, &error))
}

/// The clusters of this process. Returns `None` if the file belongs to another job; the report then
/// contains a remark.
///
/// # Errors
/// `EINVAL` for a file that cannot be read.
pub(crate) fn own(params: &Params) -> Result<Option<OwnClusters>> {
    if !is_wanted(params) {
        return Ok(None);
    }
    let rank = job::rank().unwrap_or(0);
    let read = open(params).and_then(|mut file| clusters::read(&mut file, rank, job::ranks()));
    match read {
        Ok(own) => Ok(Some(own)),
        Err(error) if error.is_other_job() => {
            let remark = REMARK.get_or_init(|| {
                let file = &params.clusters;
                format!("FI_TCAM_CLUSTERS={file}: {error}; every source is in the default cluster")
            });
            tracing::warn!("{remark}");
            Ok(None)
        }
        Err(error) => Err(refuse(params, &error)),
    }
}

/// Remarks about the file, for readers of a report.
pub(crate) fn remarks() -> Vec<String> {
    REMARK.get().cloned().into_iter().collect()
}
