// SPDX-License-Identifier: BSD-2-Clause
//! The devices that `FI_TCAM_DEVICE` names. Each is a set of values for other parameters;
//! docs/devices.md has the sources. A parameter that the user sets takes precedence.

/// A device, or a preset of costs.
#[derive(Clone, Copy, Debug)]
pub struct Model {
    /// Name, as in `FI_TCAM_DEVICE` or `FI_TCAM_TIMING`.
    pub name: &'static str,
    /// Names and values of the parameters that it sets.
    pub sets: &'static [(&'static str, &'static str)],
}

/// Every device.
pub const MODELS: [Model; 9] = [
    Model { name: "generic", sets: &[] },
    Model {
        name: "cassini-hybrid",
        sets: &[
            ("prq_entries", "15360"),
            ("umq_entries", "15360"),
            ("overflow", "sticky"),
            ("pool", "node"),
            ("pool_entries", "65536"),
            ("pool_engines", "4"),
            ("pool_max", "15360"),
        ],
    },
    Model {
        name: "cassini-hardware",
        sets: &[
            ("prq_entries", "15360"),
            ("umq_entries", "15360"),
            ("overflow", "flow-control"),
            ("flow_timeout", "5000"),
            ("exhausted", "fail"),
            ("pool", "node"),
            ("pool_entries", "65536"),
            ("pool_engines", "4"),
            ("pool_max", "15360"),
        ],
    },
    Model { name: "cassini-software", sets: &[("prq_entries", "0"), ("umq_entries", "0")] },
    Model {
        name: "connectx",
        sets: &[
            ("prq_entries", "1023"),
            ("umq_entries", "0"),
            ("overflow", "prefix"),
            ("refuse", "any-source,non-contiguous"),
            ("refuse_below", "1024"),
            ("force_above", "8192"),
        ],
    },
    Model { name: "portals4-ref", sets: &[("prq_entries", "1024"), ("umq_entries", "1024")] },
    Model { name: "alpu", sets: &[("prq_entries", "256"), ("umq_entries", "256")] },
    Model {
        name: "uet",
        sets: &[("prq_entries", "65536"), ("umq_entries", "0"), ("refuse", "any-tag")],
    },
    Model { name: "ideal", sets: &[("prq_entries", "65536"), ("umq_entries", "65536")] },
];

/// Names of the devices.
pub(crate) const NAMES: [&str; MODELS.len()] = names(&MODELS);

/// Returns the names of devices or presets of costs.
pub(crate) const fn names<const N: usize>(models: &[Model; N]) -> [&'static str; N] {
    let mut names = [""; N];
    let mut index = 0;
    while index < N {
        names[index] = models[index].name;
        index += 1;
    }
    names
}

/// Returns the device that models the same NIC in another mode, which spills to the host. Returns
/// `None` unless `device` models a NIC in a mode that holds senders back and then fails.
#[must_use]
pub fn spilling_mode(device: &str) -> Option<&'static str> {
    (device == "cassini-hardware").then_some("cassini-hybrid")
}

/// Returns the value that the device or preset `name` sets for a parameter, if any.
pub(crate) fn preset(models: &[Model], name: &str, param: &str) -> Option<&'static str> {
    let model = models.iter().find(|model| model.name == name)?;
    model.sets.iter().find(|(name, _)| *name == param).map(|(_, value)| *value)
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
    fn names_are_those_of_the_models() {
        let all = MODELS.map(|model| model.name);
        assert_eq!(names(&MODELS), all);
        let modes = all.map(spilling_mode);
        let hardware = all.iter().position(|name| *name == "cassini-hardware").unwrap();
        assert_eq!(modes[hardware], Some("cassini-hybrid"));
        assert_eq!(modes.into_iter().flatten().count(), 1);
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
