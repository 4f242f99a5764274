#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests settings files (FI_TCAM_CONFIG)."""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys

from lib import mpi as runs
from lib.checks import check, exit_code
from lib.mpi import TARGET, TCAM
from lib.slowness import within

PLACE = TARGET / "settings-tests"
OWN_FAILURE = 125
BIN = runs.MPIS["mpich"]
TWO = [str(BIN / "mpiexec"), "-n", "2"]


def tcam(arguments, *words, **variables):
    command = [str(arguments.tcam), *map(str, words)]
    environment = os.environ | variables
    return subprocess.run(
        command, capture_output=True, text=True, timeout=within(120), check=False, env=environment
    )


def told(done, code, *parts):
    """Checks that the command ended with this code and printed these parts."""
    text = done.stdout + done.stderr
    good = done.returncode == code and all(part in text for part in parts)
    check(good, f"{done.args[1:]}: {done.returncode} {text[-400:]}, not {parts}")


def bad_files(arguments):
    """Errors in a settings file are reported with their line, both by tcam, before anything starts,
    and by the provider."""
    bad, touched, pipe = PLACE / "bad.conf", PLACE / "started", PLACE / "pipe"
    os.mkfifo(pipe)
    for content, part in [
        ("idle = spin\n\nidel = spin\n", "line 3: FI_TCAM_IDEL is no parameter of tcam; did you mean FI_TCAM_IDLE?"),
        ("eager_size = 16385\n", "line 1: FI_TCAM_EAGER_SIZE=16385: allowed is a whole number from 0 to 16384"),
        ("spin\n", "line 1: spin: expected `name = value`"),
        ("config = other\n", "line 1: FI_TCAM_CONFIG: a settings file cannot name another"),
        ("#" * 70000, "more than 65536 bytes"),
        (None, "No such file"),
    ]:  # fmt: skip
        bad.unlink(missing_ok=True)
        if content is not None:
            bad.write_text(content)
        words = ("run", "--", "touch", touched)
        told(tcam(arguments, *words, FI_TCAM_CONFIG=str(bad)), OWN_FAILURE, part, str(bad))
        told(tcam(arguments, "run", f"--set=config={bad}", *words[1:]), OWN_FAILURE, part)
    told(tcam(arguments, "run", f"--set=config={pipe}", *words[1:]), OWN_FAILURE, "regular file")
    check(not touched.exists(), "a program was started all the same")
    bad.write_text("eager_size = many\n")
    told(tcam(arguments, "doctor", FI_TCAM_CONFIG=str(bad)), 1, "line 1: FI_TCAM_EAGER_SIZE=many")
    variables = {
        "FI_PROVIDER_PATH": str(arguments.tcam.parent), "FI_PROVIDER": "tcam",
        "MPIR_CVAR_CH4_NETMOD": "ofi", "MPIR_CVAR_NOLOCAL": "1", "FI_TCAM_CONFIG": str(bad),
    }  # fmt: skip
    done = subprocess.run(
        [*TWO, runs.build("mpich") / "ring"], capture_output=True, text=True, timeout=within(60),
        check=False, env=os.environ | variables,
    )  # fmt: skip
    part = f"FI_TCAM_CONFIG={bad}: line 1: FI_TCAM_EAGER_SIZE=many"
    check(done.returncode != 0 and part in done.stderr, f"the provider: {done.stderr[-400:]}")


def values(arguments, *words, **variables):
    """Returns the values that a run reports."""
    place = PLACE / "reports"
    program = [*TWO, runs.build("mpich") / "ring"]
    done = tcam(arguments, "run", f"--report={place}", *words, "--", *program, **variables)
    check(done.returncode == 0, f"run {words}: {done.stderr[-400:]}")
    return json.loads((place / "0.json").read_text())["config"]


def what_comes_first(arguments):
    """The environment overrides the settings file, options override both, and the file overrides a
    device."""
    file = PLACE / "good.conf"
    file.write_text("# of a test\nFI_TCAM_IDLE = spin\nprq_entries=7\ndevice = connectx\neager_size = 1234\n")
    here = PLACE / "here.conf"
    here.symlink_to("good.conf")
    for words, variables in [
        ([f"--set=config={file}", "--prq=9"], {"FI_TCAM_IDLE": "yield"}),
        (["--prq=9"], {"FI_TCAM_IDLE": "yield", "FI_TCAM_CONFIG": str(here)}),
    ]:
        found = values(arguments, *words, **variables)
        names = ("idle", "prq_entries", "eager_size", "umq_entries", "overflow")
        found = [found[name] for name in names] + [found.get("config")]
        check(found == ["yield", "9", "1234", "0", "prefix", None], f"in force: {found}")
    done = tcam(arguments, "doctor", FI_TCAM_CONFIG=str(file), FI_TCAM_IDLE="auto")
    parts = "sets device=connectx eager_size=1234 prq_entries=7", "comes before what else it sets: idle=spin"
    told(done, 0, *parts)
    told(tcam(arguments, "replay", f"--set=config={file}", PLACE), OWN_FAILURE, "--set config: ")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tcam", type=pathlib.Path, default=TCAM)
    arguments = parser.parse_args()
    shutil.rmtree(PLACE, ignore_errors=True)
    PLACE.mkdir(parents=True)
    bad_files(arguments)
    what_comes_first(arguments)
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
