#!/usr/bin/env bash
set -eu
command -v python3 >/dev/null || { echo 'python3 is not installed'; exit 77; }
mkdir run
cat > server.py <<'X'
import os, socket
s = socket.socket(socket.AF_UNIX)
s.bind("run/app.sock")
s.listen(1)
print("listening on run/app.sock")
s.close(); os.unlink("run/app.sock")
X
python3 -c 'import socket; s = socket.socket(socket.AF_UNIX); s.bind("run/app.sock")'     # crashed: never unlinked
