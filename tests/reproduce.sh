#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# docs/colpnp.md and docs/colpnp.csv anew, and from them the verdicts in docs/papers.md.
# With --from CSV nothing is measured: `tests/reproduce.sh --from docs/colpnp.csv` after a
# change of words. RANKS is how many share the machine through MPICH.
. "$(dirname "$0")/setup.sh"
# shellcheck disable=SC2086
need_packages $build_packages
need_cargo
build_tcam
if [ $# -gt 0 ]; then
    "$tcam" reproduce colpnp --out docs "$@"
else
    need_mpich
    build_apps mpich "$venvs/mpich/bin/mpicc"
    "$tcam" reproduce colpnp --out docs -- \
        "$venvs/mpich/bin/mpiexec" -n "${RANKS:-64}" "$target/apps/mpich/collectives"
fi
begin='<!-- verdicts: begin -->'
end='<!-- verdicts: end -->'
verdicts=$target/verdicts.md
awk '/^## /{ on = $2 == "Verdicts"; next } on' docs/colpnp.md >"$verdicts"
awk -v begin="$begin" -v end="$end" -v file="$verdicts" '
    $0 == end { inside = 0 }
    !inside { print }
    $0 == begin { inside = 1; while ((getline line < file) > 0) print line }
' docs/papers.md >"$target/papers.md"
cp "$target/papers.md" docs/papers.md
