// SPDX-License-Identifier: Apache-2.0
// A member of a test's fixture: each test begins without findings and leaves the settings as they
// were.
#pragma once
#include "kernels/simt/simt.h"

namespace tigon::simt_tests {

class SavedSettings {
 public:
  SavedSettings() { simt::reports_reset(); }
  ~SavedSettings() {
    simt::config() = saved_;
    simt::reports_reset();
  }
  SavedSettings(const SavedSettings&) = delete;
  SavedSettings& operator=(const SavedSettings&) = delete;

 private:
  simt::Config saved_ = simt::config();
};

}  // namespace tigon::simt_tests
