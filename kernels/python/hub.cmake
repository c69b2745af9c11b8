# SPDX-License-Identifier: Apache-2.0
# The same package in the layout of Hugging Face's kernels hub, where kernels.get_kernel finds it:
# cmake --install BUILD --component hub --prefix FOLDER
if(NOT TARGET tigon_torch)
  return()
endif()
set(_backend cpu)
set(_kind cpu)
if(TARGET tigon_cuda)
  execute_process(COMMAND ${TIGON_NVCC} --version OUTPUT_VARIABLE _said)
  string(REGEX MATCH "release ([0-9]+)\\.([0-9]+)" _said "${_said}")
  set(_backend cu${CMAKE_MATCH_1}${CMAKE_MATCH_2})
  set(_kind cuda)
endif()
string(TOLOWER ${CMAKE_SYSTEM_NAME} _system)
set(_folder build/torch-stable-abi210-${_backend}-${CMAKE_SYSTEM_PROCESSOR}-${_system})
set(_metadata ${CMAKE_CURRENT_BINARY_DIR}/hub/metadata.json)
file(CONFIGURE OUTPUT ${_metadata} @ONLY CONTENT [[{
  "name": "tigon",
  "id": "tigon_@_kind@_@PROJECT_VERSION_MAJOR@",
  "version": @PROJECT_VERSION_MAJOR@,
  "license": "Apache-2.0",
  "python-depends": [],
  "backend": {"type": "@_kind@"}
}
]])

install(DIRECTORY tigon/ DESTINATION ${_folder} COMPONENT hub EXCLUDE_FROM_ALL
  PATTERN __pycache__ EXCLUDE)
install(DIRECTORY ${TIGON_PYTHON_LIBRARIES} DESTINATION ${_folder} COMPONENT hub EXCLUDE_FROM_ALL
  FILES_MATCHING PATTERN "*.so")
install(FILES ${_metadata} DESTINATION ${_folder} COMPONENT hub EXCLUDE_FROM_ALL)
