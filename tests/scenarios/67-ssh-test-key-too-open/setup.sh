#!/usr/bin/env bash
set -eu
command -v ssh-keygen >/dev/null || { echo 'ssh-keygen is not installed'; exit 77; }
mkdir -p test/keys
ssh-keygen -q -t ed25519 -N '' -C 'throw-away key of the tests' -f test/keys/ci_ed25519
echo 'release 1.0' > release.txt
cat > sign-test.sh <<'X'
set -e
ssh-keygen -Y sign -q -f test/keys/ci_ed25519 -n file < release.txt > release.sig
ssh-keygen -Y check-novalidate -n file -s release.sig < release.txt
X
chmod 644 test/keys/ci_ed25519      # git keeps no 0600
