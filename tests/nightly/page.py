#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Opens pages of `tcam show` and `tcam answer` in headless Chromium, at the widths of a laptop, a tablet
and a phone. A page must not be wider than its window. Tables may scroll only on the phone. Texts of a
picture must be inside it and apart, every picture has values for the pointer, and the console has no
messages."""

import argparse
import html
import json
import pathlib
import re
import shutil
import subprocess
import sys

from lib import mpi as runs
from lib.checks import check, exit_code
from lib.slowness import within

PLACE = runs.TARGET / "page-tests"
DATA = runs.ROOT / "tests" / "data"
# Recordings, and the ranks per node of their placement.
RECORDED = [("hpcg-16", 8), ("lulesh-27", 9), ("snap-16", 8)]
# Patterns with many tags, with spills and with long names.
PATTERNS = ["shuffle", "halo", "fds", "manager"]
LAPTOP, TABLET, PHONE = 1280, 1024, 400
# Looks at each frame, when all are complete. Widths are rounded up, so they may be one pixel larger.
PROBE = """
addEventListener("load", () => {
  const found = [...document.querySelectorAll("iframe")].map((frame) => {
    const page = frame.contentDocument, root = page.documentElement
    const wide = (of) => of.scrollWidth > of.clientWidth + 1
    const tables = [...page.querySelectorAll(".sheet")]
    const pictures = [...page.querySelectorAll("svg")].map((svg) => {
      const edge = svg.getBoundingClientRect()
      const texts = [...svg.querySelectorAll("text")].map((of) => [of.textContent.trim(), of.getBoundingClientRect()])
      const touch = ([, a], [, b]) => a.left + 1 < b.right && b.left + 1 < a.right && a.top + 1 < b.bottom && b.top + 1 < a.bottom
      const inside = ([, of]) => of.left >= edge.left && of.right <= edge.right + 1 && of.bottom <= edge.bottom + 1
      return {
        name: svg.getAttribute("aria-label"),
        outside: texts.filter((of) => !inside(of)).map(([text]) => text),
        touching: texts.flatMap((a, at) => texts.slice(at + 1).filter((b) => touch(a, b)).map((b) => [a[0], b[0]])),
        values: svg.querySelectorAll("title").length,
      }
    })
    return {
      page: frame.name,
      width: frame.clientWidth,
      overflows: wide(root) ? root.scrollWidth : 0,
      tables: tables.length,
      wide: tables.filter(wide).map((of) => of.querySelector("caption").textContent),
      pictures,
    }
  })
  const told = document.createElement("pre")
  told.id = "found"
  told.textContent = JSON.stringify(found)
  document.body.replaceChildren(told)
})
"""


def need_chromium():
    """Installs Chromium if it is missing, as the scripts of the shell install packages. Returns its path."""
    script = f". {runs.ROOT}/tests/lib/setup.sh; need_packages chromium"
    if not shutil.which("chromium"):
        subprocess.run(["sh", "-c", script, str(runs.ROOT / "tests/lib/x")], check=False)
    return shutil.which("chromium")


def write_pages(arguments):
    """Writes the pages. Returns them by name."""
    shutil.rmtree(PLACE, ignore_errors=True)
    PLACE.mkdir(parents=True)
    pages = {}

    def page(name, *words):
        command = [str(arguments.tcam.resolve()), *map(str, words)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=within(60), check=False, cwd=PLACE)
        if check(done.returncode == 0, f"{' '.join(command)}: {done.stderr[-500:]}"):
            pages[name] = (PLACE / f"{name}.html").read_text()

    for name, ppn in RECORDED:
        shutil.unpack_archive(DATA / f"{name}.tar.xz", PLACE)
        page(name, "show", name, f"--ppn={ppn}", f"--out={name}.html")
        page(f"{name}-answer", "answer", name, f"--ppn={ppn}", f"--html={name}-answer.html")
    page("repeats", "show", "hpcg-16", "hpcg-16", "--out=repeats.html")
    for pattern in PATTERNS:
        command = [str(arguments.tcam), "workload", pattern, "--ranks=64", f"--out={PLACE / pattern}"]
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        page(pattern, "show", pattern, f"--out={pattern}.html")
    return pages


def looked_at(chromium, pages):
    """Returns what Chromium found on each page at each width, and its messages on the console."""
    frames = [
        f'<iframe name="{name}" width="{width}" height="900" srcdoc="{html.escape(text)}"></iframe>'
        for name, text in pages.items()
        for width in (LAPTOP, TABLET, PHONE)
    ]
    # A window of a page of its own is at least 500 pixels wide, a frame may be narrower.
    wrapper = PLACE / "wrapper.html"
    wrapper.write_text(f"<!DOCTYPE html><script>{PROBE}</script><style>iframe {{ border: 0 }}</style>{''.join(frames)}")
    command = [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--enable-logging=stderr",
               f"--user-data-dir={PLACE / 'profile'}", "--dump-dom", wrapper.as_uri()]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=within(120), check=False)
    told = re.search(r'<pre id="found">(.*)</pre>', done.stdout)
    if not check(told, f"Chromium, exit code {done.returncode}: {done.stderr[-1000:]}"):
        return [], []
    # Chromium's own start page writes messages, too.
    messages = [line for line in done.stderr.splitlines() if "CONSOLE" in line and "source: chrome:" not in line]
    return json.loads(html.unescape(told[1])), messages


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tcam", type=pathlib.Path, default=runs.TCAM)
    arguments = parser.parse_args()
    chromium = need_chromium()
    if not check(chromium, "Chromium cannot be installed (apt-get install chromium): the pages were not opened"):
        return exit_code()
    pages = write_pages(arguments)
    found, messages = looked_at(chromium, pages)
    check(len(found) == 3 * len(pages), f"{len(found)} frames of {len(pages)} pages")
    check(not messages, f"console: {messages}")
    for of in found:
        what = f"{of['page']} at {of['width']} pixels"
        check(not of["overflows"], f"{what} is {of['overflows']} pixels wide")
        check(of["tables"], f"{what} has no tables")
        if of["width"] != PHONE:
            check(not of["wide"], f"{what}: wider than the window: {of['wide']}")
            check(of["pictures"], f"{what} has no pictures")
            for picture in of["pictures"]:
                check(not picture["outside"], f"{what}, {picture['name']}: outside: {picture['outside']}")
                check(not picture["touching"], f"{what}, {picture['name']}: touch: {picture['touching']}")
                check(picture["values"], f"{what}, {picture['name']}: no values for the pointer")
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
