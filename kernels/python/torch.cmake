# SPDX-License-Identifier: Apache-2.0
# torch's operators (csrc), by the stable ABI of LibTorch: built against the headers of any torch from
# 2.10, they run with that one and later ones. They name no symbol of Python.
set(_torch ${TIGON_TORCH_INCLUDE})
if(NOT _torch)  # not kept: the next build may be for another Python
  find_package(Python3 COMPONENTS Interpreter)
  # A build that pip isolates does not see the packages beside it; headers are enough, so look there.
  execute_process(
    COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/find_torch.py
    OUTPUT_VARIABLE _torch OUTPUT_STRIP_TRAILING_WHITESPACE)
endif()
if(NOT EXISTS "${_torch}/torch/csrc/stable/library.h")
  message(STATUS "tigon: no torch 2.10 or later beside this Python: the package has NumPy only")
  return()
endif()
message(STATUS "tigon: operators for torch, from ${_torch}")

# What the operators need at run time is in the libtorch_cpu.so that torch has loaded. To link, an
# empty library of that name is enough.
file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/empty.cpp CONTENT "")
add_library(tigon_torch_stub SHARED EXCLUDE_FROM_ALL ${CMAKE_CURRENT_BINARY_DIR}/empty.cpp)
set_target_properties(tigon_torch_stub PROPERTIES OUTPUT_NAME torch_cpu
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/stub)

add_library(tigon_torch MODULE EXCLUDE_FROM_ALL
  csrc/call.cpp csrc/json.cpp csrc/library.cpp csrc/operators.cpp csrc/pass.cpp csrc/stream.cpp
  csrc/tensor.cpp)
set_target_properties(tigon_torch PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${TIGON_PYTHON_LIBRARIES}
  SKIP_BUILD_RPATH ON)
target_link_libraries(tigon_torch PRIVATE tigon_options ${CMAKE_DL_LIBS})
target_include_directories(tigon_torch SYSTEM PRIVATE ${_torch})
target_compile_definitions(tigon_torch PRIVATE TORCH_TARGET_VERSION=0x020a000000000000ULL)
target_link_options(tigon_torch PRIVATE -Wl,--no-as-needed $<TARGET_FILE:tigon_torch_stub>)
add_dependencies(tigon_torch tigon_torch_stub)
add_dependencies(tigon_python tigon_torch)
