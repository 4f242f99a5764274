# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# Sourced: the tables, host engines and overflow models that MPI programs run with.

# Calls a function with `--set SETTING...` of each.
with_each_setting() {
    # shellcheck disable=SC2154
    clusters=$target/clusters-of-4
    {
        echo '{"format":"tcam-clusters","version":1,"processes":4,"k":2}'
        for rank in 0 1 2 3; do
            echo "{\"rank\":$rank,\"prq\":[0,1,null,0],\"umq\":[1,null,0,1]}"
        done
    } >"$clusters"
    for settings in host_engine=list host_engine=tail-queues host_engine=rank-array host_engine=col-list \
        host_engine=list-pnp "host_engine=kmeans clusters=$clusters queue=linked" \
        "host_engine=hash table=cam" "host_engine=newmadeleine kernel_copy=off" \
        "host_engine=auto theta=8 refuse=any-source" \
        overflow=prefix overflow=sticky overflow=flow-control pool=node; do
        set -- "$1"
        for setting in $settings; do
            set -- "$@" --set "$setting"
        done
        "$@"
    done
}
