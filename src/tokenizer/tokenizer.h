// Text to token ids and back, as a tokenizer.json of Hugging Face's library `tokenizers` says.
//
// Supported is what published models of the families here use: the model BPE, with bytes as characters (GPT-2, Llama 3,
// Qwen, DeepSeek, gpt-oss) or falling back to bytes (Gemma, Llama 2, Mistral), and the components that normalizer.h,
// pre_tokenizer.h, decoder.h and added_tokens.h name. Anything else is kUnsupported, by its place in the file.
// "truncation" and "padding" are not applied; transformers resets both before it encodes.
// A tokenizer is immutable; all methods are safe to call from several threads.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/added_tokens.h"
#include "tokenizer/decoder.h"
#include "tokenizer/pre_tokenizer.h"

namespace maxport::tokenizer {

class Tokenizer {
 public:
  /// Reads a file.
  static Result<Tokenizer> open(const std::string& path);
  /// `what` names the text in messages.
  static Result<Tokenizer> parse(std::string_view json, const std::string& what);

  /// The ids of a text, which must be valid UTF-8 (kInvalidArgument). Special tokens in the text are recognized in any
  /// case; `add_special_tokens` also puts those around it that the post-processor asks for.
  Result<std::vector<int32_t>> encode(std::string_view text, bool add_special_tokens = true) const;

  /// The text of ids; kInvalidArgument for one without a token. Bytes that are no UTF-8 become U+FFFD.
  Result<std::string> decode(std::span<const int32_t> ids, bool skip_special_tokens = true) const;

  /// Whether decode() knows the id: models often have more rows in their embedding than their tokenizer has tokens.
  bool has_token(int32_t id) const;

 private:
  Tokenizer(Bpe model, AddedTokens added) : model_(std::move(model)), added_(std::move(added)) {}

  Result<> read_post_processor(const Json& value, const std::string& what);
  Result<> read_template(const Json& value, const std::string& what);
  Result<> encode_words(std::string_view text, bool at_start, std::vector<int32_t>& ids) const;
  Result<> encode_between(std::string_view text, bool at_start, std::vector<int32_t>& ids) const;

  Bpe model_;
  AddedTokens added_;
  std::unique_ptr<Normalizer> normalizer_;
  std::unique_ptr<PreTokenizer> pre_tokenizer_;
  std::unique_ptr<Decoder> decoder_;
  std::vector<int32_t> before_;  // ids that the post-processor puts around a text
  std::vector<int32_t> after_;
};

}  // namespace maxport::tokenizer
