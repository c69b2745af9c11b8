# SPDX-License-Identifier: Apache-2.0
# The row sweep of both losses: a static library, because those follow an op's object library into
# whatever links it.
tigon_add_kernel_library(tigon_loss_rows_objects SOURCES loss/rows.cu loss/columns.cu)

function(tigon_add_loss_rows flavour runtime)
  if(NOT TARGET tigon_loss_rows_objects_${flavour})
    return()
  endif()
  add_library(tigon_loss_rows_${flavour} STATIC
    $<TARGET_OBJECTS:tigon_loss_rows_objects_${flavour}>)
  set_target_properties(tigon_loss_rows_${flavour} PROPERTIES LINKER_LANGUAGE CXX)
  if(flavour STREQUAL covered)
    set_target_properties(tigon_loss_rows_covered PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
  target_link_libraries(tigon_loss_rows_${flavour} PUBLIC ${runtime})
  foreach(op IN ITEMS cross_entropy linear_cross_entropy)
    if(TARGET tigon_${op}_${flavour})
      target_link_libraries(tigon_${op}_${flavour} PUBLIC tigon_loss_rows_${flavour})
    endif()
  endforeach()
  if(TARGET tigon_linear_cross_entropy_${flavour})
    target_link_libraries(tigon_linear_cross_entropy_${flavour} PUBLIC tigon_gemm)
  endif()
endfunction()

tigon_add_loss_rows(fast tigon_simt)
tigon_add_loss_rows(debug tigon_simt)
tigon_add_loss_rows(checked tigon_simt_checked)
tigon_add_loss_rows(covered tigon_simt)
tigon_add_loss_rows(cuda tigon_device_cuda)
