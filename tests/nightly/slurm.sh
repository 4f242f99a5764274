#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Runs a Slurm cluster on this machine, and programs that srun starts: tests/nightly/slurm.sh. The
# files of its daemons are in a separate directory, and the daemons end with this script.
. "$(dirname "$0")/../lib/setup.sh"
# shellcheck disable=SC2086
need_packages $build_packages slurmctld slurmd slurm-client munge
need_cargo
need_mpich
need_openmpi
# Time limits are those of a quiet machine, multiplied by this factor.
TCAM_TEST_SLOWNESS=$(python3 tests/lib/slowness.py)
export TCAM_TEST_SLOWNESS
[ "$(id -u)" = 0 ] || fail "Slurm's daemons are started as root here."
build_tcam
build_apps mpich "$venvs/mpich/bin/mpicc"
build_apps openmpi5 "$venvs/openmpi/bin/mpicc"

place=$(mktemp -d)
chmod 755 "$place"
end() {
    for daemon in slurmd slurmctld munged; do
        [ ! -f "$place/$daemon.pid" ] || kill "$(cat "$place/$daemon.pid")" 2>/dev/null || true
    done
    sleep 1
    rm -rf "$place"
}
trap end EXIT
trap 'exit 1' INT TERM

node=$(hostname -s)
head -c 1024 /dev/urandom >"$place/key"
chmod 400 "$place/key"
munged --force --key-file="$place/key" --socket="$place/socket" --pid-file="$place/munged.pid" \
    --seed-file="$place/seed" --log-file="$place/munged.log"
cat >"$place/slurm.conf" <<EOF
ClusterName=one
SlurmctldHost=$node
SlurmUser=root
SlurmctldPort=26817
SlurmdPort=26818
AuthType=auth/munge
AuthInfo=socket=$place/socket
CryptoType=crypto/munge
StateSaveLocation=$place/state
SlurmdSpoolDir=$place/spool
SlurmctldPidFile=$place/slurmctld.pid
SlurmdPidFile=$place/slurmd.pid
SlurmctldLogFile=$place/slurmctld.log
SlurmdLogFile=$place/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
ReturnToService=2
SlurmdParameters=config_overrides
NodeName=$node CPUs=8 State=UNKNOWN
PartitionName=all Nodes=$node Default=YES State=UP
EOF
echo "CgroupPlugin=cgroup/v1" >"$place/cgroup.conf"
mkdir "$place/state" "$place/spool"
export SLURM_CONF=$place/slurm.conf
slurmctld -f "$SLURM_CONF" -c
slurmd -f "$SLURM_CONF"
tries=$((60 * TCAM_TEST_SLOWNESS))
until sinfo -h -o %t 2>/dev/null | grep -q idle; do
    tries=$((tries - 1))
    [ $tries -gt 0 ] || { tail -n 20 "$place"/*.log >&2; fail "Slurm does not come up."; }
    sleep 0.5
done

# sweep NAME MPI PMI: a sweep and a run of 4 ranks that srun starts.
sweep() {
    say "$2 under srun --mpi=$3"
    "$tcam" sweep --prq 4,64 --provider "$target/provider" --out "$place/sweep-$1" -- \
        srun --mpi="$3" --overcommit -n 4 "$target/apps/$1/ring"
    "$tcam" run --report "$place/run-$1" --provider "$target/provider" -- \
        srun --mpi="$3" --overcommit -n 4 "$target/apps/$1/ring" >"$place/run.log" 2>&1 ||
        { cat "$place/run.log" >&2; fail "$2 does not run."; }
    grep -q '^ring: ok ranks=4' "$place/run.log" || { cat "$place/run.log" >&2; fail "no result"; }
    [ "$(find "$place/run-$1" -name '*.json' | wc -l)" = 4 ] || fail "There are not 4 reports."
}
sweep mpich "MPICH 5" pmi2
sweep openmpi5 "Open MPI 5" pmix
say "Slurm: all passed"
