# SPDX-License-Identifier: Apache-2.0
# cuDNN's fused attention, where its frontend was found (reference/cudnn/frontend.cmake). Without it
# attention is our own.
if(CUDNN_FRONTEND_INCLUDE_DIR)
  message(STATUS "Attention: cuDNN's, by ${CUDNN_FRONTEND_INCLUDE_DIR}/cudnn_frontend.h")
  target_sources(tigon_convergence_core PRIVATE cudnn_attention.cpp)
  tigon_use_cudnn_frontend(tigon_convergence_core cudnn_attention.cpp)
  target_link_libraries(tigon_convergence PUBLIC CUDA::nvrtc)
else()
  message(STATUS "Attention: our own kernel; cudnn_frontend.h was not found "
    "(pip install nvidia-cudnn-frontend, or set CUDNN_FRONTEND_INCLUDE_DIR)")
  target_sources(tigon_convergence_core PRIVATE cudnn_attention_absent.cpp)
endif()
