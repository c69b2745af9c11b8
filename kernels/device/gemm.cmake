# SPDX-License-Identifier: Apache-2.0
# tigon_gemm: the GEMM seam over cuBLASLt, or over Eigen for the host executor.
if(TIGON_CUDA)
  add_library(tigon_gemm STATIC device/cublaslt.cpp device/gemm_cuda.cpp)
  target_link_libraries(tigon_gemm PUBLIC tigon_device_headers CUDA::cudart_static ${CMAKE_DL_LIBS})
else()
  add_library(tigon_gemm STATIC device/gemm_host.cpp)
  target_link_libraries(tigon_gemm PUBLIC tigon_device_headers Threads::Threads PRIVATE Eigen3::Eigen)
  # Eigen under another name: its functions must not be merged with those that other files compile
  # for a lesser processor.
  target_compile_options(tigon_gemm PRIVATE ${TIGON_KERNEL_HOST_OPTIONS} -O3)
  target_compile_definitions(tigon_gemm PRIVATE Eigen=tigon_gemm_eigen)
  set_target_properties(tigon_gemm PROPERTIES POSITION_INDEPENDENT_CODE ON)  # for `tigon try`
endif()
