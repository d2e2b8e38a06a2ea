// The room's data files as text, compiled in; embed.cmake writes their definitions.
#pragma once

#include <span>
#include <string_view>

namespace maxport::maxtext {

struct CatalogFile {
  std::string_view name;
  std::string_view family;
  std::string_view text;  ///< catalog/<name>.json
};

/// In the order of catalog/names.txt.
std::span<const CatalogFile> catalog_files();

/// data/settings.json
std::string_view settings_table();

}  // namespace maxport::maxtext
