// SPDX-License-Identifier: Apache-2.0
// A libcuda.so.1 of long ago: the CUDA runtime finds a driver that is too old for it.
extern "C" {

int cuInit(unsigned) { return 0; }

int cuDriverGetVersion(int* version) {
  *version = 9000;
  return 0;
}

}  // extern "C"
