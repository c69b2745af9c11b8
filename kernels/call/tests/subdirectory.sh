#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Configures a stranger's project that has Tigon's source in a folder of its own, without what only
# the harness needs.   subdirectory.sh SOURCE_FOLDER
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/project"
cat >"$work/project/CMakeLists.txt" <<CMAKE
cmake_minimum_required(VERSION 3.25)
project(stranger LANGUAGES CXX)
add_subdirectory($1 tigon)
file(WRITE \${CMAKE_BINARY_DIR}/main.cpp "#include <tigon.hpp>\nint main() { return tigon_op_at(0) == nullptr; }\n")
add_executable(stranger \${CMAKE_BINARY_DIR}/main.cpp)
target_link_libraries(stranger PRIVATE tigon::tigon-host)
CMAKE
without=()
for package in GTest benchmark CLI11 fmt nlohmann_json; do without+=("-DCMAKE_DISABLE_FIND_PACKAGE_$package=ON"); done
cmake -G Ninja -S "$work/project" -B "$work/build" "${without[@]}" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
# The consumer's own file compiles as C++20 because the target asks for it; the kernels are not built here.
ninja -C "$work/build" CMakeFiles/stranger.dir/main.cpp.o >"$work/log" 2>&1 ||
  { cat "$work/log" >&2; exit 1; }
echo "configured as a subdirectory"
