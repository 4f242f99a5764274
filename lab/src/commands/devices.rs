// SPDX-License-Identifier: BSD-2-Clause
//! `tcam devices`: prints the parameters that each value of `FI_TCAM_DEVICE` sets.

use clap::Args;
use nic::models::MODELS;
use nic::params::{PARAMS, PREFIX, Params, types::PoolOwner};

use crate::error::Error;
use crate::text::{Sheet, whole};

/// Lists the devices, or prints all parameters of one device.
///
/// Some devices are real NICs, others are models. --set device=NAME takes each name.
/// docs/devices.md has the source of each value.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tcam devices
  tcam devices connectx
  tcam run --set device=connectx -- mpiexec -n 4 ./app")]
pub(crate) struct Devices {
    /// Prints all parameters of this device.
    #[arg(value_name = "NAME")]
    name: Option<String>,
}

/// Prints the table. Returns 0.
pub(crate) fn devices(arguments: &Devices) -> Result<u8, Error> {
    let Some(name) = &arguments.name else {
        println!("{}", all()?.table());
        println!("pool: entries that all endpoints of a host share");
        println!("`tcam devices NAME` has all parameters of one, --set device=NAME takes it");
        return Ok(0);
    };
    println!("{}", one(name)?.terminal());
    Ok(0)
}

/// Returns the parameters of a device if nothing else is set.
fn params_of(device: &str) -> Result<Params, Error> {
    Ok(Params::from_lookup(|name| (name == "device").then(|| device.to_owned()))?)
}

fn all() -> Result<Sheet, Error> {
    let mut sheet = Sheet::new("", ["device", "PRQ", "UMQ", "overflow", "pool", "refuses"]);
    for model in MODELS {
        let params = params_of(model.name)?;
        let sizes = [params.prq_entries as u64, params.umq_entries as u64];
        let pool = match params.pool {
            PoolOwner::Node => whole(params.pool_entries.into()),
            PoolOwner::Endpoint => "-".to_owned(),
        };
        let refuses = match params.refuse.is_empty() {
            true => "-".to_owned(),
            false => params.text("refuse").replace(',', ",\n"),
        };
        // A device without tables cannot overflow.
        let overflow = if sizes == [0, 0] { "-" } else { params.text("overflow") };
        let [prq, umq] = sizes.map(whole);
        sheet.row([model.name.to_owned(), prq, umq, overflow.to_owned(), pool, refuses]);
    }
    Ok(sheet)
}

/// Returns all parameters that any device sets, with their values on this device.
fn one(device: &str) -> Result<Sheet, Error> {
    let params = params_of(device)?;
    let sets = |device: &str, name: &str| {
        let mut models = MODELS.iter().filter(|model| device.is_empty() || model.name == device);
        models.any(|model| model.sets.iter().any(|(set, _)| *set == name))
    };
    let mut sheet = Sheet::new(device, ["parameter", "value", ""]);
    for param in PARAMS.iter().filter(|param| sets("", param.name)) {
        let from = if sets(device, param.name) { "of the device" } else { "default" };
        sheet.row([
            format!("{PREFIX}{}", param.name.to_uppercase()),
            params.text(param.name).to_owned(),
            from.to_owned(),
        ]);
    }
    Ok(sheet)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documentation_has_the_same_devices() {
        let page = include_str!("../../../docs/devices.md");
        let sheet = all().unwrap();
        for row in &sheet.rows {
            let begins = |line: &&str| {
                line.strip_prefix("| `")
                    .is_some_and(|line| line.starts_with(&format!("{}`", row[0])))
            };
            let line = page.lines().find(begins).expect(&row[0]);
            let cells: Vec<_> = line.split('|').map(str::trim).collect();
            let grouped = |text: &str| whole(text.replace(',', "").parse().unwrap());
            assert_eq!([&row[1], &row[2]], [&grouped(cells[2]), &grouped(cells[3])], "{line}");
            if row[3] != "-" {
                assert!(cells[4].starts_with(&row[3]), "{line}");
            }
            let pool = if row[4] == "-" { "" } else { &row[4] };
            assert!(cells[5].starts_with(pool), "{line}");
            for refused in row[5].split(",\n").filter(|refused| *refused != "-") {
                assert!(cells[6].contains(refused), "{line}");
            }
        }
        assert_eq!(sheet.rows.len(), MODELS.len());
        assert!(sheet.table().lines().all(|line| line.chars().count() <= 80));
    }

    #[test]
    fn a_device_is_shown_with_all_parameters() {
        let sheet = one("connectx").unwrap();
        let row = |name: &str| sheet.rows.iter().find(|row| row[0] == name).unwrap();
        assert_eq!(row("FI_TCAM_OVERFLOW")[1..], ["prefix", "of the device"]);
        assert_eq!(row("FI_TCAM_POOL")[1..], ["endpoint", "default"]);
        assert_eq!(one("generic").unwrap().rows.len(), sheet.rows.len());
        let error = one("conectx").unwrap_err().to_string();
        assert!(error.contains("connectx"), "{error}");
    }
}
