#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compares measured replays of recorded programs, rank by rank, with models that learned from generated
streams only. Prints a Markdown table."""

import pathlib
import sys
import tempfile

import numpy as np

from learn import Answers, answer, ask, fit_costs, judge_all, percent, predict, predict_left_out, questions, table
from measure import generate
from streams import measure, read

# The time of this stream shows how much slower this machine is than the machine that measured the training set.
CALIBRATION = "halo --ranks 27 --seed 1; 0 entries"


def slowness(tcam, streams):
    (there,) = (stream for stream in streams if stream.name == CALIBRATION)
    with tempfile.TemporaryDirectory() as place:
        trace = generate(tcam, CALIBRATION.partition(";")[0].split(), place)
        here = measure(tcam, CALIBRATION, "halo", trace, 0)
    return np.median([here.costs[of][0] / there.costs[of][0] for of in there.costs])


def row(name, errors, answers):
    right, clear = (f"{of.sum()} of {len(of)}" for of in (answers.right, answers.right[answers.clear]))
    return name, percent(errors <= 0.2), f"{100 * np.median(errors):.1f}", right, clear, answers.yes.sum()


def main():
    tcam, place = sys.argv[1:]
    streams = list(read())
    kinds = [stream.kind for stream in streams]
    known = judge_all(streams, predict_left_out(streams, kinds), kinds)
    models, slower = fit_costs(streams), slowness(tcam, streams)
    rows, all_errors, all_samples, all_judged = [], [], [], []
    for program in sorted(pathlib.Path(place).iterdir()):
        traces = sorted(program.glob("traces-*/*.tagged.trace"))
        samples = [measure(tcam, trace.name, program.name, trace, 0) for trace in traces]
        samples = [sample for sample in samples if sample]
        times = [{of: slower * ns for of, ns in each.items()} for each in predict(models, samples)]
        errors = [abs(ns / s.costs[of][0] - 1) for s, each in zip(samples, times) for of, ns in each.items()]
        asked = [ask(samples, times, question) for question in questions(streams)]
        judged = [(of, None, answer(by, of)) for by, of in zip(known, asked)]
        rows.append(row(program.name, np.array(errors), Answers(samples, judged)))
        all_errors, all_samples, all_judged = all_errors + errors, all_samples + samples, all_judged + judged
    rows.append(row("all", np.array(all_errors), Answers(all_samples, all_judged)))
    head = ("program", "times within 20 %, %", "off by, median %", "answers right", "clear ones", "yes")
    print(table(head, rows), end="")


if __name__ == "__main__":
    main()
