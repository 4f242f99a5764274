#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests `tcam run` and `sweep` in case of errors: they keep existing files and report the
error."""

import argparse
import json
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import sys
import time

from lib import mpi as runs
from lib.checks import check, exit_code
from lib.slowness import within

PLACE = runs.TARGET / "command-tests"
MPIEXEC = str(runs.MPIS["mpich"] / "mpiexec")


def tcam(arguments, *words, **options):
    """Runs tcam. Returns the completed process."""
    options = {"capture_output": True, "text": True, "timeout": within(120)} | options
    return subprocess.run([str(arguments.tcam), *map(str, words)], **options)


def fresh(name):
    """Returns an empty directory."""
    place = PLACE / name
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    return place


def files(place):
    """Returns the contents of the files in a directory, including hidden ones, by name."""
    return {path.name: path.read_bytes() for path in place.iterdir()}


def old_files_stay(arguments, programs):
    """A run that produces no reports keeps those of an earlier run."""
    ring = [MPIEXEC, "-n", "2", str(programs / "ring")]
    for option in ("--trace", "--report"):
        task, place = f"run {option}", fresh(f"run{option}")
        done = tcam(arguments, "run", f"{option}={place}", "--", *ring)
        check(done.returncode == 0, f"{task}: {done.stderr[-500:]}")
        before = files(place)
        check({"0.json", "1.json"} <= set(before), f"{task}: {sorted(before)}")
        for words, code in (
            (["--", "nosuchprog"], 125),
            (["--set=prq_entries=bad", "--", *ring], 125),
            (["--", "true"], 125),
            (["--", MPIEXEC, "-n", "2", "false"], 1),
        ):
            done = tcam(arguments, "run", f"{option}={place}", *words)
            check(done.returncode == code, f"{task} {words}: {done.returncode} {done.stderr}")
            check(files(place) == before, f"{task} {words}: {sorted(files(place))}")
        done = tcam(arguments, "run", f"{option}={place}", "--", *ring)
        after = files(place)
        check(done.returncode == 0 and after, f"{task}: {done.stderr[-500:]}")
        check(len(after) == len(before) and after != before, f"{task}: {sorted(after)}")
        new = PLACE / f"run{option}-new"
        tcam(arguments, "run", f"{option}={new}", "--", "true")
        check(not new.exists(), f"{task}: {new} was made for nothing")


def a_killed_tcam_leaves_its_files(arguments, programs):
    """The files of a run whose tcam was killed stay, and later commands name their directory."""
    ring = f"{MPIEXEC} -n 2 {programs / 'ring'}"
    for task, option, sub in (("run", "--trace", ""), ("answer", "--out", "1")):
        out = fresh("killed") / "out"
        place, words = out / sub, [task, "--mpi=mpich", f"{option}={out}", "--"]
        done = tcam(arguments, *words, "sh", "-c", f"kill -9 $PPID; exec {ring}", stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL, capture_output=False)  # fmt: skip
        check(done.returncode == -signal.SIGKILL, f"{task}: {done.returncode}")
        end = time.monotonic() + within(30)
        while len(list(place.glob(".new-*/*.json"))) < 2 and time.monotonic() < end:
            time.sleep(0.05)
        left = [str(path) for path in place.glob(".new-*")]
        check(len(left) == 1, f"{task}: {left}")
        for reads in ("answer", "show"):
            done = tcam(arguments, reads, out)
            check(done.returncode == 125 and left[0] in done.stderr, f"{reads}: {done.stderr}")
            check(tcam(arguments, reads, *left).returncode == 0, f"{reads} {left}")
        done = tcam(arguments, *words, *ring.split())
        check(done.returncode == 0 and f"{left[0]} was left" in done.stderr, f"{task}: {done.stderr}")
        check(len(list(pathlib.Path(left[0]).glob("*.json"))) == 2, f"{task}: {left} lost its files")


def some_sizes_fail(arguments, programs):
    """A sweep draws the sizes that worked and names the others."""
    place = fresh("sweep")
    script = place / "app.sh"
    script.write_text(
        "#!/bin/sh\n"
        'if [ "$FI_TCAM_PRQ_ENTRIES" = 2 ]; then echo no luck; exit 7; fi\n'
        f'exec {MPIEXEC} -n 2 {programs / "ring"}\n'
    )
    script.chmod(0o755)
    out = place / "out"
    words = ["sweep", "--mpi=mpich", f"--out={out}"]
    done = tcam(arguments, *words, "--prq=1,2,4", "--", script)
    check(done.returncode == 7, f"sweep: {done.returncode} {done.stderr}")
    check("PRQ 2 UMQ 2, run 1: exit status: 7\n" in done.stderr, done.stderr)
    check(done.stderr.endswith("no luck\n"), done.stderr)
    lines = (out / "sweep.csv").read_text().splitlines()
    check([line.split(",")[0] for line in lines[1:]] == ["1", "4"], f"{lines}")
    curve = (out / "curve.svg").read_text()
    # No size worked: the previous results stay.
    done = tcam(arguments, *words, "--prq=2", "--", script)
    check(done.returncode == 7 and (out / "curve.svg").read_text() == curve, done.stderr)
    check((out / "sweep.csv").read_text().splitlines() == lines, "the rows are lost")
    done = tcam(arguments, *words, "--prq=8", "--", script)
    check(done.returncode == 0, done.stderr)
    left = [path.name for path in (out / "runs").iterdir()]
    check(left == ["prq8-umq8-1"], f"{left}")


def output_goes_nowhere(arguments, programs):
    """A closed or full output does not end a run of a program. It ends other tasks, as it ends other
    tools."""
    place = fresh("nowhere")
    ring = [MPIEXEC, "-n", "2", str(programs / "ring")]
    # The launcher itself would fail without an output.
    mute = ["sh", "-c", f"{' '.join(ring)} >/dev/null 2>&1; exit 9"]
    tasks = [
        (["run", "--mpi=mpich", f"--trace={place / 'traces'}", "--", *mute], 9, 9),
        (["run", "--mpi=mpich", "--", *mute], 9, 9),
        (["sweep", "--prq=4", f"--out={place / 'sweep'}", "--", *ring], 0, 125),
        (["sweep", f"--trace={place / 'traces'}", f"--out={place / 'replayed'}"], 0, 125),
        (["show", str(place / "traces")], -13, 125),
        (["replay", str(place / "traces")], -13, 125),
        (["doctor"], -13, 125),
        (["--help"], 0, 125),
    ]
    for words, closed, full in tasks:
        # The reading end is closed before the command can write.
        read, write = os.pipe()
        os.close(read)
        command = [str(arguments.tcam), *words]
        done = subprocess.run(command, check=False, stdout=write, stderr=write, timeout=within(60))
        os.close(write)
        code = done.returncode
        check(code == closed, f"{words}, closed: exit code {code}")
        if words[0] == "sweep" and words[1].startswith("--trace"):
            check((place / "replayed" / "sweep.csv").exists(), f"{words}, closed: no sweep.csv")
        with open("/dev/full", "w", encoding="utf-8") as device:
            options = {"capture_output": False, "stdout": device, "stderr": subprocess.PIPE}
            done = tcam(arguments, *words, **options)
            if words[0] != "replay":
                check(done.returncode == full, f"{words}, full: {done.returncode}")
            told = "No space left on device" in done.stderr
            check(told or full != 125 or words[0] == "replay", f"{words}: {done.stderr}")
            options |= {"stderr": device}
            done = tcam(arguments, *words, **options)
            check(done.returncode == full, f"{words}, both full: {done.returncode}")


def mistakes(arguments, programs):
    """Errors name their cause."""
    ring = [MPIEXEC, "-n", "2", str(programs / "ring")]
    killed = ["sh", "-c", "kill -9 $$"]
    text = fresh("mistakes") / "text"
    text.write_text("not a directory")
    odd = text.parent / "x%y"
    cut, cut_off = text.parent / "cut", ': >"${FI_TCAM_REPORT%/*}/0.json"; exit 4'
    for words, code, part in (
        (["run", f"--trace={text}", "--", *ring], 125, "text: is no directory"),
        (["show", "--format=plot", f"--out={text}", str(PLACE / "run--trace")], 125, "text: is no directory"),
        (["show", "--format=plot", "--out=p.svg", str(PLACE / "run--trace")], 125, "several pictures: give a dir"),
        (["show", "--format=html", "--out=x.pdf", str(PLACE / "run--trace")], 125, "a page of HTML is written"),
        (["run", f"--report={odd}", "--", *ring], 125, "a `%` in the name"),
        (["run", "--set=device=cassini", "--", *ring], 125, "did you mean cassini-hybrid, "),
        (["run", "--set=device=slingshot", "--", *ring], 125, "did you mean cassini-hybrid, "),
        (["run", "--set=prq_entrys=3", "--", *ring], 125, "did you mean FI_TCAM_PRQ_ENTRIES?"),
        (["run", "--set=connectx", "--", *ring], 125, "did you mean device=connectx?"),
        (["run", "--device", "alpu", "--", *ring], 2, "set with --set device=alpu"),
        (["run", *ring], 2, "`--` is missing before the command"),
        (["run", "--", *killed], 137, "no rank wrote a report: sh was ended by SIGKILL"),
        (["run", "--", "sh", "-c", "exit 3"], 3, "report: sh ended with exit code 3"),
        (["run", f"--report={cut}", "--", "sh", "-c", cut_off], 4, "0.json: an empty file"),
        (["run", "--", "true"], 125, "it may be no MPI program"),
        (["run", "--mpi=openmpi5", "--", MPIEXEC, "true"], 125, "--mpi says Open MPI 5, but"),
    ):
        done = tcam(arguments, *words)
        check(done.returncode == code and part in done.stderr, f"{words}: {done}")
    check(not odd.exists(), f"{odd} was made")


def reports_elsewhere(arguments, programs):
    """FI_TCAM_REPORT in the environment is not used, and a message says so."""
    place = fresh("elsewhere")
    environment = {"env": os.environ | {"FI_TCAM_REPORT": str(place / "%r")}}
    ring = ["--", MPIEXEC, "-n", "2", str(programs / "ring")]
    for task, option in (
        ("run", "--report"), ("run", "--trace"), ("sweep", "--out"),
    ):  # fmt: skip
        words = [task, *(["--prq=4"] if task == "sweep" else []), f"{option}={place / option}"]
        done = tcam(arguments, *words, *ring, **environment)
        told = f"FI_TCAM_REPORT: not used; {option} DIR gives the directory of the reports"
        check(done.returncode == 0 and told in done.stderr, f"{task}: {done}")
        check(not list(place.glob("*.json")), f"{task}: reports in {place}")


def failed_programs(arguments, programs):
    """The exit status of a program is stored beside its files, and later summaries begin with
    it."""
    place = fresh("failed")
    traces, reports = place / "traces", place / "reports"
    good = ["--", MPIEXEC, "-n", "2", str(programs / "ring")]
    bad = ["--", MPIEXEC, "-n", "2", "sh", "-c", f"{programs / 'ring'}; exit 3"]
    failed = "FAILED, the program ended with exit status 3"
    summaries = (
        (["replay", traces], "stderr"),
        (["sweep", "--prq=4", f"--out={place / 'sweep'}", "--trace", traces], "stdout"),
        (["show", traces], "stdout"),
        (["show", *reports.parent.glob("reports/*.json"), reports], "stdout"),
        (["show", "--by=tag", traces], "stdout"),
        (["replay", "--with=device=alpu", traces], "stderr"),
        (["replay", "--time", traces], "stdout"),
        (["show", "--format=html", f"--out={place / 'page.html'}", traces], "stderr"),
        (["show", "--format=svg", f"--out={place / 'plot'}", traces], "stderr"),
    )
    for command, code in ((bad, 3), (good, 0)):
        for words in (["run", f"--trace={traces}"], ["run", f"--report={reports}"]):
            done = tcam(arguments, *words, *command)
            check(done.returncode == code, f"{words}: {done.returncode} {done.stderr[-500:]}")
            check((failed in done.stderr) == (code != 0), f"{words}: {done.stderr[:300]}")
        told = json.loads((traces / "run.tcam").read_text())
        check(told["exit_status"] == code and told["command"] == command[1:], f"run.tcam: {told}")
        check(told["processors"] == len(os.sched_getaffinity(0)), f"run.tcam: {told}")
        for words, stream in summaries:
            done = tcam(arguments, *words)
            lines = [line for line in getattr(done, stream).splitlines() if line]
            first = next((at for at, line in enumerate(lines) if line.startswith(failed)), None)
            good_lines = sum(line.startswith(str(place)) for line in lines)
            expected = None if code == 0 else good_lines if str(words[1]).startswith("--format") else 0
            check(first == expected and done.returncode == 0, f"{words}: line {first}, {lines[:3]}")
        page = (place / "page.html").read_text()
        check((f'<p class="lack">{failed}' in page) == (code != 0), "page.html")
        curve = (place / "sweep" / "curve.svg").read_text()
        check(("FAILED (exit status 3)" in curve) == (code != 0), "curve.svg")
    # The exit status of an earlier run does not count for reports of a later run without tcam.
    tcam(arguments, "run", f"--report={reports}", *bad)
    for path in reports.glob("[0-9].json"):
        report = json.loads(path.read_text())
        report["origin"]["job"] += 1
        path.write_text(json.dumps(report))
    done = tcam(arguments, "show", reports)
    check(done.returncode == 0 and "FAILED" not in done.stdout, f"by hand: {done.stdout[:200]}")
    script = place / "app.sh"
    script.write_text(f'#!/bin/sh\n[ "$FI_TCAM_PRQ_ENTRIES" = 2 ] && exec {shell(bad)}\nexec {shell(good)}\n')
    script.chmod(0o755)
    out = place / "run-sweep"
    tcam(arguments, "sweep", "--mpi=mpich", f"--out={out}", "--prq=2,4", "--", script)
    for size, told in ((2, True), (4, False)):
        done = tcam(arguments, "show", out / "runs" / f"prq{size}-umq{size}-1")
        check(done.stdout.startswith(failed) == told, f"sweep, {size}: {done.stdout[:200]}")


def processors(arguments, programs):
    """tcam counts the processors on which the ranks may run, not those of the host."""
    place = fresh("processors")
    one = {"preexec_fn": lambda: os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})}
    storm = [MPIEXEC, "-n", "8", str(programs / "any_source")]
    done = tcam(arguments, "run", f"--trace={place}", "--", *storm, **one)
    check(done.returncode == 0 and "8 ranks on 1 processor take turns" in done.stderr, done.stderr)
    check(json.loads((place / "run.tcam").read_text())["processors"] == 1, "run.tcam")
    done = tcam(arguments, "replay", place)
    check("8 ranks on 1 processor take turns" in done.stderr, f"replay: {done.stderr}")
    done = tcam(arguments, "doctor", "--", *storm, **one)
    check("8 ranks on 1 core: ranks take turns" in done.stdout, f"doctor: {done.stdout}")


def shell(command):
    """Returns the command after `--` as a shell accepts it."""
    return shlex.join(command[1:])


def completed(arguments):
    """The completions of each shell contain the tasks and, if the shell is installed, parse without
    errors."""
    for shell in ("bash", "zsh", "fish"):
        done = tcam(arguments, "completions", shell)
        check(done.returncode == 0 and "workload" in done.stdout, f"{shell}: {done}")
        if shutil.which(shell):
            read = subprocess.run([shell, "-n"], input=done.stdout, text=True, capture_output=True)
            check(read.returncode == 0 and not read.stderr, f"{shell}: {read.stderr}")


def numbers(arguments, programs):
    """`tcam run --json` writes the summary of the run. A failed run keeps the existing file."""
    ring = [MPIEXEC, "-n", "2", str(programs / "ring")]
    file = fresh("numbers") / "run.json"
    done = tcam(arguments, "run", f"--json={file}", "--prq=9", "--", *ring)
    told = json.loads(file.read_text())
    check(done.returncode == 0 and told["ranks"] == 2, f"{done.stderr} {told}")
    check(told["tagged"]["prq"]["entries"] == 9, f"{told['tagged']['prq']}")
    before = file.read_text()
    for words, code, part in (
        ([f"--json={file}", "--", "true"], 125, "no rank wrote a report"),
        (["--json=-", "--", *ring], 125, "standard output is the program's"),
        ([f"--json={file}/x", "--", *ring], 125, "Not a directory"),
    ):
        done = tcam(arguments, "run", *words)
        check(done.returncode == code and part in done.stderr, f"{words}: {done}")
        check(file.read_text() == before, f"{words}: the numbers are lost")
    place = file.parent / "reports"
    for words in (["run", f"--report={place}"], ["sweep", "--prq=4", f"--out={place}"]):
        for _ in range(2):
            done = tcam(arguments, *words, f"--json={place / 'all.json'}", "--", *ring)
            check(done.returncode == 0, f"{words}, numbers beside the reports: {done}")
    done = tcam(arguments, "show", place)
    check(done.returncode == 0, f"stats of reports and numbers: {done}")


def surroundings(arguments, programs):
    """Signal masks and variables that sites and daemons pass to their children do not disturb a run."""
    with subprocess.Popen(
        [str(arguments.tcam), "run", "--", "sh", "-c", "exit 9"],
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD]),
    ) as child:
        try:
            code = child.wait(timeout=within(20))
        except subprocess.TimeoutExpired:
            child.kill()
            code = None
    check(code == 9, f"SIGCHLD is blocked: exit code {code}")
    open_mpi = runs.build("openmpi5")
    ring = [str(runs.MPIS["openmpi5"] / "mpiexec"), "-n", "3", str(open_mpi / "ring")]
    names = ["mtl_ofi_provider_exclude", "opal_common_ofi_provider_exclude"]
    excludes = {f"OMPI_MCA_{name}": "shm,sockets" for name in names}
    task = {"PMI_RANK": "0", "PMI_SIZE": "1"}
    place = fresh("surroundings")
    done = tcam(arguments, "run", f"--report={place}", "--", *ring, env=os.environ | excludes | task)
    check(done.returncode == 0, f"a site excludes providers: {done.stderr[-500:]}")
    left = sorted(path.name for path in place.glob("*.json"))
    check(left == ["0.json", "1.json", "2.json"], f"ranks in a task of another launcher: {left}")


def two_programs(arguments, programs):
    """A second program of the same ranks keeps the files of the first, and a message says so."""
    place = fresh("two")
    each = [f"{MPIEXEC} -n 2 {programs / name}" for name in ("ring", "nbcoll")]
    words = ["run", "--mpi=mpich", f"--report={place}", "--", "sh", "-c", " && ".join(each)]
    done = tcam(arguments, *words)
    check(done.returncode == 0 and "several programs, whose" in done.stderr, done.stderr)
    found = sorted(path.name.split(".")[0] for path in place.glob("*.json"))
    check(found == ["0", "0", "1", "1"] and {"0.json", "1.json"} <= set(files(place)), f"{found}")


def others_write_too(arguments, programs):
    """Text from others cannot send commands to the terminal, and a link in the place of an output
    file is replaced."""
    evil, place = "x\x1b]0;pwned\x07\u009b31m\u202egnp", fresh("others")
    ring = ["--", MPIEXEC, "-n", "2", str(programs / "ring")]
    done = tcam(arguments, "run", f"--trace={place}", *ring)
    check(done.returncode == 0, done.stderr)
    for path in place.glob("*.json"):
        report = json.loads(path.read_text())
        report |= {"program": evil, "tcam": evil, "libfabric": evil}
        path.write_text(json.dumps(report | {"channels": {evil: report["channels"]["shm"]}}))
    out, odd = place / "out", place / f"{evil}.trace"
    for path in list(place.glob("*.trace")):
        header, program = path.read_bytes()[:8176], json.dumps(str(programs / "ring")).encode()
        check(program in header, f"{path}: another header")
        header = header.replace(program, json.dumps(evil).encode()).rstrip(b"\0 ")
        # The window of a trace follows its header, whose end describes the window.
        path.write_bytes(header.ljust(8176) + path.read_bytes()[8176:])
    odd.write_bytes(b"none")
    out.mkdir()
    (place / "precious").write_text("precious")
    for name in ("page.html", "x.json", "x.csv"):
        (out / name).symlink_to(place / "precious")
    traces = list(place.glob("[0-9]*.trace"))
    for words, code in (
        (["show", place], 125),
        (["show", *place.glob("*.json")], 0),
        (["show", f"--json={out / 'x.json'}", *traces], 0),
        (["show", "--format=html", f"--out={out / 'page.html'}", *place.glob("*.json"), *traces], 0),
        (["show", f"--out={out}", "--format=svg", *traces], 0),
        (["show", "--format=csv", f"--out={out}", *traces], 0),
        (["replay", f"--report={out / 'replayed'}", *traces], 0),
        (["replay", f"--csv={out / 'x.csv'}", "--with=host_engine=list", *traces], 0),
        (["sweep", f"--out={out / 'sweep'}", "--trace", *traces], 0),
        (["replay", odd], 125),
    ):
        done = tcam(arguments, *words)
        check(done.returncode == code, f"{words[0]}: {done.returncode} {done.stderr[-500:]}")
        told = [done.stdout, done.stderr]
        if words[0] != "show":
            told += [path.read_text() for end in ("html", "svg", "txt") for path in out.rglob(f"*.{end}")]
        found = {char for char in "\x1b\x07\u009b\u202e" for text in told if char in text}
        check(not found, f"{words[0]}: {found}")
    check((place / "precious").read_text() == "precious", "a link was followed")


def irregular_files(arguments):
    """A pipe or an endless file does not block a command: the error names it, and nothing runs or
    is lost."""
    place = fresh("irregular")
    reports, traces, ran = (place / name for name in ("reports", "traces", "ran"))
    tcam(arguments, "workload", "halo", "--ranks=16", "--rank=0", f"--out={traces}")
    tcam(arguments, "replay", f"--report={reports}", traces)
    pipe, zeros, trace = place / "pipe", reports / "9.json", traces / "9.trace"
    os.mkfifo(pipe)
    for words in (
        ["show", reports], ["show", "--format=html", reports], ["show", "--format=csv", reports],
        ["show", "--format=plot", reports], ["show", f"--against={reports}", reports], ["cluster", reports],
        ["run", f"--report={reports}", "--", "touch", ran],
    ):  # fmt: skip
        for target in (pipe, "/dev/zero"):
            zeros.symlink_to(target)
            done = tcam(arguments, *words, timeout=within(20), cwd=place)
            told = "9.json: not a regular file" in done.stderr
            check(done.returncode == 125 and told, f"{words} with {target}: {done}")
            zeros.unlink()
    os.mkfifo(trace)
    for task, *words in (
        ("replay", traces), ("show", traces), ("run", f"--trace={traces}", "--", "touch", ran),
        ("cluster", "--out", place / "x.clusters", pipe),
    ):  # fmt: skip
        done = tcam(arguments, task, *words, timeout=within(20))
        told = "not a regular file" in done.stderr
        check(done.returncode == 125 and told, f"{task} with a pipe: {done}")
    check(trace.is_fifo() and (reports / "0.json").is_file() and not ran.exists(), "something went")
    with open(zeros, "wb") as sparse:
        sparse.truncate(1 << 40)
    done = tcam(arguments, "show", reports, timeout=within(20))
    check("9.json: longer than " in done.stderr, f"a long report: {done}")


def one_writer(arguments):
    """A directory that a command writes to is refused to others until the command ends in any
    way."""
    place = fresh("writer")
    out, traces, started = (place / name for name in ("out", "traces", "started"))
    tcam(arguments, "workload", "halo", "--ranks=16", "--rank=0", f"--out={traces}")
    words = ["sweep", "--prq=4", f"--out={out}", "--", "sh", "-c"]
    program = f"touch {started}; while [ -e {started} ]; do sleep 0.1; done"
    first = subprocess.Popen([str(arguments.tcam), *words, program], stderr=subprocess.DEVNULL)
    while not started.exists() and first.poll() is None:
        time.sleep(0.05)
    for other in (
        [*words, "true"], ["sweep", f"--out={out}", "--trace", traces],
        ["run", f"--report={out}", "--", "true"], ["run", f"--trace={out}", "--", "true"],
        ["replay", f"--report={out}", traces], ["show", "--format=plot", f"--out={out}", traces],
        ["show", "--format=csv", f"--out={out}", traces], ["workload", "fds", f"--out={out}"],
    ):  # fmt: skip
        done = tcam(arguments, *other)
        told = f"`tcam sweep --prq=4 --out={out} " in done.stderr and f"process {first.pid} on" in done.stderr
        check(done.returncode == 125 and told, f"{other}: {done}")
    first.kill()
    first.wait()
    started.unlink()
    done = tcam(arguments, "show", "--format=csv", f"--out={out}", traces)
    check(done.returncode == 0 and not list(out.glob(".*")), f"after a killed sweep: {done} {list(out.iterdir())}")


def other_tools(arguments):
    """Traces of other tools are recognised, and the error says what to do."""
    place = fresh("other-tools")
    for name, tool in (
        ("app.goal", "GOAL"), ("dumpi-2026.11.25-0000.bin", "DUMPI"), ("traces.otf2", "OTF2"),
    ):  # fmt: skip
        (place / name).write_bytes(b"something")
        for words in (["replay", place / name], ["show", place / name], ["replay", "--with=devices", place]):
            done = tcam(arguments, *words)
            told = tool in done.stderr and "`tcam run --trace DIR -- mpiexec ...`" in done.stderr
            check(done.returncode == 125 and told, f"{words}: {done}")
        (place / name).unlink()


def sibling_mode(arguments):
    """If a device fails because its tables are full, the message names the mode that continues."""
    traces = fresh("sibling-mode")
    tcam(arguments, "workload", "halo", "--ranks=16", "--rank=0", f"--out={traces}")
    for device, named in (("cassini-hardware", True), ("cassini-hybrid", False)):
        done = tcam(arguments, "replay", "--prq=8", f"--set=device={device}", traces)
        told = "--set device=cassini-hybrid" in done.stderr
        check("DOES NOT FIT" in done.stderr and told == named, f"{device}: {done.stderr}")


def memory_apart(arguments, programs):
    """doctor detects ranks of one host with separate /dev/shm before they fail."""
    apart = fresh("apart") / "apart.sh"
    # The /dev/shm of a rank stays mounted until the other rank has one as well. Otherwise both could get
    # the same device number.
    inside = 'mount -t tmpfs t /dev/shm && "$@"; code=$?; sleep 2; exit $code'
    apart.write_text(f"#!/bin/sh\nexec unshare -rm sh -c '{inside}' sh \"$@\"\n")
    apart.chmod(0o755)
    if subprocess.run([apart, "true"], capture_output=True).returncode != 0:
        print("ranks with a /dev/shm of their own: skipped, no namespaces may be made")
        return
    for wrapper, words in (([], "see the same /dev/shm"), ([apart], "see 2 different /dev/shm")):
        done = tcam(arguments, "doctor", "--", MPIEXEC, "-n", "2", *wrapper, programs / "ring")
        check(f"2 ranks: those of one host {words}" in done.stdout, f"{wrapper}: {done}")
        check(not wrapper or done.returncode == 1 and "--ipc=host" in done.stdout, f"{done}")


def no_programs_there(arguments):
    """doctor detects a provider in a file system from which nothing can be loaded."""
    place = fresh("noexec")
    mount = f"mount -t tmpfs -o noexec t {place}"
    within_it = f'{mount} && cp "$1" {place} && exec "$0" doctor --provider {place}'
    if subprocess.run(["unshare", "-rm", "sh", "-c", mount], capture_output=True).returncode != 0:
        print("a provider that cannot be loaded: skipped, no namespaces may be made")
        return
    provider = arguments.tcam.parent / "libtcam-fi.so"
    words = ["unshare", "-rm", "sh", "-c", within_it, arguments.tcam, provider]
    done = subprocess.run(words, capture_output=True, text=True, timeout=within(60))
    told = "cannot be loaded: its file system is mounted with noexec" in done.stdout
    check(told and done.returncode == 1, f"noexec: {done}")


def many_reports(arguments):
    """A report of 20 kB on disk takes only a few kB in memory."""
    place = fresh("many")
    tcam(arguments, "workload", "halo", "--ranks=64", "--rank=0", "--steps=40", f"--out={place / 't'}")
    tcam(arguments, "replay", f"--report={place / 'r'}", place / "t")
    report = json.loads((place / "r" / "0.json").read_text())
    reports = place / "r"
    for words, most in (([], 12), ([f"--against={reports}"], 24)):
        peak = []
        for ranks in (200, 1400):
            for rank in range(ranks):
                report |= {"rank": rank, "pid": 1000 + rank, "address": f"10.0.0.1:{1000 + rank}"}
                (place / "r" / f"{rank}.json").write_text(json.dumps(report))
            command = [str(arguments.tcam), "show", *words, str(reports)]
            child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            peak.append(os.wait4(child.pid, 0)[2].ru_maxrss)
            shutil.rmtree(place / "r")
            (place / "r").mkdir()
        each = (peak[1] - peak[0]) / 1200
        print(f"    show {' '.join(words)}: {each:.1f} KiB a report")
        check(each < most, f"{words}: {each:.1f} KiB a report, of {ranks} {peak[1]} KiB")


def first_answer(arguments):
    """`tcam demo` prints a page and draws a picture, or says what to install."""
    place = fresh("demo")
    out, mpicc = place / "out", runs.MPIS["mpich"] / "mpicc"
    done = tcam(arguments, "demo", "--ranks=4", f"--mpicc={mpicc}", f"--out={out}")
    check(done.returncode == 0, f"demo: {done.stderr[-500:]}")
    check("fds_gather: 4 ranks" in done.stdout and "Entries needed" in done.stdout, done.stdout)
    check({"answer.html", "answer.png", "fds_gather", "fds_gather.c"} <= set(os.listdir(out)), out)
    few = fresh("demo/few")
    for tool in ("awk", "basename", "cat", "dirname", "env", "expr", "sed"):
        (few / tool).symlink_to(shutil.which(tool))
    for words, told in (
        ([], "pip install mpich"),
        ([f"--mpicc={mpicc}"], "pip install ziglang"),
        (["--mpicc=./nosuchcc"], "./nosuchcc: cannot be started"),
    ):
        env = os.environ | {"PATH": str(few)}
        done = tcam(arguments, "demo", f"--out={place / 'none'}", *words, env=env)
        check(done.returncode == 125 and told in done.stderr, f"demo {words}: {done.stderr}")


def settings_of_a_nic(arguments):
    """`tcam settings --check` reads a script, standard input or the environment."""
    script = fresh("settings") / "job.sh"
    script.write_text(
        "#SBATCH --ntasks-per-node=64\nexport FI_CXI_DEFAULT_TX_SIZE=131072\n"
        "FI_CXI_DEFAULT_RX_SIZE=$SIZE srun ./app\n"
    )
    told = f"{script.name}:2: FI_CXI_DEFAULT_TX_SIZE=131072: the provider expects 16 to 16,384"
    done = tcam(arguments, "settings", "--check", script)
    check(done.returncode == 1 and told in " ".join(done.stdout.split()) and "64 ranks" in done.stdout, f"{done}")
    check("not checked" in done.stdout, done.stdout)
    found = json.loads(tcam(arguments, "settings", "--check", "--json=-", script).stdout)
    check([of["problem"] for of in found["findings"]] == ["replaced", "not-checked"], f"{found}")
    check(found["ranks_a_node"] == 64 and found["assumed_defaults"] == 1 and sum(found["bytes_a_rank"].values()) == 52 << 20, f"{found}")
    for text, code, told in (
        ("FI_CXI_DEFAULT_TX_SIZE=1024", 0, "1 setting checked: nothing to change."),
        ("FI_CXI_DEFAULT_TX_SIZE=$SIZE", 0, "not checked"),
        ("", 0, "No variable FI_CXI_... is set."),
        ("export A='x\ny", 125, "line 1: a quote is not closed"),
    ):
        done = tcam(arguments, "settings", "--check", "-", input=text)
        check(done.returncode == code and told in done.stdout + done.stderr, f"{text}: {done}")
    env = os.environ | {"FI_CXI_RX_MATCH_MODE": "Hybrid"}
    done = tcam(arguments, "settings", "--check", env=env)
    check(done.returncode == 1 and "environment: FI_CXI_RX_MATCH_MODE=Hybrid" in done.stdout, f"{done}")
    for words in (["--check", "nosuchfile"], ["--check", PLACE], ["--check", "--stack=x", script], [], ["--check", "--ppn=0"]):
        done = tcam(arguments, "settings", *words)
        check(done.returncode in (2, 125) and done.stderr and not done.stdout, f"{words}: {done}")
    script.write_bytes(b"\xff\xfe")
    done = tcam(arguments, "settings", "--check", script)
    check(done.returncode == 125 and "not text" in done.stderr, f"{done}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tcam", type=pathlib.Path, default=runs.TCAM)
    arguments = parser.parse_args()
    programs = runs.build("mpich")
    old_files_stay(arguments, programs)
    a_killed_tcam_leaves_its_files(arguments, programs)
    some_sizes_fail(arguments, programs)
    mistakes(arguments, programs)
    reports_elsewhere(arguments, programs)
    completed(arguments)
    irregular_files(arguments)
    one_writer(arguments)
    many_reports(arguments)
    other_tools(arguments)
    sibling_mode(arguments)
    memory_apart(arguments, programs)
    no_programs_there(arguments)
    numbers(arguments, programs)
    failed_programs(arguments, programs)
    processors(arguments, programs)
    output_goes_nowhere(arguments, programs)
    surroundings(arguments, programs)
    two_programs(arguments, programs)
    first_answer(arguments)
    settings_of_a_nic(arguments)
    others_write_too(arguments, programs)
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
