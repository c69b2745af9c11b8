# SPDX-License-Identifier: Apache-2.0
# tigon_cudnn_attention: cuDNN's fused attention, where its frontend is found. Without it attention is
# our own. Included before all folders, because it compiles long, as in harness/mutants/mutated.cmake.
include(reference/cudnn/frontend.cmake)
if(CUDNN_FRONTEND_INCLUDE_DIR)
  message(STATUS "Attention: cuDNN's, by ${CUDNN_FRONTEND_INCLUDE_DIR}/cudnn_frontend.h")
  add_library(tigon_cudnn_attention STATIC convergence/cudnn_attention.cpp)
  tigon_use_cudnn_frontend(tigon_cudnn_attention convergence/cudnn_attention.cpp)
else()
  message(STATUS "Attention: our own kernel; cudnn_frontend.h was not found "
    "(pip install nvidia-cudnn-frontend, or set CUDNN_FRONTEND_INCLUDE_DIR)")
  add_library(tigon_cudnn_attention STATIC convergence/cudnn_attention_absent.cpp)
endif()
target_link_libraries(tigon_cudnn_attention PUBLIC tigon_device_headers fmt::fmt PRIVATE tigon_naive)
