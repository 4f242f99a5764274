// SPDX-License-Identifier: BSD-2-Clause
//! Reads the clusters of this process from the file `FI_TCAM_CLUSTERS`. The host engine `kmeans`
//! divides the sources of messages into these groups.

use std::{fs::File, io::BufReader, path::Path, sync::OnceLock};

use ffi::{Errno, Result};
use matching::HostEngine;
use nic::{
    clusters::{self, ClustersError, ClustersHeader, OwnClusters},
    params::Params,
};

use crate::job;

/// The reason why the file has no clusters for this process, once it is known.
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

/// Checks the header of the file before any object is opened, if the engine needs the file.
///
/// # Errors
/// `EINVAL` if the header is invalid or the file cannot be read.
pub(crate) fn check(params: &Params) -> Result<()> {
    if !is_wanted(params) {
        return Ok(());
    }
    let head = open(params).and_then(|mut file| ClustersHeader::read(&mut file));
    head.map(drop).map_err(|error| refuse(params, &error))
}

/// Returns the clusters of this process; `None` for another engine, or if the file belongs to
/// another job. In the latter case the report contains a remark.
///
/// # Errors
/// `EINVAL` for a file that is invalid or cannot be read.
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

/// Returns the remarks about the file for a report.
pub(crate) fn remarks() -> Vec<String> {
    REMARK.get().cloned().into_iter().collect()
}
