# SPDX-License-Identifier: Apache-2.0
# Finds cuDNN's header-only frontend: in CUDNN_FRONTEND_INCLUDE_DIR, in a system folder, or where the
# Python package nvidia-cudnn-frontend has it.
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

# tigon_use_cudnn_frontend(target file): one file of a target in this folder includes it.
function(tigon_use_cudnn_frontend target file)
  # Calls without arithmetic, in templates that take long to optimise.
  set_source_files_properties(${file} PROPERTIES
    COMPILE_DEFINITIONS CUDNN_FRONTEND_SKIP_JSON_LIB
    COMPILE_OPTIONS "-isystem${CUDNN_FRONTEND_INCLUDE_DIR};-O1")
  # For engines of the frontend's own, which nothing here uses.
  target_link_libraries(${target} PUBLIC CUDA::nvrtc)
endfunction()
