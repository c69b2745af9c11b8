# SPDX-License-Identifier: Apache-2.0
# The CUDA library is a build of its own, because a build has kernels for one kind of device.
find_program(TIGON_NVCC nvcc HINTS $ENV{CUDA_HOME}/bin PATHS /usr/local/cuda/bin)
if(TIGON_PYTHON_CUDA STREQUAL "AUTO")
  set(_cuda ${TIGON_NVCC})
else()
  set(_cuda ${TIGON_PYTHON_CUDA})
endif()
if(NOT _cuda)
  message(STATUS "tigon: no nvcc, or not asked for: the package has kernels for CPUs only")
  return()
endif()
if(NOT TIGON_NVCC)
  message(FATAL_ERROR "TIGON_PYTHON_CUDA is ON, but there is no nvcc in PATH or /usr/local/cuda")
endif()

set(TIGON_CUDA_ARCHITECTURES native CACHE STRING "GPUs to compile for; see kernels/README.md")
message(STATUS "tigon: kernels for GPUs (${TIGON_CUDA_ARCHITECTURES}) with ${TIGON_NVCC}")
include(ExternalProject)
ExternalProject_Add(tigon_cuda
  SOURCE_DIR ${PROJECT_SOURCE_DIR}
  BINARY_DIR ${PROJECT_BINARY_DIR}/cuda
  CMAKE_ARGS -DTIGON_HARNESS=OFF -DTIGON_CUDA=ON -DCMAKE_BUILD_TYPE=${CMAKE_BUILD_TYPE}
    -DCMAKE_CUDA_COMPILER=${TIGON_NVCC}
    -DTIGON_CUDA_ARCHITECTURES=${TIGON_CUDA_ARCHITECTURES}
  BUILD_COMMAND ${CMAKE_COMMAND} --build . --target tigon_shared
  INSTALL_COMMAND ${CMAKE_COMMAND} -E copy lib/libtigon.so ${TIGON_PYTHON_LIBRARIES}/libtigon.so
  USES_TERMINAL_BUILD ON
  BUILD_ALWAYS ON
  EXCLUDE_FROM_ALL ON)
add_dependencies(tigon_python tigon_cuda)
