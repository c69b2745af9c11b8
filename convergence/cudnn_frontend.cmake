# cuDNN's fused attention, where cudnn_frontend.h is: in CUDNN_FRONTEND_INCLUDE_DIR, in a system
# folder, or where the Python package nvidia-cudnn-frontend has it. Without it attention is our own.
set(places)
foreach(python IN ITEMS $ENV{TIGON_PYTHON} python3)
  execute_process(
    COMMAND ${python} -c "import site, sysconfig
for folder in {sysconfig.get_path('purelib'), sysconfig.get_path('platlib'), site.getusersitepackages()}:
    print(folder + '/include')"
    OUTPUT_VARIABLE found ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  string(REPLACE "\n" ";" found "${found}")
  list(APPEND places ${found})
endforeach()
find_path(CUDNN_FRONTEND_INCLUDE_DIR cudnn_frontend.h
  HINTS ${places} ${CUDAToolkit_INCLUDE_DIRS}
  DOC "Folder of cudnn_frontend.h; pip install nvidia-cudnn-frontend")
if(CUDNN_FRONTEND_INCLUDE_DIR)
  message(STATUS "Attention: cuDNN's, by ${CUDNN_FRONTEND_INCLUDE_DIR}/cudnn_frontend.h")
  target_sources(tigon_convergence_core PRIVATE cudnn_attention.cpp)
  # Calls without arithmetic, in templates that take long to optimise.
  set_source_files_properties(cudnn_attention.cpp PROPERTIES
    COMPILE_DEFINITIONS CUDNN_FRONTEND_SKIP_JSON_LIB
    COMPILE_OPTIONS "-isystem${CUDNN_FRONTEND_INCLUDE_DIR};-O1")
  # For engines of the frontend's own, which attention does not use.
  target_link_libraries(tigon_convergence_core PUBLIC CUDA::nvrtc)
  target_link_libraries(tigon_convergence PUBLIC CUDA::nvrtc)
else()
  message(STATUS "Attention: our own kernel; cudnn_frontend.h was not found "
    "(pip install nvidia-cudnn-frontend, or set CUDNN_FRONTEND_INCLUDE_DIR)")
  target_sources(tigon_convergence_core PRIVATE cudnn_attention_absent.cpp)
endif()
