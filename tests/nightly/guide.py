#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs every command of docs/guide.md as written, and then those of docs/howto, which continue it,
in one shell with a new home directory, where the files that the pages name must exist at the end.
Before, checks the links between the project's Markdown files."""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = [ROOT / "docs" / "guide.md", *sorted((ROOT / "docs" / "howto").glob("*.md"))]
MARK = "@@guide"


def commands(text):
    """Returns the lines that are indented outside of fences, including those of list items."""
    found, fenced = [], False
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced and re.match(r" {4,6}\S", line):
            found.append(line.strip())
    return found


def files(text):
    """Returns the files and directories below $HOME that the prose names."""
    named = re.findall(r"`(\$HOME/[^`*]+)`", text)
    return sorted({name.rstrip("/") for name in named})


def anchors(page):
    """Returns the anchors of a page's headings, as GitHub generates them."""
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    headings = (re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", line) for line in re.findall(r"^#+ (.*)$", text, re.MULTILINE))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links():
    """Yields links between files of the project whose file or heading does not exist."""
    listed = subprocess.run(
        ["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for name in listed.stdout.split():
        page = ROOT / name
        for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
            if re.match(r"https?:|mailto:", link):
                continue
            path, _, anchor = link.partition("#")
            to = page.parent / path if path else page
            if not to.exists() or (anchor and to.suffix == ".md" and anchor not in anchors(to)):
                yield f"{name}: {link}"


def environment(home):
    """Returns the environment of a new user, except that Rust and pip keep their directories."""
    old = pathlib.Path.home()
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("FI_", "OMPI_", "MPIR_", "PMI", "TCAM_"))
    }
    rust = {
        name: os.environ.get(name, str(old / directory))
        for name, directory in (("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup"))
    }
    cache = os.environ.get("PIP_CACHE_DIR", str(old / ".cache" / "pip"))
    return kept | rust | {"HOME": str(home), "PIP_CACHE_DIR": cache}


def run(arguments, words, home):
    """Runs the commands. Returns the number of completed commands and the exit code."""
    script = "set -e\n"
    for number, command in enumerate(words):
        script += f"echo {MARK} {number}\n{command}\n"
    script += f"echo {MARK} {len(words)}\n"
    shell = subprocess.Popen(
        ["bash", "-c", script], cwd=ROOT, env=environment(home), stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
    )  # fmt: skip
    done, output, started = -1, [], time.monotonic()
    for line in shell.stdout:
        if line.startswith(MARK):
            if done >= 0:
                print(f"  {time.monotonic() - started:6.1f} s  {words[done]}", flush=True)
            done, output, started = int(line.split()[1]), [], time.monotonic()
        else:
            output.append(line)
            if arguments.verbose:
                print("      " + line, end="", flush=True)
    code = shell.wait()
    if code != 0 or done < len(words):
        print(f"FAILED with exit code {code}: {words[done]}")
        print("".join(output[-40:]), end="")
    return done, code


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--verbose", action="store_true", help="print the commands' output")
    parser.add_argument("--keep", action="store_true", help="keeps the home directory")
    arguments = parser.parse_args()
    broken = list(broken_links())
    for link in broken:
        print(f"FAILED: a link leads nowhere: {link}")
    texts = [page.read_text() for page in PAGES]
    words = [command for text in texts for command in commands(text)]
    named = sorted({name for text in texts for name in files(text)})
    home = pathlib.Path(tempfile.mkdtemp(prefix="tcam-guide-"))
    try:
        done, code = run(arguments, words, home)
        missing = [
            name
            for name in named
            if done == len(words) and not (home / name.removeprefix("$HOME/")).exists()
        ]
        for name in missing:
            print(f"FAILED: a page names {name}, which does not exist")
    finally:
        if arguments.keep:
            print(f"The home directory is {home}")
        else:
            shutil.rmtree(home)
    good = code == 0 and done == len(words) and not missing and not broken
    print(f"{len(words)} commands and {len(named)} files: {'passed' if good else 'FAILED'}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
