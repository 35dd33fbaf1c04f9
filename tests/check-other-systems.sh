#!/usr/bin/env bash
# Has the compiler look at what is meant for other systems than Linux, without anything of another system: in a copy of the
# workspace no condition of ours takes this system for Linux.  tests/check-other-systems.sh
#
# It proves that every name, import and signature there is one that exists, and that nothing there is unused. It cannot prove
# that this compiles on another system: the crates, types and system calls are still those of Linux, and what one of them
# lacks elsewhere, or has with another type, only tests/check-macos.sh finds. Tests are not compiled.
set -euo pipefail
cd "$(dirname "$0")/.."
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")/other-systems
# Always the same place, or else what was compiled before is never found again.
copy=$target/workspace
rm -rf "$copy"
trap 'rm -rf "$copy"' EXIT
mkdir -p "$copy"
cp -R Cargo.toml Cargo.lock crates "$copy"

# `any()` is a condition that is never true.
find "$copy"/crates/*/src -name '*.rs' -exec sed -i 's/target_os = "linux"/any()/g' {} +

cd "$copy"
CARGO_TARGET_DIR=$target RUSTFLAGS="-D warnings" cargo check --workspace --locked
