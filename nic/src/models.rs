// SPDX-License-Identifier: BSD-2-Clause
//! The devices that `FI_TCAM_DEVICE` names. Each is a set of values for other parameters;
//! docs/devices.md has the sources. A parameter that the user sets takes precedence.

/// Names of parameters, each with its value.
pub type Values = &'static [(&'static str, &'static str)];

/// A device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NicModel {
    /// Name, as in `FI_TCAM_DEVICE`.
    pub name: &'static str,
    /// The parameters that it sets.
    pub sets: Values,
    /// True if a NIC has these values, or will have.
    pub is_product: bool,
    /// True if a sender sends a message again that found no receive.
    pub resends: bool,
}

/// The parameters in which the match modes of a NIC differ.
const OF_MODE: [&str; 5] = ["overflow", "flow_timeout", "exhausted", "pool_buffers", "receive_ids"];

impl NicModel {
    /// Makes the model of a NIC that exists or is designed.
    #[must_use]
    pub const fn new(name: &'static str, sets: Values) -> Self {
        Self { name, sets, is_product: true, resends: false }
    }

    /// Marks a device whose values no NIC has.
    const fn no_product(self) -> Self {
        Self { is_product: false, ..self }
    }

    /// Marks a device whose senders send a message again that found no receive.
    const fn resending(self) -> Self {
        Self { resends: true, ..self }
    }

    /// Returns the value that the device sets for a parameter, if any.
    #[must_use]
    pub fn value(&self, param: &str) -> Option<&'static str> {
        value(self.sets, param)
    }

    /// Returns true if several engines divide its pool. Each endpoint then uses the part of one
    /// engine.
    #[must_use]
    pub fn divides_pool(&self) -> bool {
        self.value("pool_engines").is_some_and(|engines| engines != "1")
    }

    /// Returns true if it holds senders back while its tables are full.
    #[must_use]
    pub fn holds_back(&self) -> bool {
        self.value("overflow") == Some("flow-control")
    }

    /// Returns the device that models the same NIC in a mode that spills to the host. Returns `None`
    /// unless this device models a NIC in a mode that holds senders back and then fails.
    #[must_use]
    pub fn spilling_mode(&self) -> Option<&'static NicModel> {
        let fails = self.holds_back() && self.value("exhausted").is_some();
        let of_nic = |of: &Self| {
            let sets = of.sets.iter().filter(|(name, _)| !OF_MODE.contains(name));
            sets.collect::<Vec<_>>()
        };
        let mut others = MODELS.iter().filter(|of| *of != self && !of.holds_back());
        others.find(|of| fails && of_nic(of) == of_nic(self))
    }
}

/// Every device.
pub const MODELS: [NicModel; 9] = [
    NicModel::new("generic", &[]).no_product(),
    NicModel::new(
        "cassini-hybrid",
        &[
            ("prq_entries", "65536"),
            ("umq_entries", "65536"),
            ("overflow", "sticky"),
            ("pool", "node"),
            ("pool_entries", "65536"),
            ("pool_engines", "4"),
            ("pool_buffers", "9"),
            ("receive_ids", "65527"),
        ],
    ),
    NicModel::new(
        "cassini-hardware",
        &[
            ("prq_entries", "65536"),
            ("umq_entries", "65536"),
            ("overflow", "flow-control"),
            ("exhausted", "onload"),
            ("pool", "node"),
            ("pool_entries", "65536"),
            ("pool_engines", "4"),
            ("pool_buffers", "3"),
            ("receive_ids", "65533"),
        ],
    ),
    NicModel::new("cassini-software", &[("prq_entries", "0"), ("umq_entries", "0")]),
    NicModel::new(
        "connectx",
        &[
            ("prq_entries", "1023"),
            ("umq_entries", "0"),
            ("overflow", "prefix"),
            ("refuse", "any-source,non-contiguous"),
            ("refuse_below", "1024"),
            ("force_above", "8191"),
        ],
    ),
    NicModel::new("portals4-ref", &[("prq_entries", "1024"), ("umq_entries", "1024")]),
    NicModel::new("alpu", &[("prq_entries", "256"), ("umq_entries", "256")]),
    NicModel::new("uet", &[("prq_entries", "65536"), ("umq_entries", "0"), ("refuse", "any-tag")])
        .resending(),
    NicModel::new("ideal", &[("prq_entries", "65536"), ("umq_entries", "65536")]).no_product(),
];

/// Names of the devices.
pub(crate) const NAMES: [&str; MODELS.len()] = {
    let mut names = [""; MODELS.len()];
    let mut index = 0;
    while index < names.len() {
        names[index] = MODELS[index].name;
        index += 1;
    }
    names
};

/// Returns the device of this name.
#[must_use]
pub fn named(name: &str) -> Option<&'static NicModel> {
    MODELS.iter().find(|model| model.name == name)
}

/// Returns every device that sets a parameter: all but `generic`.
pub fn specific() -> impl Iterator<Item = &'static NicModel> {
    MODELS.iter().filter(|model| !model.sets.is_empty())
}

/// Returns the value of a parameter among these, if any.
pub(crate) fn value(sets: Values, param: &str) -> Option<&'static str> {
    sets.iter().find(|(name, _)| *name == param).map(|(_, value)| *value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::{PARAMS, Params};

    #[test]
    fn devices_set_allowed_values() {
        for model in MODELS {
            for (name, _) in model.sets {
                assert!(PARAMS.iter().any(|param| param.name == *name), "{}: {name}", model.name);
            }
            let lookup = |name: &str| (name == "device").then(|| model.name.to_owned());
            let params = Params::from_lookup(lookup).unwrap();
            for (name, value) in model.sets {
                assert_eq!(params.text(name), *value, "{}", model.name);
            }
        }
    }

    #[test]
    fn devices_answer_for_themselves() {
        assert_eq!(NAMES, MODELS.map(|model| model.name));
        let those = |is: fn(&NicModel) -> bool| -> Vec<_> {
            MODELS.iter().filter(|model| is(model)).map(|model| model.name).collect()
        };
        assert_eq!(those(|of| !of.is_product), ["generic", "ideal"]);
        assert_eq!(those(NicModel::divides_pool), ["cassini-hybrid", "cassini-hardware"]);
        assert_eq!(those(NicModel::holds_back), ["cassini-hardware"]);
        assert_eq!(those(|of| of.resends), ["uet"]);
        assert_eq!(those(|of| of.spilling_mode().is_some()), ["cassini-hardware"]);
        let hardware = named("cassini-hardware").unwrap();
        assert_eq!(hardware.spilling_mode(), named("cassini-hybrid"));
    }

    #[test]
    fn a_parameter_that_the_user_sets_takes_precedence() {
        let set = [("device", "alpu"), ("prq_entries", "128")];
        let lookup = |name: &str| {
            set.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        };
        let params = Params::from_lookup(lookup).unwrap();
        assert_eq!((params.prq_entries, params.umq_entries), (128, 256));
    }
}
