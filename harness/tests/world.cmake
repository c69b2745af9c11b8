# SPDX-License-Identifier: Apache-2.0
# Faults of the world: the program with an op that goes wrong, and what injects the faults.
if(NOT TIGON_SANITIZE)
  set(faulty ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/faulty)
  tigon_add_kernel_library(world_kernels SOURCES world_kernels.cu)
  add_executable(world_program ../cli/main.cpp world_ops.cpp)
  tigon_link_tool(world_program ${flavour})
  target_link_libraries(world_program PRIVATE world_kernels_${flavour})
  set_target_properties(world_program PROPERTIES OUTPUT_NAME tigon RUNTIME_OUTPUT_DIRECTORY ${faulty})
  add_library(world_clock SHARED world_clock.cpp)
  add_library(world_disk SHARED world_disk.cpp)
  add_library(world_old_driver SHARED world_old_driver.cpp)
  set_target_properties(world_clock world_disk PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${faulty})
  set_target_properties(world_old_driver PROPERTIES
    OUTPUT_NAME cuda SOVERSION 1 LIBRARY_OUTPUT_DIRECTORY ${faulty}/old_driver)
  file(GLOB sources CONFIGURE_DEPENDS world_faults*.cpp)
  add_executable(world_faults ${sources} bad_inputs.cpp bad_inputs_files.cpp)
  target_link_libraries(world_faults PRIVATE tigon_cli)
  tigon_link_tool(world_faults ${flavour})
  add_dependencies(world_faults world_program world_clock world_disk world_old_driver
    tigon plugin_test_bad_plugin plugin_test_no_symbol)
  # Alone, because a case that may take 1 s must have a core. `./tigon faults` kills 100 times.
  add_test(NAME faults COMMAND sh -c "rm -f \"$1\" && exec \"$2\" --json \"$1\" --kills 20" sh
    ${CMAKE_BINARY_DIR}/faults.jsonl $<TARGET_FILE:world_faults>)
  set_tests_properties(faults PROPERTIES LABELS long RUN_SERIAL ON TIMEOUT 600)
endif()
