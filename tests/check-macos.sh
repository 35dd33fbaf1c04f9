#!/usr/bin/env bash
# Type-checks the whole workspace for macOS. Nothing is linked, so a fake C compiler that creates empty files is enough.
#
#   tests/check-macos.sh
set -euo pipefail
cd "$(dirname "$0")/.."
tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT

cat >"$tools/cc" <<'EOF'
#!/bin/sh
previous=
for argument in "$@"; do
  if [ "$previous" = -o ]; then : >"$argument"; fi
  previous=$argument
done
EOF
chmod +x "$tools/cc"
cp "$tools/cc" "$tools/ar"

export CC_aarch64_apple_darwin="$tools/cc" AR_aarch64_apple_darwin="$tools/ar"
RUSTFLAGS="-D warnings" cargo check --workspace --locked --target aarch64-apple-darwin
