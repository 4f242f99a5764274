# SPDX-License-Identifier: BSD-2-Clause
"""What the test scripts check with."""

FAILED = []


def check(holds, what):
    """Remembers and says what does not hold; answers whether it does."""
    if not holds:
        print(f"    FAILED: {what}", flush=True)
        FAILED.append(what)
    return holds


def exit_code():
    """Says how many checks failed; what the script is to exit with."""
    print(f"{len(FAILED)} failed" if FAILED else "passed")
    return 1 if FAILED else 0
