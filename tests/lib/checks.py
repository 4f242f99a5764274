# SPDX-License-Identifier: BSD-2-Clause
"""Checks that the test scripts share."""

import subprocess

from lib.slowness import within

FAILED = []


def check(holds, what):
    """If `holds` is false, prints and records `what`. Returns `holds`."""
    if not holds:
        print(f"    FAILED: {what}", flush=True)
        FAILED.append(what)
    return holds


def all_post(tcam, pids):
    """Returns true if `tcam show --live` shows a rate of posts above 0 for each of these processes."""
    command = [str(tcam), "show", "--live", "--once", "--interval=0.1"]
    table = subprocess.run(command, capture_output=True, text=True, timeout=within(60), check=False).stdout
    lines = [line.split() for line in table.splitlines()]
    posts = {words[1]: words[3] for words in lines if len(words) > 3 and words[1].isdigit()}
    return all(posts.get(str(pid), "-") not in "-0" for pid in pids)


def exit_code():
    """Prints the number of failed checks. Returns the exit code of the script."""
    print(f"{len(FAILED)} failed" if FAILED else "passed")
    return 1 if FAILED else 0
