# SPDX-License-Identifier: BSD-2-Clause
"""Compares tables and figures of papers with our results and writes verdicts: see papers/README.md."""

import argparse
import pathlib
import re
import sys

from . import colpnp, hash_table, kmeans, measure, polling, tail_queues

PAPERS = {
    "colpnp": (colpnp, measure.measure_colpnp),
    "kmeans": (kmeans, measure.measure_kmeans),
    "hash": (hash_table, measure.measure_hash),
    "polling": (polling, measure.measure_polling),
    "tail-queues": (tail_queues, measure.measure_tail_queues),
}
PLACE = pathlib.Path(__file__).resolve().parents[1]
PAGE = PLACE / "papers.md"


def with_verdicts(text, name, figure):
    """Returns the text of papers.md with new verdicts on one paper."""
    begin, end = (f"<!-- verdicts of {name}: {at} -->\n" for at in ("begin", "end"))
    _, section = figure.markdown().split("\n", 1)
    pattern = re.escape(begin) + ".*?" + re.escape(end)
    return re.sub(pattern, lambda _: begin + section + end, text, count=1, flags=re.DOTALL)


def check():
    """Renders each page and its verdicts from the numbers of its CSV file. Returns a list of the pages and
    verdicts that differ from their files, and of the pages that have a difference without a reason."""
    wrong, papers = [], PAGE.read_text(encoding="utf-8")
    for name, (paper, _) in PAPERS.items():
        numbers = paper.read(PLACE / f"{name}.csv")
        page = paper.render(numbers)
        if page != (PLACE / f"{name}.md").read_text(encoding="utf-8"):
            wrong.append(f"{name}.md")
        if papers != with_verdicts(papers, name, paper.figures(numbers)[0]):
            wrong.append(f"papers.md, verdicts of {name}")
        if colpnp.UNKNOWN in page:
            wrong.append(f"{name}.md, a difference without a reason")
    return wrong


def main():
    parser = argparse.ArgumentParser(prog="papers/reproduce.sh", description=__doc__)
    parser.add_argument("paper", choices=[*PAPERS, "check"])
    parser.add_argument("--ms", type=int, help="ms for each engine, workload and seed (100; tail-queues 5)")
    parser.add_argument("--seed", type=int, default=1, help="the first seed (1)")
    parser.add_argument("--seeds", type=int, help="number of seeds, MPI runs or turns (5; tail-queues 10)")
    parser.add_argument("--only", default="", help="only rows of tail-queues or runs of polling with this in their name")
    parser.add_argument("--out", type=pathlib.Path, help="write to this directory, and leave papers.md as it is")
    parser.add_argument("--from", dest="csv", type=pathlib.Path, help="render the numbers of an earlier run; measure nothing")
    # The words after the first -- are the command.
    at = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    arguments, command = parser.parse_args(sys.argv[1:at]), sys.argv[at + 1 :]
    if arguments.paper == "check":
        wrong = check()
        print("\n".join(f"papers/{of} is out of date" for of in wrong) or "All pages are up to date")
        return bool(wrong)
    name = arguments.paper
    paper, measured = PAPERS[name]
    if arguments.csv:
        numbers = paper.read(arguments.csv)
    else:
        ms, seeds = (5, 10) if name == "tail-queues" else (100, 5)
        given = (arguments.ms or ms, arguments.seed, arguments.seeds or seeds, arguments.only, command)
        numbers = measured(measure.Effort(*given))
    out = arguments.out or PLACE
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{name}.md").write_text(paper.render(numbers), encoding="utf-8")
    (out / f"{name}.csv").write_text(numbers.text(), encoding="utf-8")
    if not arguments.out:
        papers = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(with_verdicts(papers, name, paper.figures(numbers)[0]), encoding="utf-8")
    print(f"{out / name}.md, {out / name}.csv")
    return 0


if __name__ == "__main__":
    sys.exit(main())
