// maxport compare: how far two models are from each other, whatever form each is stored in.
#include <algorithm>
#include <charconv>
#include <optional>

#include "cli/command.h"
#include "cli/console.h"
#include "cli/conversion_options.h"
#include "compare/report_text.h"

namespace maxport::cli {
namespace {

/// The exit status for "both were read, and they differ".
constexpr int kDifferent = 1;

struct Request {
  std::vector<std::string> paths;
  compare::Options options;
  maxtext::ConversionArguments threads;
  bool ignore_dtypes = false, json = false, quiet = false, help = false;
};

Result<double> parse_tolerance(const std::string& text) {
  double value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size())
    return fail(ErrorKind::kInvalidArgument, "--tolerance is \"{}\"; a number like 1e-3 is expected", printable(text));
  return value;
}

Result<int> parse_threads(const std::string& text) {
  int value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size() || value < 1 || value > 4096)
    return fail(ErrorKind::kInvalidArgument, "--threads is \"{}\"; a number from 1 to 4096 is expected", printable(text));
  return value;
}

/// "--name=value" or "--name value", underscores or hyphens. Nothing when the word is another.
Result<std::optional<std::string>> option_value(std::span<const std::string> words, size_t& at, std::string_view name) {
  std::string word = words[at].substr(0, words[at].find('='));
  std::ranges::replace(word, '-', '_');
  if (word != "__" + std::string(name)) return std::nullopt;
  if (const size_t equals = words[at].find('='); equals != std::string::npos) return words[at].substr(equals + 1);
  if (at + 1 == words.size()) return fail(ErrorKind::kInvalidArgument, "--{} needs a value", name);
  return words[++at];
}

bool is_switch(std::string word, std::string_view name) {
  std::ranges::replace(word, '-', '_');
  return word == "__" + std::string(name);
}

Result<bool> parse_valued(std::span<const std::string> words, size_t& at, Request& out) {
  MAXPORT_ASSIGN_OR_RETURN(const auto tolerance, option_value(words, at, "tolerance"));
  if (tolerance) {
    MAXPORT_ASSIGN_OR_RETURN(out.options.tolerance, parse_tolerance(*tolerance));
    return true;
  }
  MAXPORT_ASSIGN_OR_RETURN(const auto threads, option_value(words, at, "threads"));
  if (threads) {
    MAXPORT_ASSIGN_OR_RETURN(out.options.threads, parse_threads(*threads));
    return true;
  }
  MAXPORT_ASSIGN_OR_RETURN(const auto folder, option_value(words, at, "hf_model_path"));
  if (folder) out.options.hf_folder = *folder;
  return folder.has_value();
}

Result<Request> parse(std::span<const std::string> words) {
  Request out;
  MAXPORT_ASSIGN_OR_RETURN(out.options.threads, read_threads({}));
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (!word.starts_with("-")) {
      const size_t equals = word.find('=');
      if (equals != std::string::npos && !word.substr(0, equals).contains('/'))
        out.options.settings.push_back({word.substr(0, equals), word.substr(equals + 1)});
      else
        out.paths.push_back(word);
      continue;
    }
    if (word == "--help" || word == "-h") {
      out.help = true;
    } else if (is_switch(word, "json")) {
      out.json = true;
    } else if (is_switch(word, "quiet")) {
      out.quiet = true;
    } else if (is_switch(word, "ignore_dtypes")) {
      out.ignore_dtypes = true;
    } else {
      MAXPORT_ASSIGN_OR_RETURN(const bool known, parse_valued(words, i, out));
      if (!known) return fail(ErrorKind::kInvalidArgument, "unexpected argument \"{}\"; 'maxport compare --help' tells what there is", printable(word));
    }
  }
  if (!out.help && out.paths.size() != 2)
    return fail(ErrorKind::kInvalidArgument, "two models are compared, {} given: maxport compare /path/to/hf /path/to/0", out.paths.size());
  return out;
}

void print_help() {
  fmt::print(
      "usage: maxport compare A B [--option[=value] ...] [key=value ...]\n\n"
      "Compares two models tensor by tensor. Each is a Hugging Face folder, a safetensors file, or a MaxText checkpoint,\n"
      "scanned or not. Where the forms differ, the parameter map says what belongs together:\n\n"
      "  Hugging Face with MaxText   each MaxText parameter with what a conversion of the model gives\n"
      "  scanned with unscanned      the stored elements of each Hugging Face tensor\n"
      "  otherwise                   tensors of one name\n\n"
      "Elements are equal when their bits are: a NaN equals a NaN of the same bits, 0 differs from -0.\n\n");
  print_option("--tolerance=X", "most that |a - b| may be", "0: equal bits");
  print_option("--ignore_dtypes", "other types alone do not make tensors different");
  print_option("--hf_model_path=DIR", "whose config.json describes the model, where neither side says it");
  print_option("--json", "one JSON document on standard output");
  print_option("--quiet", "print only tensors that are not equal, and the summary");
  print_option("--threads=N", "worker threads", "all processors");
  fmt::print("\nExit statuses: 0 equal, {} different, others when something could not be read: docs/exit-codes.md.\n", kDifferent);
}

void print_report(Console& console, const compare::Report& report, const Request& request) {
  console.info("A: {} ({})", printable(request.paths[0]), report.a);
  console.info("B: {} ({})", printable(request.paths[1]), report.b);
  console.info("compared: {}", report.how);
  for (const std::string& note : report.notes) console.info("{}", printable(note));
  if (request.json) {
    fmt::print("{}\n", compare::to_json(report, request.ignore_dtypes).dump(1, ' ', false, OrderedJson::error_handler_t::replace));
    return;
  }
  for (const compare::TensorComparison& tensor : report.tensors)
    if (!request.quiet || tensor.status != compare::Status::kEqual) fmt::print("{}\n", compare::tensor_line(tensor));
  fmt::print("{}\n", compare::summary_line(report, request.ignore_dtypes));
}

Result<int> run(Console& console, Request& request) {
  std::atomic<uint64_t> done{0};
  std::optional<ProgressDisplay> display;
  request.options.cancelled = stop_requested;
  request.options.bytes_done = &done;
  request.options.started = [&](uint64_t bytes) { display.emplace(console, "comparing", bytes, [&] { return done.load(); }); };
  Result<compare::Report> report = compare::compare(local_storage(), request.paths[0], request.paths[1], request.options);
  display.reset();
  if (!report) return std::unexpected(std::move(report).error());
  print_report(console, *report, request);
  return report->equal(request.ignore_dtypes) ? 0 : kDifferent;
}

}  // namespace

int run_compare(std::span<const std::string> words) {
  Result<Request> request = parse(words);
  if (!request) return Console().fail(request.error());
  if (request->help) {
    print_help();
    return 0;
  }
  Console console(request->quiet ? Verbosity::kQuiet : Verbosity::kNormal);
  install_signal_handlers();
  Result<int> status = run(console, *request);
  return status ? *status : console.fail(status.error());
}

}  // namespace maxport::cli
