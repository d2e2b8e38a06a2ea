// What is known about single fields of a config.json: the spellings of one role, the range that makes sense, and the
// few values that published configs leave to the library's class defaults.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace maxport::huggingface {

/// Layers a config may ask for. Far above any model, low enough that a hostile number allocates nothing of note.
inline constexpr int64_t kMaxLayers = 10'000;

struct IntegerField {
  std::string_view role;                        ///< also the first spelling
  std::span<const std::string_view> spellings;  ///< of later preference; those present must agree
  int64_t least;
  int64_t most;
};

/// Integer roles whose range is checked when a config is opened.
std::span<const IntegerField> integer_fields();

/// Spellings to try for a role; a name that is not in any table has one, itself.
std::span<const std::string_view> other_spellings(std::string_view role);

/// True when two spellings with different values are a contradiction; otherwise the first one counts.
bool spellings_must_agree(std::string_view role);

/// The value that transformers gives a field which a published config of this `model_type` may leave out; nothing when
/// the field has to be there. Never holds tie_word_embeddings, whose default differs between releases.
std::optional<double> class_default(std::string_view model_type, std::string_view role);

}  // namespace maxport::huggingface
