# SPDX-License-Identifier: Apache-2.0
# libtigon or libtigon-host out of the same objects as the programs of the tree. Only the functions of
# tigon.h can be seen from outside; of other libraries only those of the system are needed.
if(TIGON_SANITIZE)  # a library that is loaded into any program cannot bring a sanitizer
  return()
endif()
if(TIGON_CUDA)
  set(_flavour cuda)
  set(_name tigon)
  set(_runtime tigon_device_cuda)
else()
  set(_flavour host)
  set(_name tigon-host)
  set(_runtime tigon_simt)
endif()

set(_objects $<TARGET_OBJECTS:tigon_call> $<TARGET_OBJECTS:tigon_erase>)
set(_archives tigon_gemm tigon_loss_rows_${_flavour} tigon_linear_head_${_flavour} ${_runtime})
foreach(op IN LISTS TIGON_OPS)
  list(APPEND _objects $<TARGET_OBJECTS:tigon_${op}_${_flavour}>)
endforeach()

set(_exports ${CMAKE_CURRENT_SOURCE_DIR}/exports.map)
add_library(tigon_shared SHARED ${_objects})
set_target_properties(tigon_shared PROPERTIES
  OUTPUT_NAME ${_name} EXPORT_NAME ${_name} VERSION ${PROJECT_VERSION} SOVERSION 1
  LINKER_LANGUAGE CXX LINK_DEPENDS ${_exports}
  LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
target_link_libraries(tigon_shared PRIVATE ${_archives})
target_link_options(tigon_shared PRIVATE
  -Wl,--version-script=${_exports} -Wl,--no-undefined -static-libstdc++ -static-libgcc)

# The names that tigon.h marks, a line each.
set(_functions ${CMAKE_CURRENT_BINARY_DIR}/functions.txt)
file(STRINGS tigon.h _lines REGEX "^TIGON_API .*[ *]tigon_[a-z_]+\\(")
list(TRANSFORM _lines REPLACE ".*[ *](tigon_[a-z_]+)\\(.*" "\\1")
list(JOIN _lines "\n" _lines)
file(CONFIGURE OUTPUT ${_functions} CONTENT "@_lines@\n" @ONLY)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/tigon.h)

# One object whose other symbols are local, so that nothing of it can clash with a program's own.
set(_object ${CMAKE_CURRENT_BINARY_DIR}/${_name}.o)
set(_archive_files)
foreach(archive IN LISTS _archives)
  list(APPEND _archive_files $<TARGET_FILE:${archive}>)
endforeach()
add_custom_command(OUTPUT ${_object}
  COMMAND ${CMAKE_LINKER} -r --force-group-allocation -o ${_object} ${_objects}
    --start-group ${_archive_files} --end-group
  COMMAND ${CMAKE_OBJCOPY} --keep-global-symbols=${_functions} ${_object}
  DEPENDS ${_objects} ${_archives}
  COMMAND_EXPAND_LISTS VERBATIM
  COMMENT "Linking one object of lib${_name}.a")
add_library(tigon_static STATIC ${_object})
set_source_files_properties(${_object} PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
set_target_properties(tigon_static PROPERTIES
  OUTPUT_NAME ${_name} EXPORT_NAME ${_name}-static LINKER_LANGUAGE CXX
  ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
target_link_libraries(tigon_static INTERFACE Threads::Threads ${CMAKE_DL_LIBS})
if(TIGON_CUDA)
  target_link_libraries(tigon_static INTERFACE CUDA::cudart_static)
endif()

add_library(tigon::${_name} ALIAS tigon_shared)
add_library(tigon::${_name}-static ALIAS tigon_static)
foreach(target IN ITEMS tigon_shared tigon_static)
  target_compile_features(${target} INTERFACE cxx_std_20)
  target_include_directories(${target} INTERFACE
    $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}>    # tigon.h
    $<BUILD_INTERFACE:${CMAKE_CURRENT_BINARY_DIR}>    # tigon.hpp
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>          # the signatures
    $<INSTALL_INTERFACE:include> $<INSTALL_INTERFACE:include/tigon>)
endforeach()
