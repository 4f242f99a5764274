// SPDX-License-Identifier: BSD-2-Clause
//! Arithmetic that gives the same bits on every machine: that of the library may take other
//! instructions on another processor, and a model that is trained again would differ.

/// e to the power of x.
///
/// ```text
/// x = k ln 2 + r, |r| <= ln 2 / 2;  e^x = 2^k (1 + r (1 + r / 2 (1 + r / 3 (...))))
/// ```
pub(crate) fn exp(x: f64) -> f64 {
    const LN_2_HIGH: f64 = 6.931_471_803_691_238e-1;
    const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    const TERMS: u32 = 14;
    let x = x.clamp(-700.0, 700.0);
    let k = (x / std::f64::consts::LN_2).round();
    let r = x - k * LN_2_HIGH - k * LN_2_LOW;
    let series = (1..=TERMS).rev().fold(1.0, |sum, term| 1.0 + r / f64::from(term) * sum);
    series * f64::from_bits(((k as i64 + 1023) as u64) << 52)
}

/// 1 / (1 + e^-x): a probability.
pub(crate) fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + exp(-x))
}

pub(crate) fn tanh(x: f64) -> f64 {
    2.0 * logistic(2.0 * x) - 1.0
}

pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).fold(0.0, |sum, (a, b)| sum + a * b)
}

/// The value that this share of some is not above, by nearest rank; 0 of none.
pub(crate) fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = ((sorted.len() as f64 * share).ceil() as usize).max(1);
    sorted.get(rank - 1).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_those_of_the_library() {
        for step in -2000..2000 {
            let x = f64::from(step) * 0.137;
            assert!((exp(x) / x.exp() - 1.0).abs() < 1e-13, "e^{x}");
            assert!((tanh(x) - x.tanh()).abs() < 1e-14, "tanh {x}");
        }
        assert_eq!((exp(0.0), logistic(0.0)), (1.0, 0.5));
        assert!(logistic(-1e9) >= 0.0 && logistic(1e9) <= 1.0);
    }

    #[test]
    fn quantiles_are_by_nearest_rank() {
        assert_eq!(quantile(&[3.0, 1.0, 2.0], 0.5), 2.0);
        assert_eq!(quantile(&[3.0, 1.0, 2.0], 1.0), 3.0);
        assert_eq!(quantile(&[], 0.5), 0.0);
    }
}
