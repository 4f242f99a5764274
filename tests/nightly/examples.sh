#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Runs each example as its header says, with small sizes.
. "$(dirname "$0")/../lib/setup.sh"
# shellcheck disable=SC2086
need_packages $build_packages
need_mpich
need_pandas
[ -x "$tcam" ] || build_tcam
place=$target/examples
rm -rf "$place"
mkdir -p "$place"
cc -Wall -Wextra -Werror examples/hello.c -o "$place/hello" -lfabric
told=$(FI_PROVIDER_PATH=$target/provider "$place/hello")
[ "$told" = "hello, tag 7" ] || fail "hello.c: $told"
build_apps mpich "$venvs/mpich/bin/mpicc"
PATH=$(dirname "$tcam"):$venvs/mpich/bin:$PATH SIZES="8 10 12" \
    examples/capacity.sh "$place/study" "$target/apps/mpich/fds_gather" --steps 2 >"$place/study.log" 2>&1 ||
    { cat "$place/study.log" >&2; fail "capacity.sh failed."; }
grep -q "At 4,096 ranks:" "$place/study.log" || fail "capacity.sh predicts nothing"
"$venvs/pandas/bin/python" examples/capacity.py "$place/study/numbers-12" >"$place/pandas.log"
grep -q "messages came before their receive" "$place/pandas.log" || fail "capacity.py prints no share"
echo "passed"
