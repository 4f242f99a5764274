# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Sourced by asan.sh and tsan.sh: builds the provider with a sanitizer, and provides a compiler that
# builds clients with it. The compiler switch is unstable but works without a nightly toolchain. The
# sanitizer's run-time library comes from the Rust toolchain and is linked into each client.
set -eu
cd "$(dirname "$0")/../.."

# sanitize SHORT SANITIZER [FLAG...]: builds the provider into $target and puts the compiler first
# in PATH.
sanitize() {
    local short=$1 sanitizer=$2 host libraries runtime
    shift 2
    target=${CARGO_TARGET_DIR:-$PWD/target}/$short
    host=$(rustc -vV | sed -n 's/^host: //p')
    RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Zsanitizer=$sanitizer -Cdebug-assertions $*" \
        CARGO_TARGET_DIR=$target cargo build --quiet --release -p tcam-provider --target "$host"
    libraries=$(rustc --print sysroot)/lib/rustlib/$host/lib
    runtime=$(echo "$libraries"/librustc*_rt."$short".a)
    [ -f "$runtime" ] || { echo "no $sanitizer sanitizer in $libraries" >&2; exit 1; }
    mkdir -p "$target/provider" "$target/bin"
    cp "$target/$host/release/libtcam_fi.so" "$target/provider/libtcam-fi.so"
    # The compiler runs in separate steps to compile and to link, because gcc would link its own
    # run-time library.
    cat >"$target/bin/cc" <<END
#!/bin/sh
object=\$(mktemp --suffix=.o)
trap 'rm -f "\$object"' EXIT
for word; do
    case \$previous in -o) out=\$word ;; esac
    case \$word in *.c) source=\$word ;; esac
    previous=\$word
done
/usr/bin/cc -g -O1 -fsanitize=$sanitizer -c -o "\$object" "\$source" &&
    /usr/bin/cc -rdynamic -o "\$out" "\$object" -Wl,--whole-archive "$runtime" \\
        -Wl,--no-whole-archive -lfabric -lpthread -ldl -lm -lrt -lresolv
END
    chmod +x "$target/bin/cc"
    export SANITIZED=1 PATH=$target/bin:$PATH
}

# must_find CLIENT TEXT: fails unless this faulty client fails with TEXT in the sanitizer's report.
must_find() {
    cc -o "$target/bin/$1" "tests/fabric/$1.c"
    if FI_PROVIDER=tcam FI_PROVIDER_PATH=$target/provider "$target/bin/$1" >"$target/$1" 2>&1 ||
        ! grep -q "$2" "$target/$1"; then
        echo "the sanitizer does not see the provider: $1" >&2
        exit 1
    fi
}
