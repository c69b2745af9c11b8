// SPDX-License-Identifier: Apache-2.0
// tigon describe --all: every contract of the build on one page.
#pragma once
#include <string>

namespace tigon::cli {

enum class PageFormat { kMarkdown, kJson, kHtml };

// Ends with a newline; the same for the same contracts.
std::string page_of_all(PageFormat format);

}  // namespace tigon::cli
