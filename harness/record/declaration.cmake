# SPDX-License-Identifier: Apache-2.0
# Makes of record.schema.json the source that compiles it in; again whenever it changes.
file(READ ${CMAKE_CURRENT_LIST_DIR}/record.schema.json TIGON_RECORD_SCHEMA)
configure_file(${CMAKE_CURRENT_LIST_DIR}/declaration.cpp.in ${CMAKE_CURRENT_BINARY_DIR}/record_declaration.cpp @ONLY)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/record.schema.json)
