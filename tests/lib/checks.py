# SPDX-License-Identifier: BSD-2-Clause
"""What the test scripts check with."""

import subprocess

from lib.slowness import within

FAILED = []


def check(holds, what):
    """Remembers and says what does not hold; answers whether it does."""
    if not holds:
        print(f"    FAILED: {what}", flush=True)
        FAILED.append(what)
    return holds


def all_post(tcam, pids):
    """Whether `tcam watch` shows receives posted by each of these processes."""
    command = [str(tcam), "watch", "--once", "--interval=0.1"]
    table = subprocess.run(command, capture_output=True, text=True, timeout=within(60), check=False).stdout
    lines = [line.split() for line in table.splitlines()]
    posts = {words[1]: words[3] for words in lines if len(words) > 3 and words[1].isdigit()}
    return all(posts.get(str(pid), "-") not in "-0" for pid in pids)


def exit_code():
    """Says how many checks failed; what the script is to exit with."""
    print(f"{len(FAILED)} failed" if FAILED else "passed")
    return 1 if FAILED else 0
