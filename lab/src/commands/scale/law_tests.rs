// SPDX-License-Identifier: BSD-2-Clause

use super::*;

fn points(needs: impl IntoIterator<Item = (u32, u64)>) -> Vec<Point> {
    needs
        .into_iter()
        .map(|(ranks, need)| Point { ranks, least: need, most: need, share: SHARE })
        .collect()
}

/// Returns all ways to add to each of four needs a number from `-most` to `most`.
fn noise(most: i64) -> impl Iterator<Item = [i64; 4]> {
    let values = 2 * most + 1;
    (0..values.pow(4))
        .map(move |number| [0, 1, 2, 3].map(|digit| number / values.pow(digit) % values - most))
}

const SIZES: [u32; 4] = [8, 16, 32, 64];

#[test]
fn each_law_is_found_and_its_need_is_in_the_range() {
    for (law, a, b) in [
        (Law::Logarithmic, 5.0, 100.0),
        (Law::SquareRoot, 0.0, 40.0),
        (Law::Linear, -1.0, 1.0),
        (Law::Linear, 7.0, 5.0),
    ] {
        let need = |ranks: u32| a + b * law.of(ranks);
        for noise in noise(2) {
            let noisy =
                |at: usize| (need(SIZES[at]).round() as u64).saturating_add_signed(noise[at]);
            let points = points([0, 1, 2, 3].map(|at| (SIZES[at], noisy(at))));
            for to in [64, 128, 10_000] {
                let growth = Growth::of(&points, to);
                let [low, high] = growth.predicts.expect("a law fits");
                let range = low as f64 - 0.5..=high as f64 + 0.5;
                assert!(range.contains(&need(to)), "{law:?} {noise:?} at {to}: {growth:?}");
                assert!(growth.fitting().any(|of| of == law), "{law:?} {noise:?}: {growth:?}");
                if noise.iter().all(|of| of.abs() <= 1) {
                    assert_eq!(growth.fitting().collect::<Vec<_>>(), [law], "{noise:?}");
                    assert!(!growth.refused, "{law:?} {noise:?} at {to}: {growth:?}");
                }
            }
        }
    }
}

#[test]
fn a_constant_need_stays_constant() {
    for noise in noise(2).filter(|noise| !noise.is_sorted()) {
        let needs = [0, 1, 2, 3].map(|at| (SIZES[at], 26_u64.saturating_add_signed(noise[at])));
        let growth = Growth::of(&points(needs), 100_000);
        assert!(growth.constant && !growth.refused, "{noise:?}: {growth:?}");
        assert_eq!(growth.fitting().collect::<Vec<_>>(), [Law::Constant]);
        let most = needs.map(|(_, need)| need).into_iter().max();
        assert_eq!(growth.predicts.map(|range| range[1]), most);
    }
    let zero = Growth::of(&points(SIZES.map(|ranks| (ranks, 0))), 100_000);
    assert_eq!((zero.constant, zero.predicts), (true, Some([0, 0])));
    let mut timed = zero;
    timed.widen();
    assert_eq!(timed.predicts, Some([0, 2]));
}

#[test]
fn the_range_has_all_laws_that_fit() {
    let growth = Growth::of(&points([(4, 3), (8, 7), (16, 15)]), 10_000);
    let fitting: Vec<_> = growth.fitting().collect();
    assert_eq!(fitting, [Law::Linear, Law::SquareRoot, Law::Logarithmic]);
    let [low, high] = growth.predicts.unwrap();
    assert!(growth.refused && low < 60 && high >= 9_999, "{growth:?}");
    for fit in growth.laws.iter().filter_map(|fit| fit.predicts) {
        assert!(low <= fit[0] && fit[1] <= high, "{growth:?}");
    }
    // A recording of the size that it names leaves one law.
    let next = growth.apart_at.expect("one size separates the laws");
    let more = points([(4, 3), (8, 7), (16, 15), (next, u64::from(next) - 1)]);
    assert_eq!(Growth::of(&more, 10_000).fitting().collect::<Vec<_>>(), [Law::Linear]);
}

#[test]
fn needs_of_no_law_are_refused() {
    let growth = Growth::of(&points([(4, 10), (8, 80), (16, 30)]), 1_000);
    assert!(growth.refused && growth.predicts.is_none() && growth.fitting().count() == 0);
    // Repeats that differ by as much contradict no law.
    let runs = [(4, 10, 60), (8, 20, 80), (16, 30, 50)];
    let runs = runs.map(|(ranks, least, most)| Point { ranks, least, most, share: SHARE });
    assert_eq!(Growth::of(&runs, 1_000).predicts.map(|range| range[1] >= 80), Some(true));
}

#[test]
fn the_total_is_no_less_than_a_part_and_no_more_than_the_sum() {
    let [prq, umq] = [1, 2].map(|b| Growth::of(&points(SIZES.map(|n| (n, b * u64::from(n)))), 128));
    let varying = [(8, 17, 23), (16, 33, 48), (32, 70, 90)];
    let varying = varying.map(|(ranks, least, most)| Point { ranks, least, most, share: SHARE });
    let mut total = Growth::of(&varying, 128);
    total.bracket(&[&prq, &umq]);
    let [low, high] = total.predicts.unwrap();
    let [prq, umq] = [prq, umq].map(|part| part.predicts.unwrap());
    assert_eq!((low, total.bracket, total.refused), (umq[0], true, false));
    assert!(low <= 256 && (384..=2 * (prq[1] + umq[1])).contains(&high), "{total:?}");
    // If a part has no prediction, neither has the sum.
    let mut refused = Growth::of(&points([(4, 3), (8, 7), (16, 15)]), 10_000);
    let none = Growth::of(&points([(4, 10), (8, 80), (16, 30)]), 10_000);
    refused.bracket(&[&none]);
    assert!(refused.refused && !refused.bracket);
}

#[test]
fn predictions_are_rounded_outwards_to_two_digits() {
    assert_eq!(
        [0.0, -3.0, 31.0, 31.2, 99.5, 101.0, 9_999.0].map(up),
        [0, 0, 31, 32, 100, 110, 10_000]
    );
    assert_eq!([0.0, -3.0, 31.0, 31.8, 101.0, 10_999.0].map(down), [0, 0, 31, 31, 100, 10_000]);
}
