# SPDX-License-Identifier: Apache-2.0
# tigon_add_kernel_library(name [IN_PARTS] SOURCES file.cu...): compiles kernels; IN_PARTS for files
# that take long, a pass on each core.
#
# On the host: object library <name>_host; link it with tigon_simt. With TIGON_CUDA: object library
# <name>_cuda; link it with tigon_device_cuda.

include(CheckCXXSourceRuns)

# Vector flags for kernels, if this machine can run what they produce.
set(_saved_flags ${CMAKE_REQUIRED_FLAGS})
set(CMAKE_REQUIRED_FLAGS "-march=x86-64-v3")
check_cxx_source_runs("
  int main() {
    return !(__builtin_cpu_supports(\"avx2\") && __builtin_cpu_supports(\"fma\") &&
             __builtin_cpu_supports(\"bmi2\"));
  }" TIGON_HAVE_X86_64_V3)
set(CMAKE_REQUIRED_FLAGS ${_saved_flags})

# What the host's heavy loops are optimised with, and all that is compiled more often than its speed
# matters: kernels, because each edit compiles them again, and what reads words and writes text. -Og
# takes less time to compile than -O1. Under sanitizers both are -O1: instrumented Eigen
# takes minutes at -O3.
set(TIGON_HOST_OPTIMIZE -O3)
set(TIGON_LIGHT_OPTIMIZE -Og)
if(TIGON_SANITIZE)
  set(TIGON_HOST_OPTIMIZE -O1)
  set(TIGON_LIGHT_OPTIMIZE -O1)
endif()

# nvcc contracts a * b + c, too. -fno-math-errno and -fno-trapping-math let loops with selects be
# vectorised. Findings take their line from debug information and return addresses: no call may be
# merged with another or turned into a jump (addr2line of Debian 12 mistakes files in DWARF 5). A
# large frame must touch the guard page of the fiber's stack instead of stepping over it. Where GCC
# keeps a variable is of no use with lines only, and takes time to compile.
# Objects also go into a library, within which nobody replaces a function.
set(TIGON_KERNEL_HOST_OPTIONS
  ${TIGON_LIGHT_OPTIMIZE} -fno-semantic-interposition
  -g1 -gdwarf-4 -fstack-clash-protection -ffp-contract=fast -fno-math-errno -fno-trapping-math -fno-optimize-sibling-calls
  $<$<CXX_COMPILER_ID:GNU>:-fno-crossjumping>
  $<$<CXX_COMPILER_ID:GNU>:-fno-tree-tail-merge>
  $<$<CXX_COMPILER_ID:GNU>:-fno-var-tracking>
  $<$<CXX_COMPILER_ID:GNU>:-fno-var-tracking-assignments>
  $<$<CXX_COMPILER_ID:GNU>:-gno-variable-location-views>
  $<$<BOOL:${TIGON_HAVE_X86_64_V3}>:-march=x86-64-v3>)

# Kernels that can be checked: calls for memory accesses, and for what C++ leaves undefined, go to
# kernels/simt instead of sanitizers. Vectorised, merged or unrolled accesses would not be those that
# the GPU makes. A library alone is not made to be checked, nor is a build for real sanitizers.
set(TIGON_KERNEL_CHECKED_OPTIONS)
if(TIGON_HARNESS AND NOT TIGON_SANITIZE)
  set(TIGON_KERNEL_CHECKED_OPTIONS
    -fsanitize=thread -fsanitize=shift
    -fsanitize=$<IF:$<CXX_COMPILER_ID:GNU>,bounds-strict,bounds>  # GCC's bounds leaves a class's last array out
    $<$<CXX_COMPILER_ID:GNU>:--param=tsan-instrument-func-entry-exit=0>
    $<$<CXX_COMPILER_ID:GNU>:-fno-store-merging>
    $<$<CXX_COMPILER_ID:Clang>:SHELL:-mllvm -tsan-instrument-func-entry-exit=0>
    -fno-tree-vectorize -fno-tree-slp-vectorize -fno-unroll-loops)
endif()

set(TIGON_KERNEL_CUDA_OPTIONS
  ${TIGON_CUDA_GENCODE} "SHELL:-Xcompiler -Wall,-Wextra,-fno-gnu-unique"
  "SHELL:-Xptxas -warn-spills")

# A .cu file is host C++ through a one-line .cpp that includes it.
function(tigon_host_sources out)
  set(wrappers)
  foreach(source IN LISTS ARGN)
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} NORMALIZE)
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE relative)
    set(wrapper ${PROJECT_BINARY_DIR}/host_sources/${relative}.cpp)
    file(CONFIGURE OUTPUT ${wrapper} CONTENT "#include \"@source@\"\n" @ONLY)
    list(APPEND wrappers ${wrapper})
  endforeach()
  set(${out} ${wrappers} PARENT_SCOPE)
endfunction()

# Each of them twice, for the two parts of its file (kernels/signature/instantiate.h).
function(tigon_parts_of out)
  set(parts)
  foreach(source IN LISTS ARGN)
    foreach(part IN ITEMS 1 2)
      string(REGEX REPLACE "\\.cpp$" ".part${part}.cpp" wrapper ${source})
      file(CONFIGURE OUTPUT ${wrapper} CONTENT "#define TIGON_PART @part@\n#include \"@source@\"\n" @ONLY)
      list(APPEND parts ${wrapper})
    endforeach()
  endforeach()
  set(${out} ${parts} PARENT_SCOPE)
endfunction()

function(tigon_add_kernel_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "IN_PARTS" "" "SOURCES")
  if(NOT arg_SOURCES)
    message(FATAL_ERROR "tigon_add_kernel_library(${name}): SOURCES is missing")
  endif()
  if(TIGON_CUDA)
    add_library(${name}_cuda OBJECT ${arg_SOURCES})
    target_link_libraries(${name}_cuda PUBLIC tigon_device_headers)
    target_compile_options(${name}_cuda PRIVATE ${TIGON_KERNEL_CUDA_OPTIONS})
    return()
  endif()
  tigon_host_sources(sources ${arg_SOURCES})
  set(parts ${sources})
  if(arg_IN_PARTS)
    tigon_parts_of(parts ${sources})
  endif()
  add_library(${name}_host OBJECT ${parts})
  target_link_libraries(${name}_host PUBLIC tigon_device_headers)
  target_compile_options(${name}_host PRIVATE
    ${TIGON_KERNEL_HOST_OPTIONS} ${TIGON_KERNEL_CHECKED_OPTIONS})
  if(NOT TIGON_HARNESS)
    return()
  endif()
  # As it is written, for `tigon debug`; built when that is asked for.
  add_library(${name}_debug OBJECT EXCLUDE_FROM_ALL ${sources})
  target_link_libraries(${name}_debug PUBLIC tigon_device_headers)
  target_compile_options(${name}_debug PRIVATE ${TIGON_KERNEL_HOST_OPTIONS} -O0 -g3
    -fno-omit-frame-pointer)
  # Counting its lines and branches, for `tigon check --lines`; built when that is asked for.
  add_library(${name}_covered OBJECT EXCLUDE_FROM_ALL ${sources})
  target_link_libraries(${name}_covered PUBLIC tigon_device_headers)
  target_compile_options(${name}_covered PRIVATE ${TIGON_KERNEL_HOST_OPTIONS} -O0 --coverage
    -fprofile-update=atomic)
endfunction()

# tigon_add_family(name SOURCES file.cu... OPS op... [LIBRARIES library...]): what these ops share, as
# static libraries <name>_<flavour>, because those follow an op's object library into whatever links
# it. LIBRARIES is what they need beside the flavour's runtime.
function(tigon_add_family name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;OPS;LIBRARIES")
  tigon_add_kernel_library(${name}_objects SOURCES ${arg_SOURCES})
  set(runtime_host tigon_simt)
  set(runtime_debug tigon_simt)
  set(runtime_covered tigon_simt)
  set(runtime_cuda tigon_device_cuda)
  foreach(flavour IN ITEMS host debug covered cuda)
    if(NOT TARGET ${name}_objects_${flavour})
      continue()
    endif()
    add_library(${name}_${flavour} STATIC $<TARGET_OBJECTS:${name}_objects_${flavour}>)
    set_target_properties(${name}_${flavour} PROPERTIES LINKER_LANGUAGE CXX)
    if(flavour MATCHES "debug|covered")  # built for who asks
      set_target_properties(${name}_${flavour} PROPERTIES EXCLUDE_FROM_ALL ON)
    endif()
    target_link_libraries(${name}_${flavour} PUBLIC ${arg_LIBRARIES} ${runtime_${flavour}})
    foreach(op IN LISTS arg_OPS)
      target_link_libraries(tigon_${op}_${flavour} PUBLIC ${name}_${flavour})
    endforeach()
  endforeach()
endfunction()

# tigon_archive_kernels(): tigon_call_<flavour>, the call with the kernels of all ops, which are in an
# archive: a program that brings kernels of its own takes the others from it.
function(tigon_archive_kernels)
  foreach(flavour IN ITEMS host covered cuda)
    set(objects)
    foreach(op IN LISTS TIGON_OPS)
      if(TARGET tigon_${op}_${flavour})
        list(APPEND objects $<TARGET_OBJECTS:tigon_${op}_${flavour}>)
      endif()
    endforeach()
    if(NOT objects)
      continue()
    endif()
    add_library(tigon_kernels_${flavour} STATIC EXCLUDE_FROM_ALL ${objects})
    set_target_properties(tigon_kernels_${flavour} PROPERTIES LINKER_LANGUAGE CXX)
    target_link_libraries(tigon_kernels_${flavour}
      PUBLIC tigon_device_headers tigon_loss_rows_${flavour} tigon_linear_head_${flavour} tigon_gemm)
    add_library(tigon_call_${flavour} INTERFACE)
    target_link_libraries(tigon_call_${flavour}
      INTERFACE $<LINK_GROUP:RESCAN,tigon_call,tigon_kernels_${flavour}>)
  endforeach()
endfunction()
