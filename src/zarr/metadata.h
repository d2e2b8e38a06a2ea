// The metadata of an array as text: ".zarray" of Zarr v2 and "zarr.json" of v3 (formats.md 2.1, 2.2).
#pragma once

#include <string>
#include <string_view>

#include "zarr/array_spec.h"

namespace maxport::zarr {

/// The key of the metadata, relative to the array: ".zarray" or "zarr.json".
std::string_view metadata_key(Version version);

/// The members that stock writers write, sorted, without spaces. The spec comes from make_array_spec or parse_metadata.
std::string metadata_text(const ArraySpec& spec);

/// Parses metadata of either version. `what` names it in messages, e.g. "a/zarr.json in checkpoint/0/items". Malformed
/// metadata is kCorruptData; element types, filters and extensions that are not known here are kUnsupported.
Result<ArraySpec> parse_metadata(Version version, std::string_view text, std::string_view what);

}  // namespace maxport::zarr
