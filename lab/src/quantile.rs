// SPDX-License-Identifier: BSD-2-Clause
//! Quantiles of measured values.

/// Returns the value below which a part of the sorted values is, interpolated between the two
/// nearest values; 0 without values.
pub(crate) fn quantile(sorted: &[f64], part: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let place = part * last as f64;
    let (low, high) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    low + (high - low) * place.fract()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_interpolated() {
        let values: Vec<_> = (0..=20).map(f64::from).collect();
        assert_eq!(
            [0.0, 0.1, 0.5, 1.0].map(|part| quantile(&values, part)),
            [0.0, 2.0, 10.0, 20.0]
        );
        assert_eq!(quantile(&[1.0, 2.0], 0.5), 1.5);
        assert_eq!(quantile(&[7.0], 0.75), 7.0);
        assert_eq!(quantile(&[], 0.5), 0.0);
    }
}
