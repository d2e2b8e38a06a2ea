// The page that html() fills, page.html, as text in the program (embed.cmake).
#pragma once

#include <string_view>

namespace maxport::inspect {

/// The data takes the place of "@DATA@".
std::string_view page_text();

}  // namespace maxport::inspect
