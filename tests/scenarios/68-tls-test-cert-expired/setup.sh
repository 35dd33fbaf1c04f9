#!/usr/bin/env bash
set -eu
command -v node >/dev/null || { echo 'node is not installed'; exit 77; }
command -v openssl >/dev/null || { echo 'openssl is not installed'; exit 77; }
mkdir -p tests/certs
cat > tests/certs/regenerate.sh <<'X'
set -e
cd "$(dirname "$0")"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout dev.key -out dev.crt -days 30 -subj /CN=localhost -addext subjectAltName=DNS:localhost 2>/dev/null
echo "new test certificate"
X
sh tests/certs/regenerate.sh >/dev/null
cat > tests/tls.test.js <<'X'
const tls = require('tls'), fs = require('fs');
const cert = fs.readFileSync('tests/certs/dev.crt'), key = fs.readFileSync('tests/certs/dev.key');
const srv = tls.createServer({ cert, key }, (s) => s.end('ok'));
srv.on('tlsClientError', () => {});
srv.listen(0, '127.0.0.1', () => {
  const c = tls.connect({ port: srv.address().port, host: '127.0.0.1', servername: 'localhost', ca: cert }, () => { console.log('1 passed, 0 failed'); c.end(); srv.close(); });
  c.on('error', (e) => { console.error('tls: request to https://localhost failed:', e.code, e.message); process.exit(1); });
});
X
# the checked-in certificate ran out
cd tests/certs
printf '[ca]\ndefault_ca=d\n[d]\ndatabase=i\nserial=s\nnew_certs_dir=.\ndefault_md=sha256\npolicy=p\nunique_subject=no\nx509_extensions=e\n[p]\nCN=supplied\n[e]\nsubjectAltName=DNS:localhost\n' > ca.cnf
: > i; echo 01 > s
openssl req -new -key dev.key -subj /CN=localhost -out d.csr 2>/dev/null
openssl ca -batch -selfsign -notext -config ca.cnf -keyfile dev.key -in d.csr -out dev.crt -startdate 20230101000000Z -enddate 20240101000000Z 2>/dev/null
rm -f ca.cnf i* s s.old d.csr 01.pem
