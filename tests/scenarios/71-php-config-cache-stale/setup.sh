#!/usr/bin/env bash
set -eu
command -v php >/dev/null || { echo 'php is not installed'; exit 77; }
mkdir -p config bootstrap/cache
echo '<?php return ["name" => "shop"];' > config/app.php
cat > console <<'X'
<?php
// php console config:cache | config:clear
$cache = __DIR__ . '/bootstrap/cache/config.php';
if (($argv[1] ?? '') === 'config:clear') { @unlink($cache); echo "Configuration cache cleared\n"; exit(0); }
if (($argv[1] ?? '') === 'config:cache') {
  $c = []; foreach (glob(__DIR__ . '/config/*.php') as $f) { $c[basename($f, '.php')] = require $f; }
  file_put_contents($cache, '<?php return ' . var_export($c, true) . ';'); echo "Configuration cached\n"; exit(0);
}
fwrite(STDERR, "usage: php console config:cache|config:clear\n"); exit(2);
X
cat > test.php <<'X'
<?php
set_error_handler(function ($n, $m, $f, $l) { throw new ErrorException($m, 0, $n, $f, $l); });
$cache = __DIR__ . '/bootstrap/cache/config.php';
if (is_file($cache)) { $config = require $cache; $from = $cache; }
else { $config = []; foreach (glob(__DIR__ . '/config/*.php') as $f) { $config[basename($f, '.php')] = require $f; } $from = 'config/'; }
fwrite(STDERR, "configuration loaded from $from\n");
if ($config['queue']['retries'] !== 3) { exit(1); }
echo "1 passed, 0 failed\n";
X
php console config:cache >/dev/null
echo '<?php return ["retries" => 3];' > config/queue.php        # came with the last pull
