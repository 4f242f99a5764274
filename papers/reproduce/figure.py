# SPDX-License-Identifier: BSD-2-Clause
"""Markdown tables, the numbers of a CSV file, and verdicts on the numbers."""

import csv
import io
import math

TOLERANCE = 0.3  # fraction of the paper's number


def digits(value):
    """Formats a time or a ratio with three significant digits."""
    size = abs(value)
    places = 4 if size < 0.1 else 2 if size < 9.95 else 1 if size < 99.5 else 0
    return f"{value:.{places}f}"


def whole(value):
    """Formats a count with a comma between thousands."""
    return f"{int(value):,}"


def plain(value):
    """Formats a number with as few digits as possible: 80, 1.15."""
    return repr(float(value)).removesuffix(".0")


def decimal(value):
    """Formats a number without an exponent."""
    text = repr(value)
    return f"{value:.5f}" if "e-" in text else text


def agree(ours, paper):
    return abs(ours - paper) <= TOLERANCE * paper


def factor(ours, paper):
    """Returns the larger number divided by the smaller one."""
    return max(ours / paper if paper else math.inf, paper / ours if ours else math.inf)


def verdict(ours, paper):
    if agree(ours, paper):
        return "reproduced"
    return f"{'above' if ours > paper else 'below'}, by {digits(factor(ours, paper))}"


def held(holds):
    return "reproduced" if holds else "differs"


def ranged(ours, lowest, highest, shown=digits):
    """Formats a median with its range."""
    ends = [shown(lowest), shown(highest)]
    return shown(ours) + (f" ({ends[0]} to {ends[1]})" if ends[0] != ends[1] else "")


def cell(row, shown=digits):
    """Formats the number of a row with its range. Returns an empty text without a row."""
    return ranged(row["ours"], row["lowest"], row["highest"], shown) if row else ""


class Figure:
    """A section of a page: a title, a note, a table and footnotes."""

    def __init__(self, title, note, header):
        self.title, self.note, self.header = title, note, header
        self.rows, self.footnotes = [], []

    def row(self, *cells):
        self.rows.append([str(of) for of in cells])

    def marked(self, text, reason):
        """Adds a footnote with the reason and returns the text with its number. Returns the text alone if there
        is no reason."""
        if not reason:
            return text
        if reason not in self.footnotes:
            self.footnotes.append(reason)
        return f"{text} [{self.footnotes.index(reason) + 1}]"

    def markdown(self):
        lines = [f"## {self.title}\n", f"{self.note}\n"]
        lines += [f"| {' | '.join(of)} |" for of in [self.header]]
        lines.append("|" + "---|" * len(self.header))
        lines += [f"| {' | '.join(of)} |" for of in self.rows]
        lines.append("")
        if self.footnotes:
            lines += [f"{at}. {of}" for at, of in enumerate(self.footnotes, 1)] + [""]
        return "\n".join(lines) + "\n"


def page(preface, figures):
    return (preface + "".join(figure.markdown() for figure in figures)).rstrip() + "\n"


def rounded(value):
    """Rounds to five decimals. Further decimals are noise."""
    return math.copysign(math.floor(abs(value) * 1e5 + 0.5), value) / 1e5


class Table:
    """The rows of a CSV file. Pages and verdicts are rendered from these rows alone."""

    NUMBERS = {"runs": int, "ours": float, "lowest": float, "highest": float}

    def __init__(self, columns, rows=()):
        self.columns, self.rows, self.index = columns, [], {}
        self.keys = [of for of in columns if of not in {**self.NUMBERS, "paper": 0, "is": 0}]
        for row in rows:
            self.add(row)

    def add(self, row):
        self.rows.append(row)
        self.index.setdefault(tuple(str(row[of]) for of in self.keys), row)

    def put(self, key, values, **more):
        """Adds a row with the median and the range of the finite values, if there are any."""
        values = sorted(of for of in values if math.isfinite(of))
        if values:
            count = len(values)
            middle = (values[(count - 1) // 2] + values[count // 2]) / 2
            numbers = map(rounded, (middle, values[0], values[-1]))
            row = dict(zip(self.keys, map(str, key))) | more
            row |= {"runs": count} | dict(zip(("ours", "lowest", "highest"), numbers))
            self.add(row)

    @classmethod
    def read(cls, path):
        with open(path, newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            rows = list(reader)
        if not rows:
            raise SystemExit(f"{path} has no numbers")
        for row in rows:
            row |= {name: of(row[name]) for name, of in cls.NUMBERS.items()}
            if "paper" in row:
                row["paper"] = float(row["paper"]) if row["paper"] else None
        return cls(reader.fieldnames, rows)

    def text(self):
        """Returns the contents of the CSV file."""
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(self.columns)
        for row in self.rows:
            values = [row.get(name) for name in self.columns]
            writer.writerow([decimal(of) if isinstance(of, float) else of for of in values])
        return file.getvalue()


class Cases(Table):
    """Numbers by figure, case, engine and metric. Some have the paper's number beside them."""

    COLUMNS = ["figure", "case", "engine", "metric", "paper", "runs", "ours", "lowest", "highest"]

    def __init__(self, columns=None, rows=()):
        super().__init__(columns or self.COLUMNS, rows)

    def put(self, key, values, paper=None):
        super().put(key, values, paper=paper)

    def get(self, *key):
        return self.index.get(key)

    def of(self, figure):
        return [row for row in self.rows if row["figure"] == figure]

    def cases(self, figure):
        return list(dict.fromkeys(row["case"] for row in self.of(figure)))

    def engines(self, figure):
        return list(dict.fromkeys(row["engine"] for row in self.of(figure)))

    def preface(self, paper, name):
        return (
            f"# {paper}: the paper's figures beside ours\n\n`papers/reproduce.sh {name}` writes this page and "
            f"{name}.csv. Streams are replayed to a device without table entries, so that the host "
            "engines match everything. The engines take turns in one process. Each number is the median "
            f"over {self.rows[0]['runs']} seeds, followed by the range. Ratios can be compared with the "
            "paper's; times cannot, because the paper used other machines and another MPI. *Reproduced* "
            "means within 30 % of the paper's number.\n\n"
        )
