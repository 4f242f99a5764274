# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# Sourced by papers/advisor.sh: records real programs through Open MPI 4.1, two runs each.

export FOAM_SIGFPE=false WM_PROJECT=OpenFOAM WM_PROJECT_VERSION=1912 WM_PROJECT_DIR=/usr/share/openfoam

# Creates and enters the directory of a program: program NAME RANKS
program() {
    ranks=$2
    directory=$programs/$1-$ranks
    mkdir -p "$directory"
    cd "$directory"
}

# Records two runs of a command in the current directory, and returns to the root: recorded COMMAND...
recorded() {
    for run in 1 2; do
        timeout 300 "$tcam" run --partial --trace="traces-$run" -- mpirun -n "$ranks" "$@" \
            >>output.log 2>&1 || fail "$directory/output.log: $1 failed"
    done
    cd "$root"
}

lammps() {
    program "$1" "$2"
    cat >in <<'END'
units lj
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
END
    printf "%brun 100\n" "$3" >>in
    recorded lmp -in in
}

hpcc() {
    program hpcc "$1"
    sed -E -e 's/^[0-9]+([[:space:]]+Ns)$/1200\1/' -e "s/^[0-9]+([[:space:]]+Ps)\$/$((ranks / 2))\1/" \
        /usr/share/doc/hpcc/examples/_hpccinf.txt >hpccinf.txt
    recorded hpcc
}

nwchem() {
    program nwchem-water "$1"
    cat >in <<'END'
start h2o
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
END
    recorded nwchem in
}

openfoam() {
    program openfoam-cavity "$1"
    cp -r "$(find /usr/share/doc/openfoam-examples -path '*/icoFoam/cavity/cavity')/." .
    find . -name '*.gz' -exec gunzip {} +
    cat >system/decomposeParDict <<END
FoamFile { version 2.0; format ascii; class dictionary; object decomposeParDict; }
numberOfSubdomains $ranks;
method simple;
simpleCoeffs { n ($ranks 1 1); delta 0.001; }
END
    { blockMesh && decomposePar -force; } >output.log 2>&1
    recorded icoFoam -parallel
}

lammps lammps 8 ""
lammps lammps-balanced 16 'fix 2 all balance 20 1.0 shift xyz 5 1.1\nthermo 5\n'
for ranks in 4 8; do
    hpcc "$ranks"
    nwchem "$ranks"
    openfoam "$ranks"
done
