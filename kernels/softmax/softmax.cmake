# SPDX-License-Identifier: Apache-2.0
# GCC does not see that a piece of a row is kept and used on the same condition, and zeros at the
# start would cost registers on a GPU.
if(TARGET tigon_softmax_host)
  target_compile_options(tigon_softmax_host PRIVATE
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
endif()
