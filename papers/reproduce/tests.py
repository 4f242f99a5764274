# SPDX-License-Identifier: BSD-2-Clause
"""Tests of the verdicts and numbers that are computed from measurements. `papers/reproduce.sh check` runs them."""

import unittest

from . import measure, polling, tail_queues
from .colpnp import Numbers, Place, judge
from .colpnp_claims import CLAIMS
from .figure import Cases, Figure, cell, digits, verdict


def claim(pattern, traffic, metric, engine="col-pnp"):
    key = (pattern, traffic, metric, engine)
    return next(of for of in CLAIMS if (of.pattern, of.traffic, of.metric, of.engine) == key)


def numbers_of(of, *values):
    """Returns measured numbers for a claim. `values` are (ranks, value, number of queues made)."""
    numbers = Numbers()
    for ranks, value, made in values:
        place = Place(of.pattern, ranks, of.queues[0], of.traffic, of.engine, "linked", of.k)
        numbers.put("", place, of.metric, "measured", [value])
        numbers.put("", place._replace(traffic="collective"), "queues", "predicted", [made])
        numbers.put("", place._replace(traffic="point-to-point"), "queues", "predicted", [0.0])
    return numbers


class Tables(unittest.TestCase):
    def test_numbers_keep_three_digits(self):
        text = [digits(of) for of in (0.00271, 0.25, 1.456, 54.32, 1234.5)]
        self.assertEqual(text, ["0.0027", "0.25", "1.46", "54.3", "1234"])

    def test_a_figure_is_markdown(self):
        cases = Cases()
        cases.put(("0", "M=1", "list", "ns"), [3.0, 1.0, 2.0, float("nan")])
        figure = Figure("Fig. 0", "Nothing.", ["n", "ours"])
        figure.row(2, figure.marked(cell(cases.get("0", "M=1", "list", "ns")), "Not much."))
        expected = "## Fig. 0\n\nNothing.\n\n| n | ours |\n|---|---|\n| 2 | 2.00 (1.00 to 3.00) [1] |\n\n"
        self.assertEqual(figure.markdown(), expected + "1. Not much.\n\n")

    def test_thirty_per_cent_is_reproduced(self):
        text = [verdict(ours, 2.0) for ours in (2.5, 4.0, 1.0)]
        self.assertEqual(text, ["reproduced", "above, by 2.00", "below, by 2.00"])


class Colpnp(unittest.TestCase):
    def test_up_to_is_the_largest_where_queues_were_made(self):
        of = claim("nbody", "collective", "speedup")  # the paper has 1.09
        for values, text in (
            ([(256, 5.0, 0.0), (512, 1.2, 3.0), (1024, 0.9, 3.0)], "reproduced"),
            ([(512, 2.18, 1.0)], "differs by 2.00, above"),
            ([(512, 1.0, 0.0)], "algorithm inactive"),
            ([(512, 0.545, 0.0)], "algorithm inactive, differs by 2.00, below"),
            ([(64, 1.0, 3.0)], "not measurable here"),
            ([], "not measured"),
        ):
            self.assertEqual(judge(of, numbers_of(of, *values)).verdict, text)

    def test_about_is_the_median_that_is_farthest_off(self):
        of = claim("miniamr", "point-to-point", "speedup")
        judged = judge(of, numbers_of(of, (512, 1.1, 2.0), (1024, 0.25, 2.0), (2048, 3.0, 2.0)))
        found = (judged.verdict, judged.lowest, judged.highest)
        self.assertEqual(found, ("differs by 4.00, below", 0.25, 3.0))

    def test_a_fitted_length_is_no_test(self):
        of = next(of for of in CLAIMS if of.metric == "longest" and of.paper > 1000)
        for ours, text in ((8191.0, "no test: fitted"), (80.0, "differs by 102, below")):
            numbers, place = Numbers(), Place("fds", 4096, "UMQ", "", "list", "linked", of.k)
            numbers.put("", place, "longest", "fitted", [ours])
            self.assertEqual(judge(of, numbers).verdict, text)

    def test_no_engine_is_faster_than_no_matching(self):
        place, spent = Place("fds", 64, "", "", "list", "linked", 8), {"table": {"ns": 0}, "host": {"ns": 5e3}}
        queue = {"measured": dict.fromkeys(("search", "insert", "remove"), spent), "high_water": 5}
        queue |= {"dedicated_collective": 3, "dedicated_point_to_point": 1}
        numbers, lists = Numbers(), [(4.0, 10.0)]
        measure.put_operation(numbers, "11", place, lists, lists, [{"prq": queue, "umq": queue}])
        self.assertEqual(numbers.get("bound", place)["ours"], 4.0)
        own = place._replace(engine="col-pnp")
        measure.put_operation(numbers, "11", own, lists, [(2.0, 10.0)], [{"prq": queue, "umq": queue}])
        self.assertEqual(numbers.get("time speedup", own)["ours"], 2.0)
        self.assertEqual(numbers.made(own), [6.0, 2.0])

    def test_as_many_queues_as_allowed_are_capped(self):
        for made, basis in ((362, "capped"), (86, "fitted")):
            numbers, place = Numbers(), Place("miniamr", 2048, "PRQ", "collective", "col-pnp", "linked", 8)
            measure.put_made(numbers, "9", place, [made])
            self.assertEqual(numbers.get("queues", place)["is"], basis)


class Polling(unittest.TestCase):
    def cases(self, *numbers):
        cases = Cases()
        for key, us in numbers:
            cases.put((*key, "us"), [us, 2 * us, 3 * us])
            cases.put((*key, "gain"), [0.0, 0.5])
        return cases

    def test_gains_and_bounds_are_of_the_quickest_rounds(self):
        cases = self.cases(
            (("2", "4 B, near", "static:1000"), 1.0),
            (("4", "burst 200, near", "every"), 4.0),
            (("4", "burst 200, near", "dynamic:10"), 3.0),
            (("4", "burst 200, far", "every"), 16.0),
        )
        near = polling.gain(cases, "4", "burst 200, near", "dynamic:10")
        self.assertEqual(near, (0.25, 0.0, 0.5))
        self.assertEqual(polling.bound(cases, 200), {"near": 0.5, "both": 0.1})
        self.assertIsNone(polling.bound(cases, 100))

    def test_the_cost_of_a_network_poll_is_separated_from_that_of_shared_memory(self):
        # A poll of shared memory takes 0.1 us and a poll of the network 0.5 us, once in 51 polls.
        numbers = (("every", 0.6), ("static:50", 0.1 + 0.5 / 51))
        costs = polling.poll(self.cases(*((("1", "1 peers", policy), us) for policy, us in numbers)))
        for ours, expected in zip(costs, (0.1, 0.5, 0.0)):
            self.assertAlmostEqual(ours, expected, places=4)

    def test_the_threshold_is_where_it_stays_better(self):
        cases = Cases()
        for size in polling.SIZES:
            copy = 1.0 if size == 64 or size >= 16384 else 3.0
            cases.put(("5", f"latency, {size} B", polling.BUFFERS, "us"), [2.0])
            cases.put(("5", f"latency, {size} B", polling.COPY, "us"), [copy])
        self.assertEqual(polling.threshold(cases, "latency", "us", False), 16384)
        self.assertIsNone(polling.threshold(cases, "bandwidth", "MB/s", True))

    def test_the_lines_of_the_program_are_read(self):
        rounds = []
        for times in ((8.0, 4.0), (6.0, 6.0), (4.0, 3.0)):
            rounds.append({})
            for policy, near in zip(("every", "dynamic:10"), times):
                text = (
                    f"noise\npolling mode=cost peers=2 us=0.5\npolling mode=latency where=near bytes=4 us={near}\n"
                    f"polling mode=discovery where=near burst=200 us={near}\n"
                    "polling mode=discovery where=far burst=200 us=12\npolling: ok ranks=3 near=1 far=1\n"
                )
                measure.read_polling(text, policy, rounds[-1])
        text = "polling mode=overlap where=far bytes=4 asked=10 compute_us=10 us=12.5\n"
        measure.read_polling(text, "network", rounds[0])
        cases = measure.polling_cases(rounds)
        for key, expected in (
            (("1", "2 peers", "every", "us"), (0.5, 0.5, 0.5)),
            (("2", "4 B, near", "dynamic:10", "us"), (4.0, 3.0, 6.0)),
            (("2", "4 B, near", "dynamic:10", "gain"), (0.25, 0.0, 0.5)),
            (("4", "burst 200, both", "every", "us"), (9.0, 8.0, 10.0)),
            (("6", "4 B, 10 us", "network", "ratio"), (0.8, 0.8, 0.8)),
        ):
            self.assertEqual(tuple(cases.get(*key)[of] for of in ("ours", "lowest", "highest")), expected)
        self.assertEqual(cases.get("4", "burst 200, both", "dynamic:10", "gain")["paper"], 0.45)


class TailQueues(unittest.TestCase):
    def found(self, line, *ratios):
        """Returns the verdict of the row whose name contains `line`. `ratios` are (lists, length, ratio)."""
        cases = Cases()
        for lists, length, ratio in ratios:
            rates = {tail_queues.ONE: [1.0], tail_queues.TAILS: [ratio], tail_queues.BINNED: [1.0]}
            measure.put_row(cases, (lists, "linked", "mcs", 2, length), rates, 0)
        rows = tail_queues.verdicts(cases).rows
        return next(row[4] for row in rows if line in row[1]).split(" [")[0]

    def test_a_ratio_that_is_no_gain_is_not_reproduced(self):
        for ours, text, explained in (
            (0.99, "differs: no gain", True),
            (1.20, "reproduced, +0 %", False),
            (1.02, "reproduced, -15 %", True),
            (2.4, "above, by 2.00", True),
        ):
            found, reason = tail_queues.judge(ours, 1.2)
            self.assertEqual((found, reason is not None), (text, explained))

    def test_the_largest_gain_is_where_it_is_nearly_reached(self):
        for of_128, text in ((1.95, "reproduced"), (2.85, "differs")):
            ratios = (("both", 1, 1.2), ("both", 32, 1.9), ("both", 128, of_128))
            self.assertEqual(self.found("length of the largest gain", *ratios), text)
            self.assertEqual(self.found("on KNC", *ratios), "no verdict")

    def test_receives_only_gain_less_than_both_lists(self):
        for receives, gain, beside in (
            (1.4, "reproduced", "reproduced"),
            (1.05, "differs", "reproduced"),
            (2.0, "reproduced", "differs"),
        ):
            ratios = (("both", 32, 1.9), ("prq", 32, receives), ("prq", 64, receives))
            self.assertEqual(self.found("only: gain", *ratios), gain)
            self.assertEqual(self.found("beside both", *ratios), beside)

    def test_rows_are_chosen_by_a_part_of_their_name(self):
        of = lambda only: tuple(map(len, measure.tail_queues_rows(only)))
        self.assertEqual(of("both,linked,mcs,2,1,"), (1, 0))
        self.assertEqual(of("linked,mcs,2,"), (2 * 13, 0))
        self.assertEqual(of("table-2"), (0, 3))
        self.assertEqual(of(""), (2 * 2 * 2 * 4 * 13, 3))
        self.assertRaises(SystemExit, measure.tail_queues_rows, "both,linked,mcs,3")

    def test_turns_that_were_made_again_are_counted(self):
        cases = Cases()
        cases.put(("3", "both,linked,mcs,2,8", "", "again"), [4.0])
        cases.put(("7", "prq,linked,parking-lot,2,8", "", "disturbed"), [1000.0])
        text = tail_queues.made_again(cases)
        self.assertIn("repeated 1,004 turns in 2 rows. 1,000 of them are of `parking-lot`", text)
        self.assertTrue(text.endswith("the limit: prq,linked,parking-lot,2,8."))
