#!/usr/bin/env bash
set -eu
mkdir -p src
echo 'public class Main { public static int twice(int x) { return 2 * x; } }' > src/Main.java
cat > gradlew <<'X'
#!/bin/sh
# stands in for the Gradle wrapper
set -e
echo "> Task :test"
grep -q twice src/Main.java
echo "BUILD SUCCESSFUL in 0s"
X
chmod 644 gradlew      # the sources came as a zip: no modes
