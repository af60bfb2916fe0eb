#!/bin/sh
# The native memory and barriers, and the memory that the threads of a measured transfer share,
# under Miri, which finds undefined behaviour and data races.
# Miri comes with a nightly toolchain only, and builds a standard library from crates that it
# downloads: where it cannot, this says so and succeeds.
set -eu
cd "$(dirname "$0")/../.."
if ! cargo +nightly miri --version >/dev/null 2>&1; then
    echo "miri: skipped (install it with: rustup +nightly component add miri)"
    exit 0
fi
if ! cargo +nightly miri setup >/dev/null 2>&1; then
    echo "miri: skipped (see why with: cargo +nightly miri setup)"
    exit 0
fi
# The clock and the number of processors are the host's.
export MIRIFLAGS="${MIRIFLAGS:-} -Zmiri-disable-isolation"
cargo +nightly miri test -p sme-memory -p sme-barrier --test native
cargo +nightly miri test -p sme --lib --no-default-features -- coherence::measure::ring coherence::measure::pair
