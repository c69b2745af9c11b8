# SPDX-License-Identifier: Apache-2.0
# Kernels with planted faults. tigon-mutate writes a copy of every kernel source, with the faults of
# *.faults in it; a mutated library finds the copies before the tree's own files. Included before all
# folders: of steps that wait for nothing ninja starts those first that are written first, and these
# kernels compile longest.
add_executable(tigon-mutate harness/mutants/fault_file.cpp harness/mutants/mutate.cpp
  harness/mutants/mutate_main.cpp)
target_link_libraries(tigon-mutate PRIVATE tigon_signature)
target_compile_options(tigon-mutate PRIVATE ${TIGON_LIGHT_OPTIMIZE})
tigon_unity(tigon-mutate)

file(GLOB_RECURSE kernel_files CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}
  ${PROJECT_SOURCE_DIR}/kernels/*.h ${PROJECT_SOURCE_DIR}/kernels/*.cu)
list(FILTER kernel_files EXCLUDE REGEX "/(tests|examples|python)/")
set(kernel_sources ${kernel_files})
list(FILTER kernel_sources INCLUDE REGEX "\\.cu$")
# Kernels, and the registry of ops, which takes the options' defaults.
set(TIGON_MUTATED_SOURCES ${kernel_sources} kernels/call/registry.cpp
  CACHE INTERNAL "what compiles the copies")

# tigon_mutate(folder FAULTS...): target tigon_<folder>, copies with these faults in that folder of
# the build.
function(tigon_mutate folder)
  set(to ${PROJECT_BINARY_DIR}/${folder})
  list(TRANSFORM kernel_files PREPEND ${to}/ OUTPUT_VARIABLE copies)
  list(TRANSFORM kernel_files PREPEND ${PROJECT_SOURCE_DIR}/ OUTPUT_VARIABLE originals)
  add_custom_command(OUTPUT ${copies}
    COMMAND tigon-mutate ${PROJECT_SOURCE_DIR} ${to} ${ARGN} -- ${kernel_files}
    DEPENDS tigon-mutate ${ARGN} ${originals}
    COMMENT "Planting faults in ${folder}" VERBATIM)
  add_custom_target(tigon_${folder} DEPENDS ${copies})
endfunction()

# tigon_add_mutated_library(name folder SOURCES file...): what links it has all of these files, named
# from the root of the tree or of the build, over the copies in that folder. Nobody reads warnings
# about switches.
function(tigon_add_mutated_library name folder)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "SOURCES")
  set(wrappers)
  foreach(source IN LISTS arg_SOURCES)
    set(extension .cpp)
    if(TIGON_CUDA AND source MATCHES "\\.cu$")
      set(extension .cu)
    endif()
    set(wrapper ${PROJECT_BINARY_DIR}/${folder}/sources/${source}${extension})
    file(CONFIGURE OUTPUT ${wrapper} CONTENT "#include \"@source@\"\n" @ONLY)
    list(APPEND wrappers ${wrapper})
  endforeach()
  add_library(${name} INTERFACE)
  target_link_libraries(${name} INTERFACE $<LINK_LIBRARY:WHOLE_ARCHIVE,${name}_objects>)
  string(APPEND name _objects)
  add_library(${name} STATIC EXCLUDE_FROM_ALL ${wrappers})
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX)
  add_dependencies(${name} tigon_${folder})
  target_include_directories(${name} BEFORE PRIVATE ${PROJECT_BINARY_DIR}/${folder} ${PROJECT_BINARY_DIR})
  target_link_libraries(${name} PUBLIC tigon_device_headers)
  if(TIGON_CUDA)
    # On all cores at once, which changes the code a little: the tree's own kernels have one each.
    target_compile_options(${name} PRIVATE -w
      "$<$<COMPILE_LANGUAGE:CUDA>:${TIGON_CUDA_GENCODE};--split-compile=0>"
      $<$<COMPILE_LANGUAGE:CXX>:${TIGON_LIGHT_OPTIMIZE}>)
  else()
    target_compile_options(${name} PRIVATE
      ${TIGON_KERNEL_HOST_OPTIONS} ${TIGON_KERNEL_CHECKED_OPTIONS} -g0 -w)
  endif()
endfunction()

# The tree's own faults.
file(GLOB faults CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/harness/ops/*.faults)
tigon_mutate(mutated ${faults})
tigon_add_mutated_library(tigon_kernels_mutant mutated SOURCES ${TIGON_MUTATED_SOURCES})
