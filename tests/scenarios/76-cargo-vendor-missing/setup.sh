#!/usr/bin/env bash
set -eu
command -v cargo >/dev/null || { echo 'cargo is not installed'; exit 77; }
mkdir -p src .cargo
printf '[package]\nname = "v"\nversion = "0.1.0"\nedition = "2021"\n[dependencies]\nitoa = "=1.0.11"\n' > Cargo.toml
echo 'fn main() { assert_eq!(itoa::Buffer::new().format(42u8), "42"); println!("1 passed, 0 failed"); }' > src/main.rs
cargo generate-lockfile -q
printf '[source.crates-io]\nreplace-with = "vendored-sources"\n\n[source.vendored-sources]\ndirectory = "vendor"\n' > .cargo/config.toml
printf 'vendor/\ntarget/\n' > .gitignore
