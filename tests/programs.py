#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Records LAMMPS, HPCC, NWChem and OpenFOAM, and tells how far `tcam advise` is right about them,
as a table in Markdown."""

import argparse
import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

from mpi import TARGET, TCAM

PLACE = TARGET / "programs"
WORTH, CLEAR = 0.95, 0.05
FOAM = {
    "WM_PROJECT_DIR": "/usr/share/openfoam",
    "WM_PROJECT": "OpenFOAM",
    "WM_PROJECT_VERSION": "1912",
    "FOAM_SIGFPE": "false",
}
LAMMPS = """units lj
atom_style atomic
lattice fcc 0.8442
region box block 0 12 0 12 0 12
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 1.44 87287 loop geom
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
neighbor 0.3 bin
neigh_modify delay 0 every 20 check no
fix 1 all nve
"""
BALANCE = "fix 2 all balance 20 1.0 shift xyz 5 1.1\nthermo 5\n"
NWCHEM = """start h2o
geometry
 O 0 0 0
 H 0 0.757 0.587
 H 0 -0.757 0.587
end
basis
 * library 6-31g*
end
dft
 xc b3lyp
end
task dft optimize
"""
DECOMPOSE = """FoamFile {{ version 2.0; format ascii; class dictionary; object decomposeParDict; }}
numberOfSubdomains {ranks};
method simple;
simpleCoeffs {{ n ({ranks} 1 1); delta 0.001; }}
"""

Program = collections.namedtuple("Program", "name ranks runs command prepare")


def inputs(text, name):
    return lambda place, ranks: (place / name).write_text(text)


def hpcc(place, ranks):
    example = pathlib.Path("/usr/share/doc/hpcc/examples/_hpccinf.txt").read_text()
    text = re.sub(r"^\d+(\s+Ns)$", r"1200\1", example, flags=re.M)
    (place / "hpccinf.txt").write_text(re.sub(r"^\d+(\s+Ps)$", rf"{ranks // 2}\1", text, flags=re.M))


def foam(place, ranks):
    (example,) = pathlib.Path("/usr/share/doc/openfoam-examples").glob("**/icoFoam/cavity/cavity")
    shutil.copytree(example, place, dirs_exist_ok=True)
    for path in place.rglob("*.gz"):
        subprocess.run(["gunzip", str(path)], check=True)
    (place / "system" / "decomposeParDict").write_text(DECOMPOSE.format(ranks=ranks))
    for command in (["blockMesh"], ["decomposePar", "-force"]):
        with (place / "prepare.log").open("a") as log:
            subprocess.run(command, cwd=place, env=os.environ | FOAM, stdout=log, stderr=log, check=True)


PROGRAMS = [
    Program("LAMMPS, Lennard-Jones", 8, 2, ["lmp", "-in", "in"], inputs(LAMMPS + "run 100\n", "in")),
    Program("LAMMPS, balanced", 16, 2, ["lmp", "-in", "in"], inputs(LAMMPS + BALANCE + "run 100\n", "in")),
    Program("HPCC", 4, 2, ["hpcc"], hpcc),
    Program("HPCC", 8, 2, ["hpcc"], hpcc),
    Program("NWChem, water", 4, 2, ["nwchem", "in"], inputs(NWCHEM, "in")),
    Program("NWChem, water", 8, 2, ["nwchem", "in"], inputs(NWCHEM, "in")),
    Program("OpenFOAM, cavity", 4, 2, ["icoFoam", "-parallel"], foam),
    Program("OpenFOAM, cavity", 8, 2, ["icoFoam", "-parallel"], foam),
]


def record(arguments, program):
    """Directories of its runs."""
    place = PLACE / f"{program.command[0]}-{program.ranks}"
    traces = [place / f"traces-{run}" for run in range(program.runs)]
    if arguments.again and all(path.is_dir() for path in traces):
        return traces
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    program.prepare(place, program.ranks)
    for path in traces:
        words = [arguments.tcam, "record", "--partial", f"--out={path}", "--", "mpirun"]
        command = [*map(str, words), "-n", str(program.ranks), *program.command]
        with (place / "output.log").open("a") as log:
            subprocess.run(
                command, cwd=place, env=os.environ | FOAM, stdout=log, stderr=log, timeout=300, check=True
            )
    return traces


def judged(told):
    """Errors of predicted times, whether answers are right, of clear ones, and how many are yes."""
    errors, right, clear, yes = [], [], [], 0
    for case in told["cases"]:
        for engines, answers in zip(case["engines"], case["answers"]):
            errors += [abs(of["predicted_ns"] / of["measured_ns"] - 1) for of in engines]
            times = {(of["engine"], of["queue"]): of["measured_ns"] for of in engines}
            for answer in answers:
                is_right = (answer["probability"] > 0.5) == answer["was"]
                ratio = times[answer["engine"], answer["queue"]] / times[answer["against"], answer["queue"]]
                right.append(is_right)
                yes += answer["was"]
                if abs(ratio - WORTH) > CLEAR:
                    clear.append(is_right)
    return errors, right, clear, yes


def line(name, advice, errors, right, clear, yes):
    within = sum(error <= 0.2 for error in errors)
    print(
        f"| {name} | {100 * within / len(errors):.0f} | {sorted(errors)[len(errors) // 2] * 100:.1f} "
        f"| {sum(right)} of {len(right)} | {sum(clear)} of {len(clear)} | {yes} | {advice} |"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tcam", type=pathlib.Path, default=TCAM)
    parser.add_argument("--again", action="store_true", help="records only what is not there")
    arguments = parser.parse_args()
    print(
        "| program | times within 20 %, % | off by, median % | answers right | clear ones | yes "
        "| advice without tables |\n|---|---|---|---|---|---|---|"
    )
    sums = [[], [], [], 0]
    for program in PROGRAMS:
        traces = record(arguments, program)
        words = ["advise", "--measure", "--partial", "--json=-", *traces]
        done = subprocess.run(
            [str(arguments.tcam), *map(str, words)], stdout=subprocess.PIPE, text=True, check=True
        )
        told = json.loads(done.stdout)
        of = judged(told)
        case = told["cases"][-1]
        advice = f"{case['advice'].split(':')[0]}; confidence {100 * case['confidence']:.0f} %"
        line(f"{program.name}, {program.ranks} ranks", advice, *of)
        sums = [one + other for one, other in zip(sums, of)]
    line("all", "", *sums)
    return 0


if __name__ == "__main__":
    sys.exit(main())
