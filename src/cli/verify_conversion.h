// What --verify of the converting commands does when the output is there.
#pragma once

#include <string>

#include "cli/console.h"
#include "convert/checkpoint_source.h"
#include "convert/to_huggingface.h"
#include "convert/to_maxtext.h"

namespace maxport::cli {

/// Reads the published step back: every chunk against its checksum and the digests of the conversion. kCorruptData when
/// anything is not as it was written. Then runs a few tokens through source and checkpoint, each as its own library
/// defines the model (docs/logits.md), and fails likewise when they say different things; says so where a model has no
/// forward pass here.
Result<> verify_written_checkpoint(Console& console, const convert::ToMaxtextReport& report, const std::string& source_folder,
                                   int threads);

/// Reads the checkpoint that was converted against its digests, where it has any, and the model folder against what the
/// checkpoint gives when it is converted once more, byte by byte.
Result<> verify_written_model(Console& console, const convert::CheckpointSource& source, const convert::ToHuggingface& conversion, int threads);

}  // namespace maxport::cli
