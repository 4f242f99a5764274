#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The threaded C clients with ThreadSanitizer in the provider and in the clients: every pair of
# accesses of two threads without an order between them is an error. The compiler's own unstable
# switch, so no nightly is needed; the run-time library is that of the Rust toolchain, linked into
# each client. Rust's own library and libfabric are not instrumented: tests/tsan.suppressions has
# what that costs, each with its reason.
#   tests/tsan.sh [CLIENT...]
set -eu
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-$PWD/target}/tsan
host=$(rustc -vV | sed -n 's/^host: //p')
RUSTC_BOOTSTRAP=1 CARGO_TARGET_DIR=$target \
    RUSTFLAGS="-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer -Cdebug-assertions" \
    cargo build --quiet --release -p provider --target "$host"
libraries=$(rustc --print sysroot)/lib/rustlib/$host/lib
runtime=$(echo "$libraries"/librustc*_rt.tsan.a)
[ -f "$runtime" ] || { echo "no ThreadSanitizer in $libraries" >&2; exit 1; }
mkdir -p "$target/provider" "$target/bin"
cp "$target/$host/release/libtcam_fi.so" "$target/provider/libtcam-fi.so"
# gcc would link its own run-time library: it only compiles, and then only links.
cat >"$target/bin/cc" <<END
#!/bin/sh
object=\$(mktemp --suffix=.o)
trap 'rm -f "\$object"' EXIT
for word; do
    case \$previous in -o) out=\$word ;; esac
    case \$word in *.c) source=\$word ;; esac
    previous=\$word
done
/usr/bin/cc -g -O1 -fsanitize=thread -c -o "\$object" "\$source" &&
    /usr/bin/cc -rdynamic -o "\$out" "\$object" -Wl,--whole-archive "$runtime" \\
        -Wl,--no-whole-archive -lfabric -lpthread -ldl -lm -lrt -lresolv
END
chmod +x "$target/bin/cc"
export SANITIZED=1 PATH=$target/bin:$PATH
# A child of a process with threads goes on, as without. An error ends the process at its exit.
export TSAN_OPTIONS=exitcode=66:die_after_fork=0:suppressions=$PWD/tests/tsan.suppressions
# What it must find: two threads on an endpoint that has no lock.
cc -o "$target/bin/race" tests/fabric/race.c
if FI_PROVIDER=tcam FI_PROVIDER_PATH=$target/provider "$target/bin/race" >"$target/race" 2>&1 ||
    ! grep -q 'WARNING: ThreadSanitizer: data race' "$target/race"; then
    echo "ThreadSanitizer does not see the provider" >&2
    exit 1
fi
[ $# -gt 0 ] || set -- threads auto shared shared_av rma trigger atomic busy
tests/fabric/run.sh "$target/provider" "$@"
