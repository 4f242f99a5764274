#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs every command of docs/guide.md as written, one after the other in one shell,
with a home directory that is new; then looks for every file that the guide names."""

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
GUIDE = ROOT / "docs" / "guide.md"
MARK = "@@guide"


def commands(text):
    """Indented lines outside of fences, list items' too."""
    found, fenced = [], False
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced and re.match(r" {4,6}\S", line):
            found.append(line.strip())
    return found


def files(text):
    """Files and directories below $HOME that the prose names."""
    named = re.findall(r"`(\$HOME/[^`*]+)`", text)
    return sorted({name.rstrip("/") for name in named})


def environment(home):
    """That of a newcomer, but for where Rust keeps its own."""
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
    """Runs the commands; the number of those that came to an end, and the exit code."""
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
    if code != 0:
        print(f"FAILED with exit code {code}: {words[done]}")
        print("".join(output[-40:]), end="")
    return done, code


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--verbose", action="store_true", help="what the commands print, too")
    parser.add_argument("--keep", action="store_true", help="keeps the home directory")
    arguments = parser.parse_args()
    text = GUIDE.read_text()
    words = commands(text)
    home = pathlib.Path(tempfile.mkdtemp(prefix="tcam-guide-"))
    try:
        done, code = run(arguments, words, home)
        missing = [
            name
            for name in files(text)
            if done == len(words) and not (home / name.removeprefix("$HOME/")).exists()
        ]
        for name in missing:
            print(f"FAILED: the guide names {name}, which is not there")
    finally:
        if arguments.keep:
            print(f"The home directory is {home}")
        else:
            shutil.rmtree(home)
    good = code == 0 and done == len(words) and not missing
    print(f"{len(words)} commands and {len(files(text))} files: {'passed' if good else 'FAILED'}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
