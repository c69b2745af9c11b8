// SPDX-License-Identifier: Apache-2.0
// What the options of a divergence must be.
#pragma once
#include "kernels/divergence/divergence.h"
#include "kernels/log_prob/row.h"

namespace tigon::divergence {

inline Status check_options(const Options& o) {
  if (o.kind < Kind::kForwardKl || o.kind > Kind::kJsd)
    return invalid("divergence: kind must be forward_kl, reverse_kl or jsd");
  if (!(o.beta >= 0.0f && o.beta <= 1.0f)) return invalid("divergence: beta must be from 0 to 1");
  if (!log_prob::is_temperature(o.temperature))
    return invalid("divergence: temperature and its inverse must be finite and above 0");
  return {};
}

}  // namespace tigon::divergence
