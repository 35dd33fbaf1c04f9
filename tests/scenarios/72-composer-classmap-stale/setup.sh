#!/usr/bin/env bash
set -eu
command -v php >/dev/null || { echo 'php is not installed'; exit 77; }
command -v composer >/dev/null || { echo 'composer is not installed'; exit 77; }
export COMPOSER_HOME="$PWD/.composer"
mkdir -p src tests
echo '{"name":"acme/shop","autoload":{"classmap":["src/"]},"config":{"classmap-authoritative":true}}' > composer.json
echo '<?php namespace App; class Cart { public function total() { return 3; } }' > src/Cart.php
printf '%s\n' '<?php' 'require __DIR__ . "/../vendor/autoload.php";' '$i = new App\Invoice(new App\Cart());' 'if ($i->sum() !== 3) { exit(1); }' 'echo "1 passed, 0 failed\n";' > tests/run.php
composer --no-interaction --quiet dump-autoload
echo '<?php namespace App; class Invoice { public function __construct(private Cart $c) {} public function sum() { return $this->c->total(); } }' > src/Invoice.php
rm -rf .composer
