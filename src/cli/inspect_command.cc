// maxport inspect: what is at a path, how it is stored, and which model it is of.
#include <charconv>

#include "cli/command.h"
#include "cli/console.h"
#include "inspect/html.h"
#include "inspect/report.h"

namespace maxport::cli {
namespace {

struct Request {
  std::string path;
  std::optional<std::string> html;  ///< the file to write
  std::optional<uint64_t> sample;
  bool json = false, help = false;
};

Result<uint64_t> parse_sample(std::string_view text) {
  uint64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size() || value == 0)
    return fail(ErrorKind::kInvalidArgument, "--sample is \"{}\"; a number of elements is expected", printable(text));
  return value;
}

Result<Request> parse(std::span<const std::string> words) {
  Request out;
  for (const std::string& word : words) {
    if (word == "--help" || word == "-h") {
      out.help = true;
    } else if (word == "--json") {
      out.json = true;
    } else if (word.starts_with("--html=") && word.size() > 7) {
      out.html = word.substr(7);
    } else if (word.starts_with("--sample=")) {
      MAXPORT_ASSIGN_OR_RETURN(out.sample, parse_sample(std::string_view(word).substr(9)));
    } else if (!word.starts_with("-") && out.path.empty()) {
      out.path = word;
    } else {
      return fail(ErrorKind::kInvalidArgument, "unexpected argument \"{}\"; 'maxport inspect --help' tells what there is", printable(word));
    }
  }
  if (out.path.empty() && !out.help) return fail(ErrorKind::kInvalidArgument, "what is to be inspected? maxport inspect /path/to/0");
  if (out.sample && !out.html) return fail(ErrorKind::kInvalidArgument, "--sample bounds what --html=FILE reads; give both");
  return out;
}

Result<> write_html(Console& console, const Request& request, const inspect::Inspection& found) {
  const inspect::ValueOptions options{request.sample, stop_requested};
  MAXPORT_ASSIGN_OR_RETURN(const auto values, inspect::read_values(local_storage(), request.path, found, options));
  MAXPORT_RETURN_IF_ERROR(local_storage().write_text(*request.html, inspect::html(found, values, request.sample)));
  console.info("{} written", printable(*request.html));
  return {};
}

}  // namespace

int run_inspect(std::span<const std::string> words) {
  Console console;
  Result<Request> request = parse(words);
  if (!request) return console.fail(request.error());
  if (request->help) {
    fmt::print("usage: maxport inspect PATH [--json | --html=FILE [--sample=N]]\n\n"
               "PATH is a Hugging Face folder, a safetensors file, or an Orbax checkpoint (a folder of steps, a step, an item).\n"
               "Prints which model it is and where each part of its configuration comes from, and for every tensor type, shape,\n"
               "bytes, stored bytes and chunks. Reads headers and metadata only; needs no devices.\n\n"
               "--html=FILE writes a page of its own with a treemap, chunk layouts and histograms; for these every element is\n"
               "read, or with --sample=N of each tensor whole windows from its front until there are N elements.\n");
    return 0;
  }
  const Result<inspect::Inspection> found = inspect::inspect(local_storage(), request->path);
  if (!found) return console.fail(found.error());
  if (request->html) {
    install_signal_handlers();
    const Result<> written = write_html(console, *request, *found);
    return written ? 0 : console.fail(written.error());
  }
  if (request->json)
    fmt::print("{}\n", inspect::to_json(*found).dump(1, ' ', false, OrderedJson::error_handler_t::replace));
  else
    fmt::print("{}", inspect::table(*found));
  return 0;
}

}  // namespace maxport::cli
