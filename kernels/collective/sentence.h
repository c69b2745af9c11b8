// SPDX-License-Identifier: Apache-2.0
// Sentences of errors that are made when they happen.
#pragma once
#include <mutex>
#include <set>
#include <string>

#include "kernels/signature/status.h"

namespace tigon {

// A sentence that lives as long as the program, as a status' reason must. Each is kept once.
inline const char* kept_sentence(const std::string& sentence) {
  static std::mutex mutex;
  static auto* const sentences = new std::set<std::string>;
  const std::lock_guard lock(mutex);
  return sentences->insert(sentence).first->c_str();
}

inline Status collective_failed(const std::string& sentence) {
  return {Status::kLaunchFailed, kept_sentence("collective: " + sentence)};
}

}  // namespace tigon
