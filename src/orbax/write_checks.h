// What a checkpoint must satisfy before its first byte is written.
#pragma once

#include "orbax/checkpoint_writer.h"

namespace maxport::orbax {

/// kInvalidArgument, naming the leaf, for leaves that stock readers could not restore or the store could not hold.
Result<> check_leaves(std::span<const WriteLeaf> leaves, const CheckpointWriterOptions& options);

/// Step number, item name, devices.
Result<> check_options(int64_t step, const CheckpointWriterOptions& options);

/// A name for an extra file: one path component, none of Orbax's own.
Result<> check_file_name(const std::string& name);

}  // namespace maxport::orbax
