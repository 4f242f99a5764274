#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Chooses a small set of combinations of parameter values, in which every pair of values of two
parameters occurs. Most defects depend on one value, or on two values together. The number of
combinations grows with the product of the two longest lists of values, not with the product of all
lists. If this file is run as a program, it tests itself."""

import collections
import itertools
import random


def pairs(row):
    """Returns all pairs of two (parameter, value) items of a combination."""
    return set(itertools.combinations(sorted(row.items(), key=repr), 2))


def complete(row, parameters, allowed, score):
    """Returns the row with a value for each missing parameter: of the values that lead to an allowed
    combination, the one with the lowest score. Returns None if no combination with the row is
    allowed."""
    if not allowed(row):
        return None
    missing = [name for name in parameters if name not in row]
    if not missing:
        return row
    longer = [row | {missing[0]: value} for value in dict.fromkeys(parameters[missing[0]])]
    longer.sort(key=lambda candidate: score(candidate, missing[0]))
    tries = (complete(candidate, parameters, allowed, score) for candidate in longer)
    return next((found for found in tries if found), None)


def combinations(parameters, forbidden=lambda row: False):
    """Returns combinations, as dictionaries. `parameters` contains the list of values of each
    parameter. `forbidden` returns true if a combination is impossible. It is also called with
    combinations that lack parameters. If several values add the same number of new pairs, a value
    that is listed N times is chosen N times as often."""
    wanted = {}
    for one, other in itertools.combinations(parameters, 2):
        for values in itertools.product(parameters[one], parameters[other]):
            wanted |= dict.fromkeys(pairs(dict(zip((one, other), values))))
    order, wanted = list(wanted), set(wanted)
    found, uses = [], collections.Counter()

    def score(row, name):
        share = uses[name, row[name]] / parameters[name].count(row[name])
        return -len(pairs(row) & wanted), share

    for pair in order:
        if pair not in wanted:
            continue
        row = complete(dict(pair), parameters, lambda row: not forbidden(row), score)
        if row:
            found.append({name: row[name] for name in parameters})
            wanted -= pairs(row)
            uses.update(row.items())
    return found


def absent(found, parameters, forbidden=lambda row: False):
    """Returns the pairs of values that occur in an allowed combination, but in none of `found`.
    Enumerates all combinations."""
    rows = [dict(zip(parameters, values)) for values in itertools.product(*parameters.values())]
    possible = set().union(*(pairs(row) for row in rows if not forbidden(row)))
    return possible - set().union(*map(pairs, found))


def main():
    chance = random.Random(1)
    for _ in range(200):
        sizes = [chance.randint(1, 5) for _ in range(chance.randint(2, 5))]
        parameters = {f"p{at}": list(range(size)) for at, size in enumerate(sizes)}
        ban = [
            {name: chance.choice(parameters[name]) for name in chance.sample(list(parameters), 2)}
            for _ in range(chance.randint(0, 3))
        ]

        def forbidden(row, ban=ban):
            return any(one.items() <= row.items() for one in ban)

        found = combinations(parameters, forbidden)
        assert not absent(found, parameters, forbidden), (parameters, ban)
        assert not any(map(forbidden, found)) and all(list(row) == list(parameters) for row in found)
        assert found == combinations(parameters, forbidden), "another list the second time"
        largest = sorted(sizes)[-2:]
        assert ban or len(found) <= 2 * largest[0] * largest[1] + 2, (sizes, len(found))
    assert absent([], {"a": [1], "b": [2]}) == {(("a", 1), ("b", 2))}
    print("pairwise: 200 sets of parameters, every pair that is allowed occurs, and no other")


if __name__ == "__main__":
    main()
