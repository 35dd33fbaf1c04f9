#!/usr/bin/env bash
set -eu
command -v python3 >/dev/null || { echo 'python3 is not installed'; exit 77; }
cat > scale.py <<'X'
import os, sys
port = "/dev/serial/by-id/usb-ACME_Scale_0042-if00"
if os.path.exists("scale.local"): port = open("scale.local").read().strip()
if port == "simulator":
    print("0.00 kg (simulator)"); sys.exit(0)
try: f = open(port, "rb", buffering=0)
except OSError as e: sys.exit("serial.serialutil.SerialException: [Errno %d] could not open port %s: %s" % (e.errno, port, e))
X
