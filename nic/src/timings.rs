// SPDX-License-Identifier: BSD-2-Clause
//! The cost presets that `FI_TCAM_TIMING` names: values for the parameters of the timing model.
//! docs/devices.md has the sources. A parameter that the user sets takes precedence.

use crate::models::Values;

/// Parameters of the timing model.
pub const COSTS: [&str; 7] =
    ["table_ns", "up_ns", "host_ns", "host_entry_ns", "down_ns", "spill_ns", "promote_ns"];

/// A preset of costs.
#[derive(Clone, Copy, Debug)]
pub struct CostPreset {
    /// Name, as in `FI_TCAM_TIMING`.
    pub name: &'static str,
    /// The parameters that it sets.
    pub sets: Values,
}

/// All presets. They contain only figures with a source; no source exists for a table search on any
/// NIC.
pub const TIMINGS: [CostPreset; 3] = [
    CostPreset { name: "none", sets: &[] },
    CostPreset {
        name: "cpu-list",
        sets: &[
            ("host_entry_ns", "2.7@64,4.5@1024,5.1@8192"),
            ("spill_ns", "3"),
            ("promote_ns", "22"),
        ],
    },
    CostPreset { name: "cpu-hash", sets: &[("host_ns", "300"), ("spill_ns", "140")] },
];

/// Names of the presets.
pub(crate) const NAMES: [&str; TIMINGS.len()] = [TIMINGS[0].name, TIMINGS[1].name, TIMINGS[2].name];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Params;

    #[test]
    fn presets_set_costs_only_and_user_settings_take_precedence() {
        for costs in TIMINGS {
            assert!(costs.sets.iter().all(|(name, _)| COSTS.contains(name)), "{}", costs.name);
            let lookup = |name: &str| match name {
                "timing" => Some(costs.name.to_owned()),
                "table_ns" => Some("7".to_owned()),
                _ => None,
            };
            let params = Params::from_lookup(lookup).unwrap();
            assert_eq!(params.text("table_ns"), "7");
            for (name, value) in costs.sets {
                assert_eq!(params.text(name), *value, "{}", costs.name);
            }
        }
    }
}
