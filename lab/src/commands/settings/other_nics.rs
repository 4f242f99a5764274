// SPDX-License-Identifier: BSD-2-Clause
//! Settings of UCX for ConnectX (UCX 9466d10), and of Open MPI's mtl/portals4, for a recorded
//! program.

use nic::trace::Op;

use super::advice::{Advice, Basis, Given, Needs, Setting, basis, of_endpoints};
use super::cxi::binary;
use crate::capacity::demand::Demand;
use crate::capacity::{Knob, Need};
use crate::error::Error;
use crate::options::LARGEST;
use crate::results::Summary;
use crate::settings::Settings;
use crate::stats::Range;
use crate::text::{count, percent, share, whole};
use crate::traces::{Found, Player, counted, play};

/// Share of the receives, in per cent, that must enter the table before their message comes, so that
/// UCX's offload is proposed. Our choice.
const WORTH: f64 = 20.0;
/// Defaults of UCX: `UCX_RC_MLX5_TM_LIST_SIZE` (rc_mlx5_iface.c:461) and `UCX_TM_THRESH`
/// (ucp_context.c:325).
const LIST_SIZE: u64 = 1_024;
const THRESHOLD: u64 = 1_024;
/// Messages of mtl/portals4 that are sent whole, and its buffers for unexpected ones.
pub(super) const PORTALS_EAGER: u64 = 2_048;
const SHORT_RECV_SIZE: u64 = 2 << 20;
const SHORT_RECVS: u64 = 32;
/// Defaults of the reference implementation of Portals (`src/ib/ptl_param.c`).
const PORTALS_LIMIT: u64 = 1_024;

fn setting(
    name: &str,
    value: &str,
    default: &str,
    is_needed: bool,
    basis: Basis,
    reason: String,
) -> Setting {
    let is_change = value != default;
    Setting { name: name.to_owned(), value: value.to_owned(), is_change, is_needed, basis, reason }
}

/// The demand of a run on ConnectX.
struct OfConnectx {
    /// Share of the receives that enter a table with room for all of them before their message comes, in per cent.
    entered: f64,
    /// Largest number of receives in the table of a rank.
    held: u64,
}

impl OfConnectx {
    fn of(found: &Found, threshold: u64) -> Result<Self, Error> {
        let mut settings = Settings::default();
        settings.set("device", &"connectx");
        settings.set("refuse_below", &threshold);
        let need = play::with_bar(found, 1, |bar| Need::of(found, &settings, Knob::Tables, bar))?;
        // The table has the size that is proposed.
        settings.set("prq_entries", &LARGEST);
        let played = play::all(found, &settings)?;
        let reports = counted::reports(&played, &settings)?;
        let sum = Summary::of_traces(&reports, &found.ranks()).ok_or(Error::NothingTagged)?;
        let prq = &sum.tagged.prq;
        let entered = percent(prq.inserts.saturating_sub(prq.spills), sum.tagged.posts);
        Ok(Self { entered, held: need.tables[0] })
    }
}

/// Returns the largest power of two that the buffers of at least half of the program's receives
/// have; [`THRESHOLD`] if it is larger, or without receives.
fn threshold(runs: &[Found]) -> Result<u64, Error> {
    // Receives by the number of bits of the length of their buffer.
    let mut lengths = [0_u64; 65];
    for trace in runs.iter().flat_map(|run| run.iter()) {
        if trace.header.context != "tagged" {
            continue;
        }
        let mut player = Player::new(trace, &Settings::default())?;
        while let Some((_, op)) = player.next()? {
            if let Op::Post(posted) | Op::PostAnyway(posted) = op {
                lengths[(u64::BITS - posted.len.leading_zeros()) as usize] += 1;
            }
        }
    }
    let all: u64 = lengths.iter().sum();
    let mut longer = 0;
    for bits in (1..=64).rev() {
        longer += lengths[bits];
        if all > 0 && 2 * longer >= all {
            return Ok((1_u64 << (bits - 1)).min(THRESHOLD));
        }
    }
    Ok(if all == 0 { THRESHOLD } else { 1 })
}

/// Returns settings of UCX.
pub(super) fn connectx(runs: &[Found], demands: &[Demand], given: Given) -> Result<Advice, Error> {
    let threshold = threshold(runs)?;
    let each: Vec<_> =
        runs.iter().map(|run| OfConnectx::of(run, threshold)).collect::<Result<_, Error>>()?;
    let entered = Range::of(each.iter().map(|of| of.entered));
    let held = Range::of(each.iter().map(|of| of.held));
    let is_worth = entered.least >= WORTH;
    let same = entered.least >= WORTH || entered.most < WORTH;
    let enable = if is_worth { "y" } else { "n" };
    let reason = format!(
        "{} of the receives enter the table before their message comes; {WORTH} % is assumed to be worth it",
        share(entered.least)
    );
    let on = |name: &str| {
        let basis = if same { Basis::EachRun } else { Basis::LargestRun };
        setting(name, enable, "n", false, basis, reason.clone())
    };
    let mut settings = vec![on("UCX_RC_MLX5_TM_ENABLE"), on("UCX_DC_MLX5_TM_ENABLE")];
    let list = (given.with_margin(held.most) + 1).next_power_of_two().max(LIST_SIZE);
    settings.push(setting(
        "UCX_RC_MLX5_TM_LIST_SIZE",
        &list.to_string(),
        &LIST_SIZE.to_string(),
        is_worth,
        basis(held),
        format!(
            "{} of a rank are in the table at most; the card may allow fewer",
            count(held.most, "receive")
        ),
    ));
    settings.push(setting(
        "UCX_TM_THRESH",
        &threshold.to_string(),
        &THRESHOLD.to_string(),
        false,
        Basis::EachRun,
        "most receives have buffers of this size or more, and shorter ones are not offloaded"
            .to_owned(),
    ));
    settings.push(setting(
        "UCX_RC_MLX5_RX_QUEUE_LEN",
        "4095",
        "4095",
        false,
        Basis::NotRecorded,
        "it must hold the messages without an entry that come between two polls; not computed"
            .to_owned(),
    ));
    if !is_worth {
        // Without the offload, nothing else has an effect.
        settings.truncate(2);
    }
    Ok(Advice::of_settings(Needs::of(demands), settings))
}

/// Returns settings of Portals 4 and of mtl/portals4.
pub(super) fn portals4(demands: &[Demand], given: Given) -> Advice {
    let needs = Needs::of(demands);
    let limit = |name: &str, of: Range<u64>, number: String| {
        let needed = given.with_margin(of.most) + 1;
        let value = needed.max(PORTALS_LIMIT).to_string();
        let reason = format!("{number} of a rank at most");
        setting(name, &value, &PORTALS_LIMIT.to_string(), true, basis(of), reason)
    };
    let bytes = of_endpoints(demands, |of| of.buffered);
    let buffers = given.with_margin(bytes.most).div_ceil(SHORT_RECV_SIZE).max(SHORT_RECVS);
    let settings = vec![
        limit("PTL_LIM_MAX_LIST_SIZE", needs.receives, count(needs.receives.most, "receive")),
        limit(
            "PTL_LIM_MAX_UNEXPECTED_HEADERS",
            needs.unexpected,
            count(needs.unexpected.most, "unexpected message"),
        ),
        setting(
            "OMPI_MCA_mtl_portals4_short_recv_num",
            &buffers.to_string(),
            &SHORT_RECVS.to_string(),
            true,
            basis(bytes),
            format!(
                "{} of unexpected messages at most, in buffers of {}",
                binary(bytes.most),
                binary(SHORT_RECV_SIZE)
            ),
        ),
        match needs.events_between_polls {
            Some(events) => limit(
                "OMPI_MCA_mtl_portals4_recv_event_queue_size",
                events,
                format!("{} between two polls", count(events.most, "event")),
            ),
            None => setting(
                "OMPI_MCA_mtl_portals4_recv_event_queue_size",
                "1024",
                "1024",
                false,
                Basis::NotRecorded,
                "events between two polls are not recorded".to_owned(),
            ),
        },
    ];
    let mut advice = Advice::of_settings(needs, settings);
    advice.notes.push(format!(
        "The limits PTL_LIM_... are those of the reference implementation ({} each); PtlNIInit returns those \
         of a card",
        whole(PORTALS_LIMIT)
    ));
    advice
}
