// Encodes and decodes from a command line, for tests that let the reference judge. Not installed.
//
//   tokenizer_tool TOKENIZER_JSON      reads one JSON value a line from standard input, writes one a line:
//                                      a text -> its ids with and without special tokens, and the text of the former
//                                      with and without special tokens: {"ids", "bare_ids", "text", "full_text"};
//                                      an array of ids -> {"text", "full_text"}; {"error": message} for one that fails
#include <iostream>

#include "tokenizer/tokenizer.h"

namespace maxport::tokenizer {
namespace {

Result<Json> texts(const Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  MAXPORT_ASSIGN_OR_RETURN(const std::string text, tokenizer.decode(ids));
  MAXPORT_ASSIGN_OR_RETURN(const std::string full_text, tokenizer.decode(ids, false));
  return Json{{"text", text}, {"full_text", full_text}};
}

Result<Json> answer(const Tokenizer& tokenizer, const std::string& line) {
  MAXPORT_ASSIGN_OR_RETURN(const Json asked, parse_json(line, "standard input"));
  if (asked.is_array()) return texts(tokenizer, asked.get<std::vector<int32_t>>());
  if (!asked.is_string()) return fail(ErrorKind::kInvalidArgument, "neither a text nor an array");
  const std::string text = asked.get<std::string>();
  MAXPORT_ASSIGN_OR_RETURN(const auto ids, tokenizer.encode(text));
  MAXPORT_ASSIGN_OR_RETURN(const auto bare_ids, tokenizer.encode(text, false));
  MAXPORT_ASSIGN_OR_RETURN(Json out, texts(tokenizer, ids));
  out["ids"] = ids;
  out["bare_ids"] = bare_ids;
  return out;
}

Result<> run(const char* path) {
  MAXPORT_ASSIGN_OR_RETURN(const Tokenizer tokenizer, Tokenizer::open(path));
  std::string line;
  while (std::getline(std::cin, line)) {
    const Result<Json> out = answer(tokenizer, line);
    std::cout << (out ? *out : Json{{"error", out.error().message()}}).dump() << "\n";
  }
  return {};
}

}  // namespace
}  // namespace maxport::tokenizer

int main(int count, char** arguments) {
  using namespace maxport;
  if (count != 2) return std::cerr << "usage: tokenizer_tool TOKENIZER_JSON\n", 2;
  const Result<> result = tokenizer::run(arguments[1]);
  if (result) return 0;
  std::cerr << result.error().message() << "\n";
  return exit_code(result.error().kind());
}
