// Token ids and reference logits from text and files.
//
//   .safetensors   "input_ids" (int32 or int64, [batch, length] or [length]) and, as a reference, "logits" (floating,
//                  [batch, length, vocabulary] or [length, vocabulary]); "lengths" (int32 or int64) cuts input_ids of
//                  one axis into sequences
//   .jsonl         one object a line, as MaxText's checker takes them: "tokens" (list of ids) and "logits"
//                  ([length][vocabulary])
//   other files    ids in decimal, separated by commas or blanks; a line is a sequence
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "forward/batch.h"
#include "forward/matrix.h"
#include "storage/storage.h"

namespace maxport::forward {

struct Golden {
  Batch batch;
  std::optional<Matrix> logits;  ///< one row a token of the batch; nothing when the file has ids only
};

/// "1, 2, 3; 4 5": sequences end with ';' or the line. kInvalidArgument names what is no id.
Result<Batch> parse_ids(std::string_view text);

/// Reads ids, and logits where the file has them.
Result<Golden> read_golden(Storage& storage, const std::string& path);

/// Writes a .safetensors file of ids and their logits, one row a token of the batch, in float32. Sequences of one length
/// get [batch, length]; others lie one after another, with "lengths". The file is under its name when it is complete.
Result<> write_golden(Storage& storage, const std::string& path, const Batch& batch, const Matrix& logits);

}  // namespace maxport::forward
