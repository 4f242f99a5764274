// SPDX-License-Identifier: BSD-2-Clause
//! A point of a capacity curve: the results at one table size, and the cost of a message there.

use matching::timing::ModelledTime;
use nic::latency::{Latencies, Latency};
use nic::report::ContextCounters;

use crate::results::summary::spilled;
use crate::results::{NamedValues, Peak, Summary};
use crate::stats::median;
use crate::text::{entries, share, whole};
use crate::traces::Counted;

/// Results of the runs at one table size.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Point {
    /// Entries of the table of posted receives.
    pub(crate) prq: usize,
    /// Entries of the table of unexpected messages.
    pub(crate) umq: usize,
    /// Share of the elements that went to the host and entered a table later, in per cent: the
    /// median of the runs.
    pub(crate) promoted: f64,
    /// Shares of the elements that spilled, in per cent: both queues together, PRQ, UMQ. Each is
    /// the median of the runs. An element spills if it goes to the host because its table is full
    /// or the device does not take it.
    pub(crate) spilled: [f64; 3],
    /// The largest value of each of these shares in any run.
    pub(crate) spilled_most: [f64; 3],
    /// Numbers of elements that spilled, in the run with most of them: PRQ, UMQ.
    pub(crate) spills: [u64; 2],
    /// Number of elements of the MPI itself that spilled, in the run with most of them. 0 if these
    /// elements take no entries from a pool.
    pub(crate) internal_spills: u64,
    /// Longest PRQ and UMQ of any rank.
    pub(crate) peaks: [Peak; 2],
    /// Longest PRQ and UMQ of each run.
    pub(crate) marks: [Vec<u64>; 2],
    /// Seconds of the runs: shortest, median, longest.
    pub(crate) seconds: [f64; 3],
    /// Mean cost of a message; `None` if the points are of runs and not of replays.
    pub(crate) cost: Option<Cost>,
}

/// Mean cost of matching a message in a replay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Cost {
    /// Nanoseconds of the timing model.
    Modelled(Modelled),
    /// Entries that a linear search on the host compares.
    Compared(f64),
    /// Entries that the host engine traverses, if the settings name one.
    Traversed(f64),
}

impl Cost {
    /// Returns the name of the cost, and its unit.
    pub(crate) fn title(self) -> (&'static str, &'static str) {
        match self {
            Self::Modelled(_) => ("Modelled time of matching", "ns a message"),
            Self::Compared(_) => ("Entries compared on the host", "entries a message"),
            Self::Traversed(_) => ("Entries traversed by the host engine", "entries a message"),
        }
    }

    /// Returns the times of the timing model, or `None` for a cost in entries.
    pub(crate) const fn modelled(self) -> Option<Modelled> {
        match self {
            Self::Modelled(modelled) => Some(modelled),
            Self::Compared(_) | Self::Traversed(_) => None,
        }
    }

    /// Returns the cost in nanoseconds or entries per message, see [`Self::title`].
    pub(crate) fn value(self) -> f64 {
        match self {
            Self::Modelled(modelled) => modelled.matching,
            Self::Compared(entries) | Self::Traversed(entries) => entries,
        }
    }
}

/// Mean nanoseconds per message.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Modelled {
    /// Cost of all searches, spills and promotions.
    pub(crate) matching: f64,
    /// Cost of overflow: everything except the searches of tables.
    pub(crate) added: f64,
    /// Cost of overflow on the rank where it is highest.
    pub(crate) worst: f64,
    /// Rank of `worst`; `None` if its number is unknown, or if overflow costs nothing on any rank.
    pub(crate) rank: Option<u32>,
    /// Latencies of arrivals and of posts, including waiting: mean, median and 99th percentile.
    pub(crate) arrivals: [Option<f64>; 3],
    pub(crate) posts: [Option<f64>; 3],
}

impl Modelled {
    /// Computes the costs of the tagged messages. `sum` is the sum of `counted`.
    pub(crate) fn of(sum: &Summary, counted: &[Counted]) -> Self {
        let ns = |of: &ContextCounters, ps: fn(&ModelledTime) -> u64| {
            let ps = ps(&of.prq.modelled).saturating_add(ps(&of.umq.modelled));
            ps as f64 * 1e-3 / of.arrivals.max(1) as f64
        };
        let host_ns = |of: &ContextCounters| ns(of, ModelledTime::overflow_ps);
        let table_ns = ns(&sum.tagged, |time| time.table_ps);
        let matching = table_ns + host_ns(&sum.tagged);
        let (worst, rank) = counted
            .iter()
            .filter(|of| of.trace.header.context == "tagged")
            .map(|of| (host_ns(&of.counters), of.trace.header.rank))
            .fold((0.0, None), |most, of| if of.0 > most.0 { of } else { most });
        let latency = |of: &Latencies| [of.mean_ns(), of.quantile_ns(0.5), of.quantile_ns(0.99)];
        let Latency { arrivals, posts, .. } = &sum.tagged.latency;
        let added = host_ns(&sum.tagged);
        let (arrivals, posts) = (latency(arrivals), latency(posts));
        Self { matching, added, worst, rank, arrivals, posts }
    }

    /// Puts the latencies into a record. Without the timing model (`None`) the values are missing.
    pub(crate) fn put_latencies(of: Option<&Self>, record: &mut NamedValues) {
        for (name, latencies) in
            [("arrival", of.map(|of| of.arrivals)), ("post", of.map(|of| of.posts))]
        {
            for (at, value) in ["mean", "median", "99_percent"].into_iter().enumerate() {
                record.put(format!("{name}_{value}_ns"), latencies.and_then(|of| of[at]));
            }
        }
    }
}

impl Point {
    /// Makes the point of a pool of this size. The MPI's own elements draw from the pool, too.
    pub(crate) fn of_pool(size: usize, runs: &[Summary]) -> Self {
        let own = runs.iter().map(Summary::internal_spills);
        Self { internal_spills: own.max().unwrap_or(0), ..Self::of(size, size, runs) }
    }

    /// Makes the point of the runs at one size. Shares and times are medians. Peaks are the highest
    /// of any run, because the table must be large enough for each run.
    ///
    /// # Panics
    /// If `runs` is empty.
    pub(crate) fn of(prq: usize, umq: usize, runs: &[Summary]) -> Self {
        let shares: [fn(&Summary) -> f64; 3] =
            [Summary::spilled, |run| spilled(&run.tagged.prq), |run| spilled(&run.tagged.umq)];
        let spills: [fn(&Summary) -> u64; 2] =
            [|run| run.tagged.prq.spills, |run| run.tagged.umq.spills];
        let peaks: [fn(&Summary) -> &Peak; 2] = [|run| &run.prq_peak, |run| &run.umq_peak];
        let seconds = || runs.iter().map(|run| run.seconds);
        Self {
            prq,
            umq,
            promoted: median(runs.iter().map(Summary::promoted)),
            spilled: shares.map(|of| median(runs.iter().map(of))),
            spilled_most: shares.map(|of| runs.iter().map(of).fold(0.0, f64::max)),
            spills: spills.map(|of| runs.iter().map(of).max().unwrap_or(0)),
            internal_spills: 0,
            peaks: peaks
                .map(|of| runs.iter().map(of).cloned().fold(Peak::default(), Peak::highest)),
            marks: peaks.map(|of| runs.iter().map(|run| of(run).elements).collect()),
            seconds: [
                seconds().fold(f64::INFINITY, f64::min),
                median(seconds()),
                seconds().fold(0.0, f64::max),
            ],
            cost: None,
        }
    }

    /// Returns the spilled share as text: the median, and the largest share if it differs. `of` is
    /// an index of [`Self::spilled`].
    pub(crate) fn spilled_text(&self, of: usize) -> String {
        let (median, most) = (share(self.spilled[of]), share(self.spilled_most[of]));
        if median == most { median } else { format!("{median}, at most {most}") }
    }

    /// Returns the share of the elements that got an entry when they were added, in per cent: the
    /// median of the runs.
    pub(crate) fn immediate(&self) -> f64 {
        100.0 - self.spilled[0]
    }

    /// Returns true if nothing spilled.
    pub(super) fn fits(&self) -> bool {
        self.spills == [0, 0] && self.internal_spills == 0
    }

    /// Returns the size as text with the unit `entries`.
    pub(super) fn entries(&self) -> String {
        if self.prq == self.umq {
            entries(self.prq as u64)
        } else {
            format!("{} entries", self.size())
        }
    }

    /// Returns the size as one number, or both sizes if they differ.
    pub(crate) fn size(&self) -> String {
        if self.prq == self.umq {
            whole(self.prq as u64)
        } else {
            format!("{} + {}", whole(self.prq as u64), whole(self.umq as u64))
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::results::reports::tests::sample;

    pub(crate) fn point(entries: u64, posts: &[u64]) -> Point {
        let runs: Vec<_> = posts
            .iter()
            .map(|&posts| Summary::of(&[sample(0, entries, 3), sample(1, entries, posts)]).unwrap())
            .collect();
        Point::of(entries as usize, entries as usize, &runs)
    }

    #[test]
    fn medians_are_taken_and_peaks_kept() {
        let point = point(10, &[20, 12, 100]);
        assert_eq!((point.spills, point.spilled[0] < point.spilled_most[0]), ([90, 0], true));
        assert_eq!(point.peaks[0], Peak { elements: 100, rank: Some(1) });
        assert_eq!(point.seconds, [2.5, 2.5, 2.5]);
    }

    #[test]
    fn of_two_runs_the_median_is_between_them() {
        let point = point(10, &[20, 40]);
        assert_eq!(point.spills, [30, 0]);
        assert!((point.spilled[1] - 100.0 * (10.0 / 23.0 + 30.0 / 43.0) / 2.0).abs() < 1e-9);
    }
}
