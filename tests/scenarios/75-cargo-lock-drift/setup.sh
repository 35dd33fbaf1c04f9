#!/usr/bin/env bash
set -eu
command -v cargo >/dev/null || { echo 'cargo is not installed'; exit 77; }
mkdir -p app/src util/src
printf '[workspace]\nmembers = ["app", "util"]\nresolver = "2"\n' > Cargo.toml
printf '[package]\nname = "app"\nversion = "0.1.0"\nedition = "2021"\n[dependencies]\nutil = { path = "../util" }\n' > app/Cargo.toml
printf '[package]\nname = "util"\nversion = "0.3.0"\nedition = "2021"\n' > util/Cargo.toml
echo 'pub fn two() -> i32 { 2 }' > util/src/lib.rs
echo 'fn main() { assert_eq!(util::two(), 2); println!("1 passed, 0 failed"); }' > app/src/main.rs
cargo generate-lockfile --offline -q
sed -i 's/0\.3\.0/0.4.0/' util/Cargo.toml
