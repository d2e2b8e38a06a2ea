// maxport logits: a forward pass through one or two models, and how near their logits are.
#include <array>
#include <charconv>

#include "cli/command.h"
#include "cli/console.h"
#include "cli/conversion_options.h"
#include "forward/comparison.h"
#include "forward/inputs.h"
#include "forward/matmul.h"
#include "forward/open.h"
#include "tokenizer/tokenizer.h"

namespace maxport::cli {
namespace {

constexpr double kMaxKlDivergence = 0.015;  // the default of MaxText's checker
constexpr int64_t kTopTokens = 10;

struct Request {
  std::vector<std::string> models;
  std::vector<maxtext::Override> settings;
  std::optional<std::string> ids, prompt, tokenizer, input, golden, maxtext_config, output;
  double max_kl_div = kMaxKlDivergence;
  int threads = 1;
  bool json = false, help = false, like_maxtext = false;
};

struct Model {
  std::string path, description;
  forward::Matrix logits;
};

struct Input {
  forward::Golden golden;
  std::optional<tokenizer::Tokenizer> tokenizer;
};

void print_usage() {
  fmt::print(
      "usage: maxport logits MODEL [MODEL] [options] [key=value ...]\n\n"
      "Runs token ids through one or two models in float32 and compares the logits. A MODEL is a Hugging Face folder,\n"
      "run as transformers defines it, or a MaxText checkpoint, run as MaxText defines it.\n\n");
  print_option("--ids=1,15,7", "token ids; ';' begins another sequence");
  print_option("--prompt=TEXT", "text; its ids come from a tokenizer.json");
  print_option("--tokenizer=PATH", "that file or its folder", "the first MODEL that has one");
  print_option("--input=FILE", "token ids from .safetensors (input_ids), .jsonl (tokens) or a text file");
  print_option("--golden_logits=FILE",
               "compare with the logits in a .safetensors or .jsonl file, whose ids are the input");
  print_option("--max_kl_div=X", "largest divergence of a token that passes", "0.015");
  print_option("--like_maxtext", "tied heads multiply with the table in bfloat16, as MaxText does");
  print_option("--maxtext_config=FILE", "settings of a checkpoint", "maxtext.yml beside it");
  print_option("--output=FILE", "write the first MODEL's ids and logits, as --golden_logits takes them (.safetensors)");
  print_option("--threads=N", "threads of matrix products", "number of processors");
  print_option("--json", "print a report as JSON");
  print_option("key=value", "MaxText settings of a checkpoint, e.g. model_name=llama3.1-8b");
  fmt::print("\nExit status 0 when every token's divergence is below --max_kl_div, 1 when not.\n");
}

/// The value of "--name=value" or of "--name value"; hyphens and underscores are the same. Nothing for another word.
class Words {
 public:
  explicit Words(std::span<const std::string> words) : words_(words) {}
  bool done() const { return next_ == words_.size(); }
  const std::string& word() const { return words_[next_]; }
  void skip() { ++next_; }

  bool flag(std::string_view name) {
    if (spelling(word()) != name) return false;
    ++next_;
    return true;
  }
  bool value(std::string_view name, std::optional<std::string>& out) {
    const std::string& current = word();
    const size_t equals = current.find('=');
    if (spelling(current.substr(0, equals)) != name) return false;
    if (equals != std::string::npos) {
      out = current.substr(equals + 1);
    } else if (next_ + 1 < words_.size()) {
      out = words_[++next_];
    } else {
      return false;
    }
    ++next_;
    return true;
  }

 private:
  static std::string spelling(std::string word) {
    if (!word.starts_with("--")) return word;
    std::replace(word.begin() + 2, word.end(), '-', '_');
    return word;
  }

  std::span<const std::string> words_;
  size_t next_ = 0;
};

Result<double> parse_limit(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value > 0))
    return fail(ErrorKind::kInvalidArgument, "--max_kl_div is \"{}\"; a positive number is needed", printable(text));
  return value;
}

Result<int> parse_threads(const std::string& text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1 || value > 1024)
    return fail(ErrorKind::kInvalidArgument, "--threads is \"{}\"; a number from 1 to 1024 is needed", printable(text));
  return value;
}

Result<> check(const Request& request) {
  if (request.help) return {};
  if (request.models.empty())
    return fail(ErrorKind::kInvalidArgument, "which model? maxport logits HF_DIR_OR_CHECKPOINT --ids=1,2,3");
  if (request.models.size() > 2)
    return fail(ErrorKind::kInvalidArgument, "{} models were given; two can be compared", request.models.size());
  const int inputs =
      request.ids.has_value() + request.prompt.has_value() + request.input.has_value() + request.golden.has_value();
  if (inputs != 1)
    return fail(ErrorKind::kInvalidArgument,
                "{} say what goes in; exactly one of --ids, --prompt, --input and --golden_logits is needed",
                inputs == 0 ? "no options" : "several options");
  if (!request.output) return {};
  if (!request.output->ends_with(".safetensors"))
    return fail(ErrorKind::kInvalidArgument, "--output is \"{}\"; a name that ends with .safetensors is needed",
                printable(*request.output));
  MAXPORT_ASSIGN_OR_RETURN(const auto kind, local_storage().kind(*request.output));
  if (kind) return fail(ErrorKind::kInvalidArgument, "--output: {} is there already", printable(*request.output));
  return {};
}

Result<Request> parse(std::span<const std::string> all) {
  Request out;
  MAXPORT_ASSIGN_OR_RETURN(out.threads, read_threads({}));
  std::optional<std::string> limit, threads;
  for (Words words(all); !words.done();) {
    if (words.flag("--help") || words.flag("-h"))
      out.help = true;
    else if (words.flag("--json"))
      out.json = true;
    else if (words.flag("--like_maxtext"))
      out.like_maxtext = true;
    else if (words.value("--ids", out.ids) || words.value("--prompt", out.prompt) ||
             words.value("--tokenizer", out.tokenizer) || words.value("--input", out.input) ||
             words.value("--golden_logits", out.golden) || words.value("--golden_logits_path", out.golden) ||
             words.value("--maxtext_config", out.maxtext_config) || words.value("--max_kl_div", limit) ||
             words.value("--output", out.output) || words.value("--threads", threads))
      continue;
    else if (words.word().starts_with("-"))
      return fail(ErrorKind::kInvalidArgument,
                  "unexpected argument \"{}\"; 'maxport logits --help' tells what there is", printable(words.word()));
    else {
      const size_t equals = words.word().find('=');
      if (equals == std::string::npos)
        out.models.push_back(words.word());
      else
        out.settings.push_back({words.word().substr(0, equals), words.word().substr(equals + 1)});
      words.skip();
    }
  }
  if (limit) {
    MAXPORT_ASSIGN_OR_RETURN(out.max_kl_div, parse_limit(*limit));
  }
  if (threads) {
    MAXPORT_ASSIGN_OR_RETURN(out.threads, parse_threads(*threads));
  }
  MAXPORT_RETURN_IF_ERROR(check(out));
  return out;
}

/// The tokenizer.json that --tokenizer names, or that of the first model that has one. Nothing where there is none.
Result<std::optional<std::string>> find_tokenizer(const Request& request) {
  Storage& storage = local_storage();
  std::vector<std::string> places = request.models;
  for (const maxtext::Override& setting : request.settings)
    if (setting.key == "tokenizer_path") places.insert(places.begin(), setting.value);
  if (request.tokenizer) places = {*request.tokenizer};
  for (const std::string& place : places) {
    const std::string inside = join_path(place, "tokenizer.json");
    MAXPORT_ASSIGN_OR_RETURN(const auto kind, storage.kind(inside));
    if (kind == EntryKind::kFile) return inside;
  }
  return request.tokenizer;
}

Result<Input> read_input(const Request& request) {
  Input out;
  MAXPORT_ASSIGN_OR_RETURN(const auto path, find_tokenizer(request));
  if (path && (request.prompt || request.tokenizer)) {
    MAXPORT_ASSIGN_OR_RETURN(out.tokenizer, tokenizer::Tokenizer::open(*path));
  }
  if (request.prompt) {
    if (!out.tokenizer)
      return fail(ErrorKind::kInvalidArgument,
                  "--prompt needs a tokenizer.json, and no model has one beside it; --tokenizer names one");
    MAXPORT_ASSIGN_OR_RETURN(const auto ids, out.tokenizer->encode(*request.prompt));
    if (ids.empty()) return fail(ErrorKind::kInvalidArgument, "the prompt has no token");
    out.golden.batch.append(ids);
    return out;
  }
  if (request.ids) {
    MAXPORT_ASSIGN_OR_RETURN(out.golden.batch, forward::parse_ids(*request.ids));
    return out;
  }
  const std::string& file = request.golden ? *request.golden : *request.input;
  MAXPORT_ASSIGN_OR_RETURN(out.golden, forward::read_golden(local_storage(), file));
  if (request.golden && !out.golden.logits)
    return fail(ErrorKind::kInvalidArgument, "{}: it holds ids but no logits; --input takes such a file",
                printable(file));
  return out;
}

Result<Model> run_model(const Request& request, const std::string& path, const forward::Batch& batch) {
  MAXPORT_ASSIGN_OR_RETURN(
      const auto decoder,
      forward::open_model(local_storage(), {path, request.settings, request.maxtext_config, request.like_maxtext}));
  Model out{path, decoder->description(), {}};
  const auto go_on = [](int64_t) { return !stop_requested(); };
  MAXPORT_ASSIGN_OR_RETURN(out.logits, with_context(forward::run(*decoder, batch, go_on), printable(path)));
  return out;
}

/// The text of one token; empty for ids beyond the tokenizer's, which embeddings are often padded with.
std::string token_text(const tokenizer::Tokenizer& tokenizer, int64_t id) {
  const std::array ids = {static_cast<int32_t>(id)};
  return tokenizer.decode(ids, false).value_or("");
}

OrderedJson top_json(std::span<const forward::TokenScore> tokens, const tokenizer::Tokenizer* tokenizer) {
  OrderedJson out = OrderedJson::array();
  for (const auto& token : tokens) {
    out.push_back({{"id", token.id}, {"score", token.score}});
    if (tokenizer != nullptr) out.back()["text"] = token_text(*tokenizer, token.id);
  }
  return out;
}

void print_top(std::string_view title, std::span<const forward::TokenScore> tokens,
               const tokenizer::Tokenizer* tokenizer) {
  const auto line = [&](std::string_view id, std::string_view text, std::string_view score) {
    fmt::print("| {:<10} |", id);
    if (tokenizer != nullptr) fmt::print(" {:<20} |", text);
    fmt::print(" {:<10} |\n", score);
  };
  fmt::print("\n--- {} top {} tokens ---\n", title, tokens.size());
  line("Token ID", "Token", "Score");
  line("----------", "--------------------", "----------");
  for (const auto& token : tokens)
    line(std::to_string(token.id), tokenizer == nullptr ? "" : printable(token_text(*tokenizer, token.id)),
         fmt::format("{:.4f}", token.score));
}

std::vector<forward::TokenScore> last_top(const forward::Matrix& logits, const forward::Batch::Sequence& sequence,
                                          int64_t vocabulary) {
  const float* row = logits.row(sequence.begin + sequence.length - 1);
  return forward::top_tokens({row, static_cast<size_t>(vocabulary)}, kTopTokens);
}

OrderedJson comparison_json(const forward::Comparison& c) {
  return {{"tokens", c.tokens},
          {"vocabulary", c.vocabulary},
          {"max_abs_difference", c.max_abs_difference},
          {"largest_reference_logit", c.largest_reference},
          {"cosine", c.cosine},
          {"argmax_agreement", c.argmax_agreement()},
          {"mean_kl", c.mean_kl},
          {"max_kl", c.max_kl},
          {"kl", c.kl},
          {"not_finite", c.not_finite}};
}

void print_comparison(const forward::Comparison& c, const forward::Batch& batch, double limit) {
  fmt::print("\n{} tokens, vocabulary {}\n", c.tokens, c.vocabulary);
  fmt::print("max|difference|        {:.3e} (token {}, logit {}; largest |logit| {:.3f})\n", c.max_abs_difference,
             c.max_row, c.max_column, c.largest_reference);
  fmt::print("cosine                 {:.9f}\n", c.cosine);
  fmt::print("argmax agreement       {:.2f} % ({} of {})\n", 100 * c.argmax_agreement(), c.argmax_agreements, c.tokens);
  fmt::print("KL divergence a token  {:.3e} on average, {:.3e} at most (token {}, id {})\n", c.mean_kl, c.max_kl,
             c.max_kl_row, batch.ids[static_cast<size_t>(c.max_kl_row)]);
  if (c.not_finite > 0) fmt::print("{} logits are not finite\n", c.not_finite);
  fmt::print("{}: the limit of the divergence is {}\n", c.within(limit) ? "PASS" : "FAIL", limit);
}

/// The tables of each sequence's last token, and the report as JSON.
OrderedJson report_tokens(const Request& request, const Input& input, std::span<const Model> models,
                          const forward::Matrix* reference, std::string_view reference_name) {
  const forward::Batch& batch = input.golden.batch;
  const tokenizer::Tokenizer* tokenizer = input.tokenizer ? &*input.tokenizer : nullptr;
  OrderedJson out = OrderedJson::array();
  const int64_t vocabulary =
      reference == nullptr ? models[0].logits.cols : std::min(models[0].logits.cols, reference->cols);
  for (size_t i = 0; i < batch.sequences.size(); ++i) {
    const auto top = last_top(models[0].logits, batch.sequences[i], vocabulary);
    OrderedJson entry = {{"sequence", i}, {"top", top_json(top, tokenizer)}};
    if (!request.json) print_top(fmt::format("sequence {}: {}", i, printable(models[0].path)), top, tokenizer);
    if (reference != nullptr) {
      const auto other = last_top(*reference, batch.sequences[i], vocabulary);
      const forward::TopAgreement agreement = forward::compare_top_tokens(top, other);
      entry["reference_top"] = top_json(other, tokenizer);
      entry["overlap_count"] = fmt::format("{}/{}", agreement.overlap, agreement.compared);
      entry["jaccard_similarity"] = agreement.jaccard;
      entry["rank_agreement_percentage"] = agreement.rank_agreement;
      if (!request.json) {
        print_top(fmt::format("sequence {}: {}", i, printable(reference_name)), other, tokenizer);
        fmt::print("overlap_count {}/{}, jaccard_similarity {:.4f}, rank_agreement_percentage {:.1f}\n",
                   agreement.overlap, agreement.compared, agreement.jaccard, agreement.rank_agreement);
      }
    }
    out.push_back(std::move(entry));
  }
  return out;
}

Result<int> run(const Request& request) {
  forward::set_multiply_threads(request.threads);
  MAXPORT_ASSIGN_OR_RETURN(const Input input, read_input(request));
  const forward::Golden& golden = input.golden;
  std::vector<Model> models;
  for (const std::string& path : request.models) {
    MAXPORT_ASSIGN_OR_RETURN(models.emplace_back(), run_model(request, path, golden.batch));
    if (!request.json) fmt::print("{}: {}\n", printable(path), models.back().description);
  }
  if (request.output)
    MAXPORT_RETURN_IF_ERROR(
        forward::write_golden(local_storage(), *request.output, golden.batch, models[0].logits));
  std::vector<std::pair<std::string, const forward::Matrix*>> references;
  if (golden.logits && request.golden) references.emplace_back(*request.golden, &*golden.logits);
  if (models.size() == 2) references.emplace_back(models[1].path, &models[1].logits);

  bool passes = true;
  OrderedJson report = {
      {"models", OrderedJson::array()}, {"max_kl_div", request.max_kl_div}, {"comparisons", OrderedJson::array()}};
  for (const Model& model : models)
    report["models"].push_back({{"path", model.path}, {"description", model.description}});
  for (const auto& [name, logits] : references) {
    MAXPORT_ASSIGN_OR_RETURN(const forward::Comparison comparison, forward::compare_logits(models[0].logits, *logits));
    OrderedJson entry = comparison_json(comparison);
    entry["reference"] = name;
    entry["sequences"] = report_tokens(request, input, models, logits, name);
    report["comparisons"].push_back(std::move(entry));
    if (!request.json) print_comparison(comparison, golden.batch, request.max_kl_div);
    passes = passes && comparison.within(request.max_kl_div);
  }
  if (references.empty()) report["sequences"] = report_tokens(request, input, models, nullptr, {});
  report["pass"] = passes;
  if (request.json) fmt::print("{}\n", report.dump(1, ' ', false, OrderedJson::error_handler_t::replace));
  return passes ? 0 : 1;
}

}  // namespace

int run_logits(std::span<const std::string> words) {
  Console console;
  Result<Request> request = parse(words);
  if (!request) return console.fail(request.error());
  if (request->help) {
    print_usage();
    return 0;
  }
  install_signal_handlers();
  Result<int> status = run(*request);
  return status ? *status : console.fail(status.error());
}

}  // namespace maxport::cli
