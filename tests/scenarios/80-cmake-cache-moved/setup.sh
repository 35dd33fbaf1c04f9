#!/usr/bin/env bash
set -eu
command -v cmake >/dev/null || { echo 'cmake is not installed'; exit 77; }
command -v cc >/dev/null || { echo 'cc is not installed'; exit 77; }
command -v make >/dev/null || { echo 'make is not installed'; exit 77; }
mkdir old
printf 'cmake_minimum_required(VERSION 3.10)\nproject(demo C)\nenable_testing()\nadd_executable(demo main.c)\nadd_test(NAME demo COMMAND demo)\n' > old/CMakeLists.txt
echo 'int main(void) { return 0; }' > old/main.c
cmake -S old -B old/build >/dev/null
mv old/* .; rmdir old          # the project folder was renamed
