# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` puts under a prefix: the library, its headers, find_package(tigon) and
# pkg-config. Host and CUDA flavours live side by side in one prefix.
if(NOT TARGET tigon_shared)
  return()
endif()
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(_package ${CMAKE_INSTALL_LIBDIR}/cmake/tigon)

install(TARGETS tigon_shared tigon_static EXPORT tigon-${TIGON_DEVICE}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT tigon-${TIGON_DEVICE} NAMESPACE tigon:: DESTINATION ${_package})

install(FILES tigon.h ${CMAKE_CURRENT_BINARY_DIR}/tigon.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
# The headers that tigon.hpp reaches: signatures and what they are made of.
foreach(header IN LISTS TIGON_PUBLIC_HEADERS)
  cmake_path(GET header PARENT_PATH folder)
  install(FILES ${PROJECT_SOURCE_DIR}/${header}
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tigon/${folder})
endforeach()

configure_package_config_file(tigon-config.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/tigon-config.cmake
  INSTALL_DESTINATION ${_package})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/tigon-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/tigon-config.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/tigon-config-version.cmake DESTINATION ${_package})

get_target_property(TIGON_LIBRARY_NAME tigon_shared OUTPUT_NAME)
if(TIGON_CUDA)
  set(TIGON_PRIVATE_LIBRARIES "-L${CUDAToolkit_LIBRARY_DIR} -lcudart_static -lrt")
endif()
# Relative, because `cmake --install` may be given another prefix.
file(RELATIVE_PATH TIGON_PREFIX_FROM_PKGCONFIG /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(tigon.pc.in ${TIGON_LIBRARY_NAME}.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${TIGON_LIBRARY_NAME}.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
