#!/usr/bin/env bash
set -eu
command -v javac >/dev/null || { echo 'javac is not installed'; exit 77; }
command -v java >/dev/null || { echo 'java is not installed'; exit 77; }
mkdir -p src/com/acme/billing src/com/acme/app
echo 'package com.acme.billing; public class Invoice { public static int total() { return 7; } }' > src/com/acme/billing/Invoice.java
cat > src/com/acme/app/Main.java <<'X'
package com.acme.app;
import com.acme.biling.Invoice;
public class Main { public static void main(String[] a) { if (Invoice.total() != 7) System.exit(1); System.out.println("1 passed, 0 failed"); } }
X
