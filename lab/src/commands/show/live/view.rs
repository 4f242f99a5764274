// SPDX-License-Identifier: BSD-2-Clause
//! Makes the table of `tcam show --live`. Its columns have a fixed width, so that numbers stay in place
//! from one table to the next.

use std::collections::{BTreeMap, HashMap};

use host::live::Live;
use matching::Tallies;
use nic::report::LiveContext;

use crate::launch::endpoints::{counts, sum};
use crate::launch::{Id, Job, RunningEndpoint};
use crate::text::count;

/// Maximum length of the name of a job's program, in characters.
const NAME: usize = 40;

/// The values of the line of an endpoint, or of the line with the sums.
#[derive(Clone, Debug, Default)]
struct EndpointRow {
    rank: String,
    pid: String,
    program: String,
    /// Growth of the [`counts`] per second. `None` if the endpoint was not in the last table, or
    /// did not update its counters since.
    rates: Option<[f64; 6]>,
    counters: LiveContext,
}

/// A column: its title, its width with the space before it, and true if a narrow terminal shows it.
struct Column {
    title: &'static str,
    width: usize,
    narrow: bool,
    text: fn(&EndpointRow) -> String,
}

const COLUMNS: [Column; 13] = [
    Column { title: "rank", width: 7, narrow: true, text: |row| row.rank.clone() },
    Column { title: "pid", width: 9, narrow: false, text: |row| row.pid.clone() },
    Column { title: "program", width: 13, narrow: true, text: |row| row.program.clone() },
    Column { title: "posts/s", width: 8, narrow: false, text: |row| row.rate(0) },
    Column { title: "arriv/s", width: 8, narrow: true, text: |row| row.rate(1) },
    Column { title: "unexp/s", width: 8, narrow: false, text: |row| row.rate(2) },
    Column { title: "table/s", width: 8, narrow: false, text: |row| row.rate(3) },
    Column { title: "host/s", width: 8, narrow: true, text: |row| row.rate(4) },
    Column { title: "spill/s", width: 8, narrow: true, text: |row| row.rate(5) },
    Column { title: "PRQ", width: 12, narrow: true, text: |row| place(&row.counters.prq) },
    Column {
        title: "mark",
        width: 6,
        narrow: true,
        text: |row| short(row.counters.prq.high_water),
    },
    Column { title: "UMQ", width: 12, narrow: true, text: |row| place(&row.counters.umq) },
    Column {
        title: "mark",
        width: 6,
        narrow: true,
        text: |row| short(row.counters.umq.high_water),
    },
];

/// Writes a number in up to five characters: `12345`, `123 k`, `1.2 M`.
fn short(number: u64) -> String {
    let mut value = number as f64;
    if number < 100_000 {
        return number.to_string();
    }
    for unit in ["k", "M", "G", "T", "P", "E"] {
        value /= 1000.0;
        if value < 9.95 {
            return format!("{value:.1} {unit}");
        }
        if value < 999.5 {
            return format!("{value:.0} {unit}");
        }
    }
    "many".to_owned()
}

/// Returns the numbers of elements in the table and on the host as text.
fn place(tallies: &Tallies) -> String {
    format!("{}+{}", short(tallies.table_occupancy), short(tallies.host_occupancy))
}

/// Returns the counters of tagged messages, as in reports, or of untagged messages if no tagged
/// ones came.
fn context(live: &Live) -> &LiveContext {
    let LiveContext { posts, arrivals, .. } = live.tagged;
    if posts == 0 && arrivals == 0 { &live.msg } else { &live.tagged }
}

impl EndpointRow {
    fn of(before: Option<&Live>, endpoint: &RunningEndpoint) -> Self {
        let live = endpoint.live();
        Self {
            rank: live
                .and_then(|live| live.rank)
                .map_or_else(|| "-".to_owned(), |rank| rank.to_string()),
            pid: endpoint.page.pid.to_string(),
            program: endpoint.program.clone(),
            rates: before.zip(live).and_then(|(before, live)| rates(before, live)),
            counters: live.map(context).copied().unwrap_or_default(),
        }
    }

    fn rate(&self, which: usize) -> String {
        self.rates.map_or_else(|| "-".to_owned(), |rates| short(rates[which].round() as u64))
    }
}

/// Returns the growth of the counts per second, over the time between two updates of the endpoint.
/// Returns `None` if there was no update in between.
fn rates(before: &Live, now: &Live) -> Option<[f64; 6]> {
    let seconds = now.ns.checked_sub(before.ns).filter(|ns| *ns > 0)? as f64 * 1e-9;
    let (before, now) = (counts(context(before)), counts(context(now)));
    Some(std::array::from_fn(|at| now[at].saturating_sub(before[at]) as f64 / seconds))
}

/// Returns a row with the sums of all rows.
fn total(rows: &[EndpointRow]) -> EndpointRow {
    let counters = sum(rows.iter().map(|row| row.counters));
    let add = |one: [f64; 6], other: [f64; 6]| std::array::from_fn(|at| one[at] + other[at]);
    let rates = rows.iter().filter_map(|row| row.rates).reduce(add);
    EndpointRow { program: "all".to_owned(), rates, counters, ..EndpointRow::default() }
}

fn line(columns: &[&Column], text: impl Fn(&Column) -> String) -> String {
    let cell = |column: &&Column| {
        let text: String = text(column).chars().take(column.width - 1).collect();
        format!("{text:>width$}", width = column.width)
    };
    columns.iter().map(cell).collect::<String>() + "\n"
}

/// Returns a line for each of up to `most` jobs, and one for the number of other jobs. Returns no
/// line unless several jobs run. The lines contain the names that `--job` takes.
fn jobs(endpoints: &[RunningEndpoint], most: usize) -> Vec<String> {
    let mut jobs: BTreeMap<Job, (u64, &str)> = BTreeMap::new();
    for (job, of) in endpoints.iter().filter_map(|of| Some((of.job()?, of))) {
        // Endpoints are sorted by rank, so the name is that of the job's first rank.
        jobs.entry(job).or_insert((0, &of.program)).0 += 1;
    }
    if jobs.len() < 2 {
        return Vec::new();
    }
    let others = jobs.len().saturating_sub(most);
    let line = |(job, (number, program))| {
        let program: String = str::chars(program).take(NAME).collect();
        format!("job {job}: {} of {program}", count(number, "endpoint"))
    };
    let mut lines: Vec<_> = jobs.into_iter().take(most).map(line).collect();
    if others > 0 {
        lines.push(format!("and {}", count(others as u64, "other job")));
    }
    lines
}

/// Returns the table, with up to `most` lines of endpoints and jobs. If `width` (in characters) is
/// too small for all columns, the table has only those with `narrow`, which take 80 characters. If
/// there are more endpoints than lines, the table shows those with the largest high-water marks, by
/// rank.
pub(super) fn table(
    before: &HashMap<Id, &RunningEndpoint>,
    now: &[RunningEndpoint],
    width: usize,
    most: usize,
) -> String {
    let all: usize = COLUMNS.iter().map(|column| column.width).sum();
    let columns: Vec<&Column> =
        COLUMNS.iter().filter(|column| column.narrow || width >= all).collect();
    let rows: Vec<EndpointRow> = now
        .iter()
        .map(|of| EndpointRow::of(before.get(&of.id()).and_then(|before| before.live()), of))
        .collect();
    let jobs = jobs(now, (most / 3).max(1));
    let most = most.saturating_sub(jobs.len()).max(1);
    let mut shown: Vec<usize> = (0..rows.len()).collect();
    if rows.len() > most {
        let marks = |at: &usize| {
            let LiveContext { prq, umq, .. } = &rows[*at].counters;
            prq.high_water.max(umq.high_water)
        };
        shown.sort_by_key(|at| std::cmp::Reverse(marks(at)));
        shown.truncate(most);
        shown.sort_unstable();
    }
    let mut text = line(&columns, |column| column.title.to_owned());
    for row in shown.iter().map(|at| &rows[*at]).chain([&total(&rows)]) {
        text += &line(&columns, |column| (column.text)(row));
    }
    text += &count(rows.len() as u64, "endpoint");
    match rows.len() - shown.len() {
        0 => text.push('\n'),
        more => text += &format!("; {more} with shorter queues not shown\n"),
    }
    jobs.iter().for_each(|job| text += &format!("{job}\n"));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use host::live::SegmentHeader;

    fn endpoint(rank: u32, ns: u64, posts: u64, mark: u64) -> RunningEndpoint {
        let prq = Tallies {
            table_occupancy: 4096,
            host_occupancy: 12_286,
            high_water: mark,
            table_matches: posts,
            ..Tallies::default()
        };
        let tagged = LiveContext { posts, prq, ..LiveContext::default() };
        let live = Live { rank: Some(rank), ns, tagged, ..Live::default() };
        let page =
            SegmentHeader { pid: 4_194_304, started: 1, port: rank as u16, live: Some(live) };
        RunningEndpoint { page, program: "a_program_with_a_long_name".to_owned() }
    }

    fn shown(width: usize, most: usize) -> Vec<String> {
        let before: Vec<_> = (0..20).map(|rank| endpoint(rank, 1, 1_000, 0)).collect();
        let before = before.iter().map(|of| (of.id(), of)).collect();
        let now: Vec<_> = (0..20)
            .map(|rank| endpoint(rank, 1 + 500_000_000, 1_001_000, u64::from(rank % 7)))
            .collect();
        table(&before, &now, width, most).lines().map(str::to_owned).collect()
    }

    #[test]
    fn rates_are_counts_over_the_endpoints_own_time() {
        let lines = shown(120, 100);
        assert_eq!(lines.len(), 1 + 20 + 2);
        let words: Vec<_> = lines[1].split_ascii_whitespace().collect();
        let expected = "0 4194304 a_program_wi 2.0 M 0 0 2.0 M 0 0 4096+12286 0 0+0 0";
        assert_eq!(words.join(" "), expected);
        assert!(lines[21].trim_start().starts_with("all    40 M"), "{}", lines[21]);
        assert_eq!(lines[22], "20 endpoints");
    }

    #[test]
    fn tables_fit_from_80_columns_on() {
        for (width, most) in [(80, 100), (112, 5), (113, 5), (200, 1)] {
            let lines = shown(width, most);
            assert!(lines.iter().all(|line| line.chars().count() <= width), "{width}: {lines:#?}");
            assert_eq!(lines[0].contains("pid"), width >= 113);
            assert!(lines[0].contains("spill/s") && lines[0].contains("mark"));
        }
    }

    #[test]
    fn endpoints_with_the_longest_queues_are_shown() {
        let lines = shown(120, 2);
        let ranks: Vec<_> = lines[1..3].iter().map(|line| line[..7].trim()).collect();
        assert_eq!(ranks, ["6", "13"]);
        assert_eq!(lines[4], "20 endpoints; 18 with shorter queues not shown");
    }

    #[test]
    fn several_jobs_are_listed() {
        let of_job = |rank: u32, job| {
            let mut endpoint = endpoint(rank, 1, 1, 0);
            endpoint.page.live.as_mut().unwrap().job = job;
            endpoint
        };
        let lines = |jobs: u64, most| -> Vec<String> {
            let now: Vec<_> = (0..20).map(|rank| of_job(rank, u64::from(rank) % jobs)).collect();
            table(&HashMap::new(), &now, 80, most).lines().map(str::to_owned).collect()
        };
        assert_eq!(lines(1, 100).len(), 1 + 20 + 2);
        let two = lines(2, 10);
        let told = "job 0001: 10 endpoints of a_program_with_a_long_name";
        assert_eq!(two.last().unwrap(), told);
        assert_eq!(two.len(), 1 + 8 + 2 + 2, "jobs take lines of endpoints");
        assert_eq!(lines(9, 18).last().unwrap(), "and 3 other jobs");
    }

    #[test]
    fn an_endpoint_without_new_counters_has_no_rates() {
        let now = [endpoint(0, 5, 10, 3)];
        let before = now.iter().map(|of| (of.id(), of)).collect();
        let text = table(&before, &now, 80, 5);
        assert!(text.lines().nth(1).unwrap().contains(" - "), "{text}");
    }

    #[test]
    fn untagged_messages_are_shown_if_no_tagged_ones_came() {
        let Live { tagged, .. } = *endpoint(0, 1, 10, 3).live().unwrap();
        let msg = LiveContext { posts: 7, ..LiveContext::default() };
        assert_eq!(context(&Live { tagged, msg, ..Live::default() }).posts, 10);
        assert_eq!(context(&Live { msg, ..Live::default() }).posts, 7);
    }

    #[test]
    fn numbers_are_short() {
        for (number, text) in [
            (0, "0"),
            (99_999, "99999"),
            (100_000, "100 k"),
            (999_499, "999 k"),
            (999_500, "1.0 M"),
            (3_600_000, "3.6 M"),
            (u64::MAX, "18 E"),
        ] {
            assert_eq!(short(number), text);
        }
    }
}
