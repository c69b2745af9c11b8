# SPDX-License-Identifier: Apache-2.0
# Which GPUs the CUDA flavour is compiled for: TIGON_CUDA_ARCHITECTURES is a list of 80, 86, 89, 90a,
# 100, 120 (compute capabilities) and ptx (code that the driver compiles for a newer GPU), or one of
# native (this machine's GPU) and all (what a release has). Sets TIGON_CUDA_GENCODE.
set(_known 80 86 89 90a 100 120)

# This machine's GPUs, as the driver names them; the default without one is an H100's.
function(tigon_native_architectures out)
  find_program(TIGON_NVIDIA_SMI nvidia-smi)
  set(found)
  if(TIGON_NVIDIA_SMI)
    execute_process(COMMAND ${TIGON_NVIDIA_SMI} --query-gpu=compute_cap --format=csv,noheader
      OUTPUT_VARIABLE caps ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed)
    if(failed EQUAL 0)
      string(REPLACE "." "" caps "${caps}")
      string(REPLACE "\n" ";" caps "${caps}")
      list(TRANSFORM caps REPLACE "^90$" "90a")
      set(found ${caps})
      list(REMOVE_DUPLICATES found)
    endif()
  endif()
  if(NOT found)
    set(found 90a)
  endif()
  set(${out} ${found} PARENT_SCOPE)
endfunction()

set(TIGON_CUDA_ARCHITECTURES native CACHE STRING
  "GPUs to compile for: native, all, or a list of ${_known} and ptx")
if(TIGON_CUDA_ARCHITECTURES STREQUAL "native")
  tigon_native_architectures(_architectures)
  set(_native ${_architectures})  # whatever the machine has
elseif(TIGON_CUDA_ARCHITECTURES STREQUAL "all")
  set(_architectures ${_known} ptx)
else()
  set(_architectures ${TIGON_CUDA_ARCHITECTURES})
endif()

set(TIGON_CUDA_GENCODE)
foreach(architecture IN LISTS _architectures)
  if(architecture STREQUAL "ptx")
    # The newest that every later GPU can take: not 90a, whose code runs on that one only.
    list(APPEND TIGON_CUDA_GENCODE "SHELL:-gencode arch=compute_90,code=compute_90")
  elseif(architecture IN_LIST _known OR architecture IN_LIST _native)
    list(APPEND TIGON_CUDA_GENCODE
      "SHELL:-gencode arch=compute_${architecture},code=sm_${architecture}")
  else()
    message(FATAL_ERROR "TIGON_CUDA_ARCHITECTURES: '${architecture}' is none of native, all, "
      "${_known}, ptx")
  endif()
endforeach()
set(TIGON_CUDA_ARCHITECTURE_LIST ${_architectures})
message(STATUS "GPUs: ${_architectures}")
