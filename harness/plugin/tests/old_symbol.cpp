// SPDX-License-Identifier: Apache-2.0
// A library as it was before there was one interface.
extern "C" const void* tigon_plugin_get(unsigned) { return nullptr; }
