// SPDX-License-Identifier: Apache-2.0
// A library without tigon_find.
extern "C" int something_else() { return 0; }
