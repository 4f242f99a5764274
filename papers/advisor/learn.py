#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Learns from samples.csv and costs.csv which of two host engines is faster, and measures how often the answers
are right for streams that the models did not learn from. The result is a section of papers/papers.md."""

import argparse
import collections
import math
import re
import sys
import warnings

import joblib
import numpy as np
import sklearn
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import VarianceThreshold
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import LinearSVC

from streams import HERE, WORK, read

PAGE = HERE.parent / "papers.md"
BEGIN, END = "<!-- validation: begin -->\n\n", "\n<!-- validation: end -->"
# The answer to a question is yes if an engine saves at least the share WORTH of the time of the other engine. If the
# saved share is within CLEAR of WORTH, the answer may be noise.
WORTH, CLEAR = 0.05, 0.05
TOLERANCE = 1.5  # percentage points between the accuracies of two machines
DECAY = 0.003
NAMES = ("logistic regression", "SVM", "MLP")
STORAGES = ("packed", "linked")
CELLS = [at for at, name in enumerate(WORK) if name.startswith("cells_")]
HOST, FOUND, NOT_FOUND, QUEUES = (
    WORK.index(of) for of in ("host_inserts", "host_found", "host_not_found", "dedicated")
)

Asked = collections.namedtuple("Asked", "sample inputs yes ratio")


def contenders(samples):
    return list(samples[0].costs)


def questions(samples):
    """Returns pairs (engine, other). The question is whether the engine is faster than the other."""
    engines = list(dict.fromkeys(engine for engine, _ in contenders(samples)))
    return [(engine, other) for other in ("list", "col-pnp") for engine in engines if engine != other]


def fit_costs(samples):
    """Returns the nanoseconds of each unit of work by contender. They are not negative and minimize the squares of
    the relative errors."""
    models = {}
    for of in contenders(samples):
        rows = np.array([sample.costs[of][1] / sample.costs[of][0] for sample in samples])
        scale = rows.max(0)
        scale[scale == 0] = 1
        model = LinearRegression(positive=True, fit_intercept=False)
        models[of] = model.fit(rows / scale, np.ones(len(rows))).coef_ / scale
    return models


def predict(models, samples):
    """Returns the predicted nanoseconds of each sample, by contender."""
    return [{of: models[of] @ work for of, (_, work) in sample.costs.items()} for sample in samples]


def predict_left_out(samples, parts):
    times = [None] * len(samples)
    for part in sorted(set(parts)):
        models = fit_costs([sample for sample, of in zip(samples, parts) if of != part])
        for at in (at for at, of in enumerate(parts) if of == part):
            (times[at],) = predict(models, [samples[at]])
    return times


def ask(samples, times, question):
    """Asks the question for every sample and storage, except where no element reached the host. Returns the inputs of
    the classifiers, a row for each, with the measured answers (Asked)."""
    rows = []
    for at, sample in enumerate(samples):
        for queue in STORAGES:
            own, other = ((engine, queue) for engine in question)
            works = [sample.costs[of][1] for of in (own, other)]
            if works[1][HOST] == 0:
                continue
            cells = [math.log1p(of[CELLS].sum() / max(of[FOUND] + of[NOT_FOUND], 1)) for of in works]
            queues = math.log1p(works[0][QUEUES] / max(works[0][0], 1))
            time = math.log(max(times[at][own], 1) / max(times[at][other], 1))
            inputs = [*sample.features, cells[0], cells[0] - cells[1], queues, queue == "linked", time]
            rows.append((at, inputs, sample.costs[own][0] / sample.costs[other][0]))
    at, inputs, ratio = map(np.array, zip(*rows))
    return Asked(at, inputs, ratio <= 1 - WORTH, ratio)


def scores(inputs, yes, others):
    """Trains three classifiers with `inputs` and `yes`. Returns their scores of `others`: above 0 is yes."""
    if yes.all() or not yes.any():
        return np.full((len(others), len(NAMES)), 1.0 if yes.any() else -1.0)
    warnings.simplefilter("ignore", ConvergenceWarning)
    # Rare answers count as much as frequent ones, up to four times.
    weights = {answer: min(len(yes) / 2 / (yes == answer).sum(), 4) for answer in (False, True)}
    cut = FunctionTransformer(np.clip, kw_args={"a_min": -4, "a_max": 4})
    scale = make_pipeline(VarianceThreshold(1e-12), StandardScaler(), cut)
    inputs, others = scale.fit_transform(inputs), scale.transform(others)
    logistic = LogisticRegression(C=1 / DECAY / len(yes), class_weight=weights, max_iter=1000)
    svm = LinearSVC(loss="hinge", class_weight=weights, max_iter=5000, random_state=1)
    linear = [of.fit(inputs, yes).decision_function(others) for of in (logistic, svm)]
    mlp = MLPClassifier(
        6, activation="tanh", solver="lbfgs", alpha=DECAY * len(yes), max_iter=150, random_state=1
    )
    mlp.fit(inputs, yes, sample_weight=np.where(yes, weights[True], weights[False]))
    no, probability = mlp.predict_log_proba(others).T
    return np.array([*linear, probability - no]).T


def platt(known, yes, others):
    """Returns the probabilities of yes for the scores `others` by classifier. They are learned from known scores
    and their answers `yes` (Platt, 1999)."""
    # Platt's targets: a finite number of answers gives no certainty.
    targets = np.where(yes, (yes.sum() + 1) / (yes.sum() + 2), 1 / ((~yes).sum() + 2))
    weights, both = np.concatenate([targets, 1 - targets]), np.repeat([True, False], len(yes))
    probabilities = []
    for score, other in zip(known.T, others.T):
        model = LogisticRegression(C=1000).fit(np.tile(score, 2)[:, None], both, weights)
        model.coef_ = model.coef_.clip(0)
        probabilities.append(model.predict_proba(other[:, None])[:, 1])
    return np.array(probabilities).T


def judge(samples, times, parts, question):
    """Returns the rows of the question (Asked), their scores, and their probabilities. `parts` has the part of each
    sample: its kind of stream, or one of five parts of all streams. No row is judged by models that learned from
    its part."""
    asked, parts = ask(samples, times, question), np.array(parts)
    part = parts[asked.sample]
    of_rows, probabilities = np.zeros((2, len(part), len(NAMES)))
    for at in np.unique(part):
        out, rest = part == at, part != at
        of_rows[out] = scores(asked.inputs[rest], asked.yes[rest], asked.inputs[out])
    for at in np.unique(part):
        out, rest = part == at, part != at
        probabilities[out] = platt(of_rows[rest], asked.yes[rest], of_rows[out])
    return asked, of_rows, probabilities


def judge_all(samples, times, parts):
    """Returns what judge returns, for every question."""
    each = (joblib.delayed(judge)(samples, times, parts, of) for of in questions(samples))
    return joblib.Parallel(n_jobs=-1)(each)


def table(head, rows):
    cells = [head, *rows]
    lines = ["| " + " | ".join(map(str, row)) + " |\n" for row in cells]
    return lines[0] + "|---" * len(head) + "|\n" + "".join(lines[1:]) + "\n"


def percent(of):
    return f"{100 * np.mean(of):.1f}" if len(of) else "none"


def answer(judged, asked):
    """Returns the probabilities of the rows `asked`, which were not used for learning. `judged` is a result of
    judge for the same question."""
    known, of_rows, _ = judged
    return platt(of_rows, known.yes, scores(known.inputs, known.yes, asked.inputs))


class Answers:
    """All answers to several judged questions: measured answers, and the probabilities of yes."""

    def __init__(self, samples, judged):
        self.yes = np.concatenate([asked.yes for asked, *_ in judged])
        self.each = np.concatenate([probabilities for *_, probabilities in judged])
        self.together = self.each.mean(1)
        self.right = (self.together > 0.5) == self.yes
        ratio = np.concatenate([asked.ratio for asked, *_ in judged])
        self.clear = abs(ratio - (1 - WORTH)) > CLEAR
        self.kind = np.concatenate([[samples[at].kind for at in asked.sample] for asked, *_ in judged])

    def confusions(self):
        """Yields name, accuracy and the four counts of each classifier, of all together, and of the clear
        answers."""
        everything = np.ones(len(self.yes), bool)
        rows = [(name, of, everything) for name, of in zip(NAMES, self.each.T)]
        rows += [("together", self.together, everything), ("together, clear", self.together, self.clear)]
        for name, probability, kept in rows:
            answer, yes = probability[kept] > 0.5, self.yes[kept]
            counts = [(answer & yes), (answer & ~yes), (~answer & yes), (~answer & ~yes)]
            yield name, percent(answer == yes), *(of.sum() for of in counts)


def answers_of(samples, by_kind, by_turn):
    rows = []
    for (engine, other), kind, turn in zip(questions(samples), by_kind, by_turn):
        kind, turn = Answers(samples, [kind]), Answers(samples, [turn])
        accuracies = [percent(of) for a in (kind, turn) for of in (a.right, a.right[a.clear])]
        rows.append((f"{engine} against {other}", len(kind.yes), kind.yes.sum(), *accuracies))
    text = (
        "The question is whether an engine is at least 5 % faster than the other one on the same storage. The "
        "table has the accuracy in per cent of the three classifiers together. An answer is *clear* if the "
        "engine is slower, or faster by more than 10 %: noise does not decide it.\n\n"
    )
    head = ("question", "asked", "yes", "kinds left out", "clear", "streams left out", "clear")
    text += table(head, rows)
    kinds, turns = Answers(samples, by_kind), Answers(samples, by_turn)
    head = ("classifier", "left out", "accuracy, %", "yes, was", "yes, was not", "no, was", "no, was not")
    both = (("kinds", kinds), ("streams", turns))
    text += table(head, [(name, out, *of) for out, a in both for name, *of in a.confusions()])
    each = [(name, kinds.kind == name) for name in sorted(set(kinds.kind))]
    rows = [(name, percent(kinds.right[of]), percent(kinds.right[of & kinds.clear])) for name, of in each]
    return text + table(("kind left out", "accuracy, %", "clear"), rows) + calibration(kinds)


def calibration(kinds):
    bins, rows, off = (kinds.together * 5).astype(int).clip(0, 4), [], 0
    for at in range(5):
        said, yes = kinds.together[bins == at], kinds.yes[bins == at]
        rows.append((f"{20 * at} to {20 * at + 20} %", len(yes), percent(said), percent(yes)))
        off += abs(said.sum() - yes.sum())
    text = (
        "Calibration, kinds left out: of the answers with a probability of yes in a range, the share whose "
        "measured answer is yes.\n\n"
    )
    text += table(("probability", "answers", "mean probability, %", "was yes, %"), rows)
    return text + f"Expected calibration error: {off / len(bins):.3f}.\n\n"


def times_of(samples, times):
    rows, sentences = [], ""
    for out, predicted in zip(("kinds", "streams"), times):
        errors = {
            of: [abs(time[of] / sample.costs[of][0] - 1) for sample, time in zip(samples, predicted)]
            for of in contenders(samples)
        }
        named = [(", ".join(of), each) for of, each in errors.items()] + [("all", sum(errors.values(), []))]
        for name, each in named:
            middle, most = (f"{100 * np.quantile(each, share):.1f}" for share in (0.5, 0.9))
            rows.append((name, out, middle, most, percent(np.array(each) <= 0.2)))
        regrets = []
        for sample, time in zip(samples, predicted):
            best = min(ns for ns, _ in sample.costs.values())
            regrets.append(100 * (sample.costs[min(time, key=time.get)][0] / best - 1))
        sentences += (
            f"{out.capitalize()} left out: the engine with the shortest predicted time takes "
            f"{np.quantile(regrets, 0.5):.1f} % more time than the fastest one in the median, and at most "
            f"{np.quantile(regrets, 0.9):.1f} % in nine of ten streams.\n\n"
        )
    head = ("engine", "left out", "median, %", "90 % are within, %", "within 20 %, % of them")
    text = "Relative error of predicted times:\n\n"
    return text + table(head, rows) + sentences.removesuffix("\n")


def validate(samples):
    """Learns and validates the models. Returns the text of the section."""
    kinds, turns = [sample.kind for sample in samples], [at % 5 for at in range(len(samples))]
    times = [predict_left_out(samples, parts) for parts in (kinds, turns)]
    by_kind, by_turn = (judge_all(samples, *of) for of in zip(times, (kinds, turns)))
    text = (
        f"The models learned from {len(samples)} generated streams of {len(set(kinds))} kinds. Each stream was "
        f"replayed to {len(contenders(samples))} combinations of engine and storage. `papers/advisor.sh write` "
        f"writes this section with scikit-learn {sklearn.__version__} and numpy {np.__version__}. *Kinds left "
        "out*: classifiers that learned from the other kinds only judge all streams of a kind. *Streams left "
        "out*: classifiers judge a fifth of the streams, and the other streams include the same kinds, as in "
        "the paper.\n\n"
    )
    return text + answers_of(samples, by_kind, by_turn) + times_of(samples, times)


def differences(old, new):
    """Returns a list of the differences between two texts of the section: in words, or in accuracies beyond the
    tolerance."""
    number = r"\d+(?:\.\d+)*"
    if re.sub(number, "", old) != re.sub(number, "", new):
        return ["words"]
    accuracies = [re.findall(r"\d+\.\d\b", page[page.index("| question") : page.index("Calibration")])
                  for page in (old, new)]  # fmt: skip
    return [f"{a} % in the page, {b} % now" for a, b in zip(*accuracies, strict=True)
            if abs(float(a) - float(b)) > TOLERANCE]  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("--write", action="store_true", help="learn and write the section")
    group.add_argument("--check", action="store_true", help="learn and compare with the section")
    arguments = parser.parse_args()
    text = PAGE.read_text()
    before, rest = text.split(BEGIN)
    old, after = rest.split(END)
    new = validate(list(read()))
    if arguments.write:
        PAGE.write_text(before + BEGIN + new + END + after)
        return 0
    found = differences(old, new)
    for difference in found:
        print(f"{PAGE.name}: {difference}")
    print(f"{'FAILED' if found else 'passed'}: comparison of the page with the models learned now")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
