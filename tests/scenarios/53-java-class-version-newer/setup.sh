#!/usr/bin/env bash
set -eu
command -v javac >/dev/null || { echo 'javac is not installed'; exit 77; }
command -v java >/dev/null || { echo 'java is not installed'; exit 77; }
mkdir -p src/app build/classes
echo 'package app; public class Main { public static void main(String[] a) { System.out.println("1 passed, 0 failed"); } }' > src/app/Main.java
javac -d build/classes src/app/Main.java
printf '\x00\x45' | dd of=build/classes/app/Main.class bs=1 seek=6 conv=notrunc status=none   # built by JDK 25 on a colleague's machine
