// SPDX-License-Identifier: BSD-2-Clause
//! `tcam cluster`: groups the sources of each rank into clusters with K-means, for the host engine
//! `kmeans` (Ghazimirsaeed, Afsahi: *Accelerating MPI Message Matching by a Data Clustering
//! Strategy*, section 4).
//!
//! ```text
//! for each rank i and each of its queues:
//!     A[i] = number of elements that each source j added            (the profile)
//!     B[i] = K-means of A[i] with k clusters: sources that added many, fewer, few
//! ```
//!
//! A search passes through the queue of its source's cluster. With N elements, of which N_c are in
//! cluster c, the queue of an element has sum(N_c^2) / N elements on average. `auto` takes the
//! fewest clusters whose average is at most 10 % above that of the largest choice.

use std::path::PathBuf;

use clap::Args;
use nic::clusters::{ClustersHeader, FORMAT, RankClusters};
use serde::Serialize;

use crate::error::Error;
use crate::experiment::profile::kmeans;
use crate::experiment::{Clustered, Experiment, Inputs, Keep, RankProfile, SourceProfile};
use crate::file;
use crate::text::{Sheet, percent, share, whole};

/// Numbers of clusters that `auto` chooses from, as in the paper.
const CHOICES: [u16; 6] = [1, 2, 4, 8, 16, 32];
/// Factor by which `auto` accepts longer queues in exchange for fewer clusters.
const GAP: f64 = 1.1;
/// Maximum number of queues that are printed.
const WORST: usize = 8;

/// Makes clusters of the sources of each rank, for the host engine kmeans.
///
/// Sources that added about the same number of elements share a queue (K-means). Elements are posted
/// receives that waited and messages that were unexpected, in any table or engine. Any-source
/// receives are not attributed to a source. Sources are the numbers that the device gives to peers,
/// which need not be their ranks. Another run with the same MPI has the same numbers.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tcam cluster tcam-trace --k 16 --out app.clusters
  tcam replay --with host_engine=list --with host_engine=kmeans,clusters=app.clusters tcam-trace
  tcam run --set host_engine=kmeans --set clusters=$PWD/app.clusters -- mpiexec -n 64 ./app")]
pub(crate) struct MakeClusters {
    #[command(flatten)]
    from: Inputs,

    /// Number of clusters of a queue, 1 to 4096, or auto: the fewest of 1, 2, 4, 8, 16 and 32 whose
    /// queues are at most 10 % longer than with 32. Sources that added equally many elements share
    /// a cluster.
    #[arg(long, value_name = "K", default_value = "auto", value_parser = clusters)]
    k: u16,

    /// Output file; - is standard output.
    #[arg(long, value_name = "FILE", default_value = "tcam.clusters")]
    out: PathBuf,
}

/// Parses the value of `--k`. Returns 0 for `auto`.
fn clusters(text: &str) -> Result<u16, String> {
    let most = matching::Clusters::MOST;
    let number = text.parse().ok().filter(|k| (1..=most).contains(k));
    let number = number.or((text == "auto").then_some(0));
    number.ok_or_else(|| format!("auto or a number from 1 to {most} is expected"))
}

/// Writes the clusters. Returns 0, or 3 if results are incomplete.
pub(crate) fn cluster(arguments: &MakeClusters) -> Result<u8, Error> {
    let out = &arguments.out;
    let is_output = out.as_os_str() == "-";
    if !is_output {
        let expected = "clusters are written: give a name such as app.clusters";
        file::check_kind(out, &[], expected)?;
        file::spare_others(out, &format!("{{\"format\":\"{FORMAT}\""))?;
        file::check(out)?;
    }
    let experiment = Experiment::read(&arguments.from, Keep::Added)?;
    let read =
        SourceProfile::of(&experiment).map_err(|why| Error::file(&arguments.from.names[0], why))?;
    let mut text = line(&ClustersHeader::new(read.processes, arguments.k.into()));
    let mut made = Vec::new();
    for row in &read.rows {
        let [prq, umq] = [&row.prq, &row.umq].map(|added| of_queue(added, arguments.k));
        let (of_prq, of_umq) = (prq.of.clone(), umq.of.clone());
        text += &line(&RankClusters { rank: row.rank, prq: of_prq, umq: of_umq });
        made.push((row, [prq, umq]));
    }
    let code = experiment.code(arguments.from.take);
    if is_output {
        print!("{text}");
        return Ok(code);
    }
    file::write(out, text)?;
    println!("{}", experiment.title());
    println!("{}", sheet(&made).terminal());
    if made.iter().any(|(row, of)| of_equals(&row.prq, &of[0]) || of_equals(&row.umq, &of[1])) {
        println!("K-means has one cluster for sources that added equally, whatever K.");
    }
    println!("{} has the clusters, for --set host_engine=kmeans --set clusters={0}", out.display());
    Ok(code)
}

/// Returns a value as a line of JSON.
fn line(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("numbers are JSON") + "\n"
}

fn of_queue(added: &[(u32, u64)], k: u16) -> Clustered {
    if k > 0 {
        return kmeans(added, k);
    }
    let all = CHOICES.map(|k| kmeans(added, k));
    let most = all[CHOICES.len() - 1].part * GAP;
    let fewest = all.into_iter().find(|made| made.part <= most);
    fewest.expect("the last choice satisfies the condition")
}

/// Returns true if several sources added equally, so that K-means makes one cluster of them.
fn of_equals(added: &[(u32, u64)], made: &Clustered) -> bool {
    added.len() > 1 && made.clusters == 1 && added.windows(2).all(|two| two[0].1 == two[1].1)
}

/// Returns the table of the queues with the most elements.
fn sheet(made: &[(&RankProfile, [Clustered; 2])]) -> Sheet {
    let elements = |of: &[(u32, u64)]| of.iter().fold(0_u64, |sum, (_, n)| sum.saturating_add(*n));
    let mut queues: Vec<_> = made
        .iter()
        .flat_map(|(row, [prq, umq])| {
            [(row.rank, "PRQ", &row.prq, prq), (row.rank, "UMQ", &row.umq, umq)]
        })
        .filter(|(_, _, added, _)| !added.is_empty())
        .collect();
    queues.sort_by_key(|(_, _, added, _)| std::cmp::Reverse(elements(added)));
    let title = match queues.len() {
        all if all <= WORST => "Clusters of sources".to_owned(),
        all => {
            format!("Clusters of sources, of the {WORST} longest of {} queues", whole(all as u64))
        }
    };
    let columns = ["rank", "queue", "sources", "elements", "clusters", "of them in a queue"];
    let mut sheet = Sheet::new(title, columns);
    for (rank, queue, added, of) in queues.into_iter().take(WORST) {
        sheet.row([
            rank.to_string(),
            queue.to_owned(),
            whole(added.len() as u64),
            whole(elements(added)),
            whole(of.clusters as u64),
            share(percent((of.part * 1e6) as u64, 1_000_000)),
        ]);
    }
    sheet
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auto_takes_no_more_than_it_needs() {
        let even: Vec<_> = (0..64).map(|source| (source, 100)).collect();
        assert_eq!(of_queue(&even, 0).clusters, 1, "K-means cannot tell them apart");
        let two: Vec<_> = (0..64).map(|source| (source, 1 + source as u64 % 2 * 1000)).collect();
        assert!(of_queue(&two, 0).clusters <= 2);
        let all: Vec<_> = (0..64).map(|source| (source, 100 + u64::from(source) * 10)).collect();
        let auto = of_queue(&all, 0);
        assert!(auto.clusters > 8 && auto.part <= kmeans(&all, 32).part * GAP, "{auto:?}");
    }

    #[test]
    fn k_is_a_number_or_auto() {
        assert_eq!(clusters("auto"), Ok(0));
        assert_eq!(clusters("16"), Ok(16));
        for wrong in ["0", "4097", "-1", "few"] {
            assert!(clusters(wrong).unwrap_err().contains("from 1 to 4096"), "{wrong}");
        }
    }
}
