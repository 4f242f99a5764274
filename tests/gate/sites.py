#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks `tcam run --sites` and `tcam show --by site`. A library of its own (tests/apps/sites/count.c)
counts the receives of each program by return address, and binutils' addr2line names the lines. Each
post either enters the PRQ or takes a message from the UMQ, so the two columns of a line add up to the
receives that the line posted."""

import argparse
import collections
import csv
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

from lib import mpi as runs
from lib.checks import check, exit_code
from lib.slowness import within

PLACE = runs.TARGET / "sites-tests"
SOURCES = runs.ROOT / "tests" / "apps" / "sites"
COUNTER = PLACE / "count.so"
# Intel MPI, which `tests/nightly/impi.sh` installs, runs programs that were compiled for MPICH.
BINARIES = runs.MPIS | {"intel": runs.VENVS / "impi" / "bin"}
INTEL = {
    "I_MPI_ROOT": str(runs.VENVS / "impi"),
    "LD_LIBRARY_PATH": str(runs.VENVS / "impi" / "lib"),
    "I_MPI_OFI_LIBRARY": str(runs.VENVS / "mpich" / "lib" / "mpich" / "libfabric.so.1"),
}
# Functions of MPI that count.c counts.
COUNTED = {"MPI_Irecv", "MPI_Recv", "MPI_Sendrecv", "MPI_Start"}
# Lines and ranks of the large program.
MANY, MOST_RANKS = 2000, 64
RANKS = 4


def tcam(arguments, *words, variables=None):
    """Runs tcam. Returns the finished process."""
    return subprocess.run(
        [str(arguments.tcam), *map(str, words)], capture_output=True, text=True, check=False,
        timeout=within(240), env=os.environ | (variables or {}),
    )  # fmt: skip


def compile_to(name, *command):
    """Compiles a program or a library. Returns its path."""
    path = PLACE / name
    subprocess.run([*map(str, command), "-o", str(path)], check=True, cwd=PLACE)
    return path


def record(arguments, mpi, program, *more, ranks=RANKS, words=(), variables=None):
    """Records a program with --sites and counts its receives. Returns the directory of the recording,
    and the counted receives by function and line."""
    place, counted = PLACE / "recording", PLACE / "counted"
    for directory in (place, counted):
        shutil.rmtree(directory, ignore_errors=True)
    counted.mkdir()
    launcher = [BINARIES[mpi] / "mpiexec", "-n", ranks, *runs.OPTIONS.get((mpi, program.name), [])]
    preload = {"LD_PRELOAD": str(COUNTER), "SITES_COUNTED": str(counted)}
    if mpi == "intel":
        preload |= INTEL
    elif mpi != "mpich":
        # The launcher of Open MPI may be on another host, so it passes only its own variables.
        preload["OMPI_MCA_mca_base_env_list"] = "SITES_COUNTED"
    done = tcam(
        arguments, "run", "--trace", place, *(more or ["--sites"]), "--mpi", mpi, "--", *launcher, program,
        *words, variables=preload | (variables or {}),
    )  # fmt: skip
    check(done.returncode == 0, f"{program.name}: exit code {done.returncode}: {done.stderr[-800:]}")
    return place, truth(counted)


def named(path, address):
    """Returns the function and line of a call that returns to an address, as binutils name them."""
    words = ["addr2line", "-C", "-f", "-e", path, hex(address - 1)]
    name, line = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
    file, _, number = line.split(" ")[0].rpartition(":")
    name = re.sub(r"^__(\w+)_MOD_", r"\1::", name.split("(")[0].split(" ")[-1])
    return name, f"{pathlib.Path(file).name}:{number}"


def truth(counted):
    """Returns the counted receives of all ranks by function and line."""
    addresses = collections.Counter()
    for path in counted.iterdir():
        for text in path.read_text().splitlines():
            absolute, relative, count, module = text.split(" ", 3)
            with open(module, "rb") as file:
                is_fixed = file.read(18)[16] == 2
            addresses[module, int(absolute if is_fixed else relative, 16)] += int(count)
    lines = collections.Counter()
    for (module, address), count in addresses.items():
        lines[named(module, address)] += count
    return dict(lines)


def groups(arguments, place, *more):
    """Returns the receives by name of the place, as `tcam show --by site` has them, and its sentences."""
    done = tcam(arguments, "show", "--by", "site", "--json", "-", *more, place)
    if not check(done.returncode == 0, f"show: {done.stderr}"):
        return {}, []
    shown = json.loads(done.stdout)
    sums = {group["name"]: group["prq"]["added"] + group["umq"]["added"] for group in shown["groups"]}
    return sums, shown["readings"]


def by_line(sums):
    """Returns the receives by function and line of the innermost caller, for the counted functions."""
    lines = collections.Counter()
    for name, count in sums.items():
        found = re.match(r"(.+?) at (\S+:\d+).* \((MPI_\w+)\)$", name)
        if found and found[3] in COUNTED:
            lines[found[1].split("::<")[0], found[2]] += count
    return dict(lines)


def expect_truth(arguments, what, recorded):
    """Checks that the lines and their numbers are those that were counted."""
    place, counted = recorded
    found = by_line(groups(arguments, place)[0])
    check(counted and found == counted, f"{what}: {found} and not {counted}")
    return place


def each_mpi(arguments):
    """Programs in C and C++ with each MPI, without and with a fixed address, and stripped."""
    for mpi in arguments.mpi:
        cc, cxx = runs.MPIS[mpi] / "mpicc", runs.MPIS[mpi] / "mpicxx"
        optimised = ["-g", "-O2", "-I", SOURCES]
        for name, more in {"lines": ["-pie"], "fixed": ["-no-pie"]}.items():
            program = compile_to(name, cc, *optimised, *more, SOURCES / "lines.c")
            place = expect_truth(arguments, f"{mpi}, {name}", record(arguments, mpi, program))
        stripped(arguments, mpi, program, place)
        cxx = [cxx] if cxx.exists() else [cc, "-lstdc++"]
        program = compile_to("wrapped", *cxx[:1], *optimised, SOURCES / "wrapped.cpp", *cxx[1:])
        expect_truth(arguments, f"{mpi}, wrapped", record(arguments, mpi, program))
        callers(arguments, mpi, program)
        loads(arguments, mpi, cc, optimised)
        own_library(arguments, mpi, cc)
        print(f"    {mpi}", flush=True)


def own_library(arguments, mpi, cc):
    """A library of the program that wraps a function of MPI has places of its own, and callers are right
    behind frames of variable size. The numbers follow from the program."""
    library = compile_to("libsolver.so", cc, "-g", "-O1", "-shared", "-fPIC", SOURCES / "solver.c")
    program = compile_to("frames", cc, "-g", "-O1", SOURCES / "frames.c", library, f"-Wl,-rpath,{library.parent}")
    place, _ = record(arguments, mpi, program, "--sites", "2")
    found = collections.Counter()
    for name, count in groups(arguments, place)[0].items():
        called = re.match(r"post at solver.c:\d+, called by (post_\d+) at ", name)
        if called and "Irecv" in name:
            found[called[1]] += count
        else:
            check("Irecv" not in name, f"{mpi}, frames: {name}")
    check(found == {f"post_{size}": 50 * RANKS for size in (16, 24, 40, 56)}, f"{mpi}, frames: {found}")


def extensions(arguments):
    """Functions with the prefix MPIX_. The numbers follow from the program."""
    cc = runs.MPIS["mpich"] / "mpicc"
    library = compile_to("libmpi_streams.so", cc, "-g", "-shared", "-fPIC", SOURCES / "streams.c")
    program = compile_to(
        "extensions", cc, "-g", "-I", SOURCES, SOURCES / "extensions.c", library, f"-Wl,-rpath,{library.parent}"
    )
    place, _ = record(arguments, "mpich", program)
    sums, _ = groups(arguments, place)
    found = {name.split("(")[1][:-1]: count for name, count in sums.items() if "extensions.c" in name}
    functions = ["MPI_Irecv", "MPIX_Stream_irecv", "MPIX_Irecv_enqueue"]
    check({found.get(name) for name in functions} == {RANKS * 20 * (RANKS - 1)}, f"MPIX: {sums}")
    check(len([name for name in sums if "(MPIX_Stream_irecv)" in name]) == 2, f"MPIX, large counts: {sums}")


def lambdas(arguments):
    """Lambdas have the name of the function that contains them."""
    words = ["-g", "-O2", "-I", SOURCES, SOURCES / "lambdas.cpp", "-lstdc++"]
    program = compile_to("lambdas", runs.MPIS["mpich"] / "mpicc", *words)
    sums, _ = groups(arguments, record(arguments, "mpich", program)[0])
    found = {name.split(" at ")[0]: count for name, count in sums.items() if "MPI_Irecv" in name}
    each = RANKS * 20 * (RANKS - 1)
    check(found == {"halo::exchange::{lambda}": each, "main::{lambda}": each, "{lambda}": each}, f"lambdas: {sums}")


def apart(arguments):
    """Debug information in another file, or compressed. A file of another program is not used."""
    cc = runs.MPIS["mpich"] / "mpicc"
    source = ["-O2", "-I", SOURCES, SOURCES / "lines.c"]
    expected = by_line(groups(arguments, record(arguments, "mpich", compile_to("lines", cc, "-g", *source))[0])[0])
    for option in ("-gz", "-gsplit-dwarf"):
        program = compile_to("lines", cc, "-g", option, *source)
        found = by_line(groups(arguments, record(arguments, "mpich", program)[0])[0])
        check(expected and found == expected, f"{option}: {found} and not {expected}")
    debug, folder = PLACE / "lines.debug", PLACE / ".debug"
    folder.mkdir(exist_ok=True)
    for place in (debug, folder / debug.name):
        program = compile_to("lines", cc, "-g", *source)
        subprocess.run(["objcopy", "--only-keep-debug", program, debug], check=True)
        subprocess.run(["objcopy", "--strip-all", f"--add-gnu-debuglink={debug}", program], check=True)
        debug.rename(place)
        found = by_line(groups(arguments, record(arguments, "mpich", program)[0])[0])
        check(found == expected, f"{place}: {found} and not {expected}")
        compile_to("lines", cc, "-g", "-O0", *source[1:])
        subprocess.run(["objcopy", "--strip-all", f"--add-gnu-debuglink={place}", program], check=True)
        found = by_line(groups(arguments, record(arguments, "mpich", program)[0])[0])
        check(not found, f"{place} of another program: {found}")
        place.unlink()


def stripped(arguments, mpi, program, place):
    """A program without symbols, and one that has changed or is gone since its recording."""
    # The lines are in the directory of the recording.
    program.unlink()
    expected = by_line(groups(arguments, place)[0])
    (place / "sites.tcam").unlink()
    sums, readings = groups(arguments, place)
    check(expected and not by_line(sums), f"{mpi}: lines of a program that is gone: {sums}")
    check(any("file is not here" in text for text in readings), f"{mpi}: not said: {readings}")
    compile_to(program.name, runs.MPIS[mpi] / "mpicc", "-O0", "-no-pie", "-I", SOURCES, SOURCES / "lines.c")
    sums, readings = groups(arguments, place)
    check(any("changed since" in text for text in readings), f"{mpi}: not said: {readings}")
    check(any(name.startswith("fixed+0x") for name in sums), f"{mpi}: no offsets: {sums}")
    subprocess.run(["strip", program], check=True)
    place, counted = record(arguments, mpi, program)
    sums, readings = groups(arguments, place)
    posted = sum(count for name, count in sums.items() if re.search("Irecv|_Sendrecv|_Start", name))
    check(any(name.startswith("fixed+0x") for name in sums), f"{mpi}: a stripped program has names: {sums}")
    check(any("no debug information" in text for text in readings), f"{mpi}: not said: {readings}")
    check(posted == sum(counted.values()), f"{mpi}: {posted} receives, and not {counted}")


def damaged(arguments):
    """A file of lines that is damaged, cannot be read or is of another run is not used, and a sentence
    says so. The lines are those of the program."""
    program = compile_to("lines", runs.MPIS["mpich"] / "mpicc", "-g", "-I", SOURCES, SOURCES / "lines.c")
    place, _ = record(arguments, "mpich", program)
    lines = place / "sites.tcam"
    of_other_run = lines.read_bytes()
    place, counted = record(arguments, "mpich", program)
    whole = lines.read_bytes()
    cases = {
        "it is damaged": (whole[:-1000], b"\0" * 100, b""),
        "it is of another run": (of_other_run,),
        "it cannot be read": (b"\xff\xfe", None),
    }
    for why, contents in cases.items():
        for content in contents:
            lines.unlink(missing_ok=True)
            # A directory cannot be read, not even by root.
            lines.mkdir() if content is None else lines.write_bytes(content)
            sums, readings = groups(arguments, place)
            check(by_line(sums) == counted, f"{why}: {by_line(sums)} and not {counted}")
            said = [text for text in readings if f"sites.tcam is not used, because {why}" in text]
            check(len(said) == 1, f"not said: {why}: {readings}")
    lines.rmdir()


def callers(arguments, mpi, program):
    """Calls in a wrapper are told apart by their callers. The numbers follow from the program."""
    place, _ = record(arguments, mpi, program, "--sites", "2")
    sums, _ = groups(arguments, place)
    west = RANKS * 10 * (RANKS - 1)
    for caller, expected in (("west", west), ("east", 3 * west)):
        of = [count for name, count in sums.items() if f"called by halo::{caller} at wrapped.cpp" in name]
        check(sum(of) == expected, f"{mpi}: {of} receives of {caller}, and not {expected}: {sums}")
    place, _ = record(arguments, mpi, program, "--sites=16")
    sums, _ = groups(arguments, place)
    ends = {name.split("called by ")[-1].split(" at ")[0] for name in sums if "Irecv" in name}
    check(ends == {"main"}, f"{mpi}: the outermost callers are {ends}")


def loads(arguments, mpi, cc, optimised):
    """A module that is loaded later, threads, and LD_PRELOAD of the user and of the program."""
    plugin = compile_to("plugin.so", cc, *optimised, "-shared", "-fPIC", SOURCES / "plugin.c")
    program = compile_to("loads", cc, *optimised, "-pthread", SOURCES / "loads.c", "-ldl")
    mine = str(COUNTER)
    recorded = record(
        arguments, mpi, program, words=[plugin, mine], variables={"EXPECTED_PRELOAD": mine}
        | ({"OMPI_MCA_mca_base_env_list": "SITES_COUNTED;EXPECTED_PRELOAD"} if mpi != "mpich" else {}),
    )  # fmt: skip
    expect_truth(arguments, f"{mpi}, modules and threads", recorded)


def fortran(arguments):
    """Fortran, whose functions call those of C. Only Debian's Open MPI has it here."""
    if "openmpi4" not in arguments.mpi or not shutil.which("mpif90.openmpi"):
        print("    no Fortran: openmpi4 or mpif90 is missing", flush=True)
        return
    for module, more in {"mpi": [], "mpi_f08": ["-DF08"]}.items():
        words = ["mpif90.openmpi", "-cpp", "-g", "-O2", *more, SOURCES / "halo.f90"]
        program = compile_to(f"halo-{module}", *words)
        place, counted = record(arguments, "openmpi4", program)
        found = by_line(groups(arguments, place)[0])
        # count.c does not know the names of mpi_f08, which call those of C from the MPI's library.
        expected = {count for count in counted.values()} if more == [] else {RANKS * 20 * (RANKS - 1)}
        names = {("halo::exchange", "halo.f90:27"), ("sites", "halo.f90:44")}
        check(set(found) == names or {name for name, _ in found} >= {"halo::exchange"}, f"{module}: {found}")
        check(set(found.values()) == expected, f"{module}: {found} and not {counted}")
        if not more:
            check({line for _, line in found} == {line for _, line in counted}, f"{found}, {counted}")


def python(arguments):
    """mpi4py, whose module has no lines. It asks which functions its MPI has."""
    for mpi in arguments.mpi:
        interpreter = runs.MPIS[mpi] / "python"
        if mpi == "openmpi4":
            continue
        # MPI is not in the global scope there, so count.c would not find it.
        without_counter = {"LD_PRELOAD": ""}
        words = [SOURCES / "exchange.py"]
        place, _ = record(arguments, mpi, interpreter, words=words, variables=without_counter)
        sums, readings = groups(arguments, place)
        found = [count for name, count in sums.items() if name.startswith("mpi4py.MPI.Comm.Irecv in ")]
        expected = RANKS * 20 * (RANKS - 1)
        check(found == [expected], f"{mpi}: {found} receives of Python, and not {expected}: {sums}")
        check(any("lines of Python are unknown" in text for text in readings), f"{mpi}: {readings}")


def many(arguments):
    """2,000 lines on 64 ranks: each rank posts once at each line."""
    lines = "\n".join(f"    P({at});" for at in range(MANY))
    (PLACE / "many.c").write_text(
        "#include <mpi.h>\n"
        "static char bytes[8]; static MPI_Request requests[2000]; static int last, next;\n"
        "#define P(at) MPI_Irecv(bytes, 8, MPI_BYTE, last, at, MPI_COMM_WORLD, &requests[at])\n"
        "int main(int argc, char **argv) {\n    int rank, ranks;\n    MPI_Init(&argc, &argv);\n"
        "    MPI_Comm_rank(MPI_COMM_WORLD, &rank); MPI_Comm_size(MPI_COMM_WORLD, &ranks);\n"
        "    next = (rank + 1) % ranks; last = (rank + ranks - 1) % ranks;\n" + lines + "\n"
        "    for (int at = 0; at < 2000; at++) MPI_Send(bytes, 8, MPI_BYTE, next, at, MPI_COMM_WORLD);\n"
        "    MPI_Waitall(2000, requests, MPI_STATUSES_IGNORE);\n    MPI_Finalize();\n}\n"
    )
    program = compile_to("many", runs.MPIS["mpich"] / "mpicc", "-g", "-O1", PLACE / "many.c")
    place, _ = record(arguments, "mpich", program, ranks=MOST_RANKS)
    found = by_line(groups(arguments, place)[0])
    first = 9
    expected = {("main", f"many.c:{first + at}"): MOST_RANKS for at in range(MANY)}
    wrong = {line for line in expected if found.get(line) != MOST_RANKS}
    check(not wrong and len(found) == MANY, f"{len(wrong)} of {MANY} lines are wrong: {sorted(wrong)[:3]}, {sorted(set(found) - set(expected))}")


def fds(arguments, mpi="mpich", ranks=32):
    """The demo application: the receives of each line, and the lines in the sentences."""
    place = expect_truth(
        arguments, f"{mpi}, fds_gather", record(arguments, mpi, runs.build("mpich") / "fds_gather", ranks=ranks)
    )
    _, readings = groups(arguments, place)
    for text in ("posted by collect_step at fds_gather.c:", "received by collect_step at fds_gather.c:"):
        check(any(text in reading for reading in readings), f"{mpi}, fds_gather: no {text} in {readings}")


def intel(arguments):
    """Intel MPI."""
    program = compile_to("lines", runs.MPIS["mpich"] / "mpicc", "-g", "-O2", "-I", SOURCES, SOURCES / "lines.c")
    expect_truth(arguments, "Intel MPI, lines", record(arguments, "intel", program))
    fds(arguments, "intel", 8)


def senders(arguments):
    """With recorded sends, messages have the lines that sent them: counted at the senders."""
    program = runs.build("mpich") / "fds_gather"
    place, _ = record(arguments, "mpich", program, "--sites", "--set=trace_sends=on")
    done = tcam(arguments, "show", "--by", "site", "--json", "-", place)
    shown = json.loads(done.stdout)
    umq = {group["name"]: group["umq"]["added"] for group in shown["groups"] if "Isend" in group["name"]}
    prq = {group["name"]: group["prq"]["added"] for group in shown["groups"] if "Irecv" in group["name"]}
    check(len(umq) == 1 and list(umq)[0].startswith("send_step at fds_gather.c:"), f"senders: {umq}")
    check(len(prq) == 1 and list(prq)[0].startswith("collect_step at fds_gather.c:"), f"receivers: {prq}")
    check(any("were sent by send_step" in text for text in shown["readings"]), str(shown["readings"]))
    page = " ".join(tcam(arguments, "answer", place).stdout.split())
    check("were posted by collect_step at fds_gather.c:" in page, f"the answer has no line: {page}")
    html = PLACE / "page.html"
    done = tcam(arguments, "show", "--format", "html", "--out", html, place)
    text = html.read_text() if html.exists() else ""
    check("Which lines fill the queues" in text, f"the page has no lines: {done.stderr}")


def without(arguments):
    """Without --sites nothing is preloaded, and the recording is one of the previous version."""
    program = runs.build("mpich") / "ring"
    shutil.rmtree(PLACE / "plain", ignore_errors=True)
    launcher = map(str, runs.launch_here("mpich", 2))
    tcam(arguments, "run", "--trace", PLACE / "plain", "--", *launcher, program)
    traces = list((PLACE / "plain").glob("*.trace"))
    check(traces and all(path.read_bytes().startswith(b"tcam-trace 7\n") for path in traces), "version 7")
    done = tcam(arguments, "show", "--by", "site", PLACE / "plain")
    check(done.returncode != 0 and "--sites" in done.stderr, f"--by site without sites: {done.stderr}")
    done = tcam(arguments, "run", "--sites", "--", "true")
    check(done.returncode != 0 and "goes only with --trace" in done.stderr, done.stderr)
    # The program sets LD_PRELOAD itself, and keeps it.
    launcher = map(str, runs.launch_here("mpich", 2))
    words = ["run", "--sites", "--trace", PLACE / "plain", "--", *launcher, "env", "LD_PRELOAD=", program]
    done = tcam(arguments, *words)
    check(done.returncode == 0 and "no call sites are recorded" in done.stderr, done.stderr)


def options(arguments):
    """Options beside --by site, and several recordings of which one has no places."""
    program = compile_to("lines", runs.MPIS["mpich"] / "mpicc", "-g", "-I", SOURCES, SOURCES / "lines.c")
    place, counted = record(arguments, "mpich", program)
    out, plain = PLACE / "csv", PLACE / "plain"
    shutil.rmtree(out, ignore_errors=True)
    done = tcam(arguments, "show", "--by", "site", "--format", "csv", "--out", out, place)
    text = (out / "by-site.csv").read_text() if done.returncode == 0 else ""
    sums = {line["site"]: int(line["prq_added"]) + int(line["umq_added"]) for line in csv.DictReader(text.splitlines())}
    check(sums == groups(arguments, place)[0] and by_line(sums) == counted, f"csv: {sums}: {done.stderr}")
    done = tcam(arguments, "show", "--by", "site", "--ppn", 2, place)
    check(done.returncode != 0 and "--by has the queues of ranks" in done.stderr, f"--ppn: {done.stderr}")
    shutil.rmtree(plain, ignore_errors=True)
    tcam(arguments, "run", "--trace", plain, "--", *runs.launch_here("mpich", RANKS), program)
    for format, text in {"text": "post at lines.c:6 (MPI_Irecv)", "csv": "2-recording/by-site.csv"}.items():
        words = [f"--format={format}", *(["--out", out] if format == "csv" else [])]
        done = tcam(arguments, "show", "--by", "site", *words, plain, place)
        left_out = [line for line in done.stderr.splitlines() if line.endswith("it was recorded without --sites")]
        check(done.returncode == 0 and text in done.stdout, f"{format} of two: {done.stdout}{done.stderr}")
        check(len(left_out) == 1 and "plain" in left_out[0], f"{format}: not said: {done.stderr}")
        done = tcam(arguments, "show", "--by", "site", *words, plain, plain)
        check(done.returncode != 0 and "have no places" in done.stderr, f"{format} of none: {done.stderr}")
    for words in (["run", "--sites", place, "--", "true"], ["run", "--sites", 17, "--", "true"]):
        done = tcam(arguments, *words)
        check(done.returncode != 0 and "--sites --trace DIR -- COMMAND" in done.stderr, f"{words}: {done.stderr}")


def lost(arguments):
    """Ranks that lose LD_PRELOAD have no places. The command, the tables and the page say how many."""
    program = compile_to("lines", runs.MPIS["mpich"] / "mpicc", "-g", "-I", SOURCES, SOURCES / "lines.c")
    launcher = runs.MPIS["mpich"] / "mpiexec"
    some = [launcher, "-n", 3, program, ":", "-n", 1, "env", "-u", "LD_PRELOAD", program]
    of_all = [launcher, "-n", 4, "env", "-u", "LD_PRELOAD", program]
    for command, expected in ((some, "1 of 4 ranks has no places"), (of_all, "None of the 4 ranks has places")):
        place = PLACE / "lost"
        shutil.rmtree(place, ignore_errors=True)
        done = tcam(arguments, "run", "--sites", "--trace", place, "--", *command)
        expected += " in the program: libtcam-sites.so was not loaded"
        check(done.returncode == 0 and expected in done.stderr, f"not said by run: {done.stderr}")
        sums, readings = groups(arguments, place)
        check(any(text.startswith(expected) for text in readings), f"not said by show: {readings}")
        check(bool(by_line(sums)) == (command == some), f"places: {sums}")
        done = tcam(arguments, "answer", "--sites", "--repeat", 1, "--out", PLACE / "answer", "--", *command)
        check(expected in " ".join(done.stdout.split()), f"not on the page: {done.stdout}{done.stderr}")


def contained(arguments):
    """A program that contains its MPI (tests/apps/sites/own_mpi.c) runs as without --sites, and has no
    places. The command and the tables say why."""
    header = ["-g", "-O1", "-I", runs.VENVS / "mpich" / "include"]
    library = compile_to("own_mpi.o", "cc", *header, "-c", SOURCES / "own_mpi.c")
    archive = PLACE / "libown_mpi.a"
    subprocess.run(["ar", "rcs", archive, library], check=True)
    reason = "None of the 4 ranks has places in the program: no call of MPI went through"
    for name, more in {"linked": [], "exported": ["-rdynamic"]}.items():
        program = compile_to(name, "cc", *header, *more, SOURCES / "linked.c", archive, "-lfabric")
        done, place = with_and_without(arguments, program)
        check(done.returncode == 0 and reason in done.stderr, f"{name}: not said by run: {done.stderr}")
        sums, readings = groups(arguments, place)
        check(set(sums) == {"no call of the program"}, f"{name}: places: {sums}")
        check(any(text.startswith(reason) for text in readings), f"{name}: not said by show: {readings}")
    sources = [SOURCES / "linked.c", SOURCES / "own_mpi.c"]
    done, _ = with_and_without(arguments, compile_to("static", "cc", *header, "-static", "-DALONE", *sources))
    check("linked with -static" in done.stderr, f"static: not said: {done.stderr}")


def with_and_without(arguments, program):
    """Checks that a program ends and prints with --sites as without. Returns the finished run with
    --sites, and the directory of its recording."""
    outcomes = []
    for more in ([], ["--sites"]):
        place = PLACE / "contained"
        shutil.rmtree(place, ignore_errors=True)
        done = tcam(arguments, "run", *more, "--trace", place, "--", *runs.launch_here("mpich", RANKS), program)
        outcomes.append((done.returncode, done.stdout))
    check(outcomes[0] == outcomes[1] and "20 messages" in done.stdout, f"{program.name}: {outcomes}")
    return done, place


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tcam", type=pathlib.Path, default=runs.TCAM)
    parser.add_argument("--mpi", type=runs.words(list(runs.MPIS)), default=list(runs.MPIS))
    parser.add_argument("--intel", action="store_true", help="checks only Intel MPI (tests/nightly/impi.sh)")
    arguments = parser.parse_args()
    shutil.rmtree(PLACE, ignore_errors=True)
    PLACE.mkdir(parents=True)
    compile_to("count.so", "cc", "-O1", "-shared", "-fPIC", SOURCES / "count.c", "-ldl")
    if arguments.intel:
        intel(arguments)
        return exit_code()
    started = time.monotonic()
    each_mpi(arguments)
    fortran(arguments)
    python(arguments)
    many(arguments)
    fds(arguments)
    extensions(arguments)
    lambdas(arguments)
    apart(arguments)
    senders(arguments)
    without(arguments)
    damaged(arguments)
    options(arguments)
    lost(arguments)
    contained(arguments)
    print(f"{time.monotonic() - started:.0f} s")
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
