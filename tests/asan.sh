#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The C clients and the bad days with AddressSanitizer in the provider and in the clients:
# every access to memory is checked. The compiler's own unstable switch, so no nightly is
# needed; the run-time library is that of the Rust toolchain, linked into each client.
#   tests/asan.sh [CLIENT...]
set -eu
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-$PWD/target}/asan
host=$(rustc -vV | sed -n 's/^host: //p')
RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Zsanitizer=address -Cdebug-assertions" CARGO_TARGET_DIR=$target \
    cargo build --quiet --release -p provider --target "$host"
libraries=$(rustc --print sysroot)/lib/rustlib/$host/lib
runtime=$(echo "$libraries"/librustc*_rt.asan.a)
[ -f "$runtime" ] || { echo "no AddressSanitizer in $libraries" >&2; exit 1; }
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
/usr/bin/cc -g -O1 -fsanitize=address -c -o "\$object" "\$source" &&
    /usr/bin/cc -rdynamic -o "\$out" "\$object" -Wl,--whole-archive "$runtime" \\
        -Wl,--no-whole-archive -lfabric -lpthread -ldl -lm -lrt -lresolv
END
chmod +x "$target/bin/cc"
export SANITIZED=1 PATH=$target/bin:$PATH
# Leaks are libfabric's, which keeps what it loaded. An error ends the process, as a crash.
export ASAN_OPTIONS=detect_leaks=0:abort_on_error=0:exitcode=99:detect_stack_use_after_return=1
# What it must find: a message that is longer than the memory of its receive.
cc -o "$target/bin/overrun" tests/fabric/overrun.c
if FI_PROVIDER=tcam FI_PROVIDER_PATH=$target/provider "$target/bin/overrun" >"$target/overrun" 2>&1 ||
    ! grep -q 'heap-buffer-overflow' "$target/overrun"; then
    echo "AddressSanitizer does not see the provider" >&2
    exit 1
fi
tests/fabric/run.sh "$target/provider" "$@"
[ $# -gt 0 ] || tests/faults.sh "$target/provider" 1
