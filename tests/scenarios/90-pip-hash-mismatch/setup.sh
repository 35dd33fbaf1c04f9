#!/usr/bin/env bash
set -eu
command -v python3 >/dev/null || { echo 'python3 is not installed'; exit 77; }
mkwheel() { python3 - "$@" <<'PY'
import sys, zipfile, hashlib, base64
d, name, ver, req, script, code = sys.argv[1:7]
mod = name.replace("-", "_"); di = f"{mod}-{ver}.dist-info"; recs = []
with zipfile.ZipFile(f"{d}/{mod}-{ver}-py3-none-any.whl", "w") as z:
    def put(p, t):
        z.writestr(zipfile.ZipInfo(p, (2024, 1, 1, 0, 0, 0)), t)
        recs.append("%s,sha256=%s,%d" % (p, base64.urlsafe_b64encode(hashlib.sha256(t.encode()).digest()).decode().rstrip("="), len(t.encode())))
    put(f"{mod}/__init__.py", code + "\n")
    put(f"{di}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {ver}\n" + "".join(f"Requires-Dist: {r}\n" for r in req.split(",") if r))
    put(f"{di}/WHEEL", "Wheel-Version: 1.0\nGenerator: hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    if script: put(f"{di}/entry_points.txt", f"[console_scripts]\n{script}\n")
    z.writestr(zipfile.ZipInfo(f"{di}/RECORD", (2024, 1, 1, 0, 0, 0)), "\n".join(recs) + f"\n{di}/RECORD,,\n")
PY
}

mkdir wheelhouse
mkwheel wheelhouse acme-crypt 1.0.0 "" "" "def key(): return 1"
printf 'acme-crypt==1.0.0 --hash=sha256:%s\n' "$(sha256sum wheelhouse/acme_crypt-1.0.0-py3-none-any.whl | cut -d' ' -f1)" > requirements.txt
mkwheel wheelhouse acme-crypt 1.0.0 "" "" "import os
def key(): return 1"
cat > ci.sh <<'X'
set -e
rm -rf site
python3 -m pip install -q --disable-pip-version-check --no-index --no-cache-dir --find-links wheelhouse --require-hashes --target site -r requirements.txt
PYTHONPATH=site python3 -c 'import acme_crypt; assert acme_crypt.key() == 1; print("1 passed, 0 failed")'
X
