#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Reads the output of `tcam show --format parquet` with pandas. Prints the ranks with the longest queues, the
time at which each queue was longest, and the share of messages that arrived before their receive.

    capacity.py DIRECTORY-OF-THE-EXPORT
"""

import pathlib
import sys

import pandas


def main(directory):
    place = pathlib.Path(directory)
    queues = pandas.read_parquet(place / "queues.parquet")
    worst = queues.sort_values("high_water", ascending=False).groupby("queue").head(3)
    print("Longest queues:")
    print(worst[["rank", "queue", "high_water", "inserts", "spills"]].to_string(index=False))
    lengths = pandas.read_parquet(place / "lengths.parquet")
    whole = lengths.groupby(["rank", "queue", "operations", "us"], as_index=False)["elements"].sum()
    peaks = whole.loc[whole.groupby("queue")["elements"].idxmax()]
    print("\nWhen each queue was longest:")
    print(peaks[["rank", "queue", "us", "elements"]].to_string(index=False))
    kinds = queues.set_index(["rank", "queue"])
    arrivals = kinds.xs("PRQ", level="queue")["searches"].sum()
    early = kinds.xs("UMQ", level="queue")["inserts"].sum()
    print(f"\n{early / max(arrivals, 1):.1%} of {arrivals:,} messages came before their receive.")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
