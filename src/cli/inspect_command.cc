// maxport inspect: what is at a path, how it is stored, and which model it is of.
#include "cli/command.h"
#include "cli/console.h"
#include "inspect/report.h"

namespace maxport::cli {
namespace {

struct Request {
  std::string path;
  bool json = false, help = false;
};

Result<Request> parse(std::span<const std::string> words) {
  Request out;
  for (const std::string& word : words) {
    if (word == "--help" || word == "-h") {
      out.help = true;
    } else if (word == "--json") {
      out.json = true;
    } else if (!word.starts_with("-") && out.path.empty()) {
      out.path = word;
    } else {
      return fail(ErrorKind::kInvalidArgument, "unexpected argument \"{}\"; 'maxport inspect --help' tells what there is", printable(word));
    }
  }
  if (out.path.empty() && !out.help) return fail(ErrorKind::kInvalidArgument, "what is to be inspected? maxport inspect /path/to/0");
  return out;
}

}  // namespace

int run_inspect(std::span<const std::string> words) {
  Console console;
  Result<Request> request = parse(words);
  if (!request) return console.fail(request.error());
  if (request->help) {
    fmt::print("usage: maxport inspect PATH [--json]\n\n"
               "PATH is a Hugging Face folder, a safetensors file, or an Orbax checkpoint (a folder of steps, a step, an item).\n"
               "Prints which model it is and where each part of its configuration comes from, and for every tensor type, shape,\n"
               "bytes, stored bytes and chunks. Reads headers and metadata only; needs no devices.\n");
    return 0;
  }
  const Result<inspect::Inspection> found = inspect::inspect(local_storage(), request->path);
  if (!found) return console.fail(found.error());
  if (request->json)
    fmt::print("{}\n", inspect::to_json(*found).dump(1, ' ', false, OrderedJson::error_handler_t::replace));
  else
    fmt::print("{}", inspect::table(*found));
  return 0;
}

}  // namespace maxport::cli
