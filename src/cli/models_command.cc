// maxport models: what can be converted.
#include <map>

#include "cli/command.h"
#include "cli/console.h"
#include "maxtext/catalog.h"
#include "models/family.h"

namespace maxport::cli {
namespace {

struct Row {
  const models::Family* family;
  std::vector<std::string> names;
};

std::vector<Row> table() {
  std::vector<Row> rows;
  for (const models::Family& family : models::all_families()) {
    Row row{&family, {}};
    for (std::string_view name : maxtext::catalog_names())
      if (maxtext::catalog_family(name) == family.name) row.names.emplace_back(name);
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string joined(const std::vector<std::string>& names, std::string_view quote) {
  std::string out;
  for (const std::string& name : names) out += fmt::format("{}{}{}{}", out.empty() ? "" : ", ", quote, name, quote);
  return out;
}

std::string_view forms(const models::Family& family) { return family.scanned ? "scanned, unscanned" : "unscanned"; }

void print_markdown() {
  fmt::print("| family | model_type | layers | names |\n| --- | --- | --- | --- |\n");
  for (const Row& row : table()) {
    std::vector<std::string> types(row.family->model_types.begin(), row.family->model_types.end());
    fmt::print("| {} | {} | {} | {} |\n", row.family->title, joined(types, "`"), forms(*row.family), joined(row.names, "`"));
  }
}

void print_json() {
  OrderedJson out = OrderedJson::array();
  for (const Row& row : table())
    out.push_back({{"family", row.family->name},
                   {"title", row.family->title},
                   {"model_types", row.family->model_types},
                   {"directions", {"to_maxtext", "to_huggingface"}},
                   {"scanned", row.family->scanned},
                   {"why_not_scanned", row.family->why_not_scanned},
                   {"names", row.names}});
  fmt::print("{}\n", out.dump(1));
}

void print_text() {
  for (const Row& row : table()) {
    fmt::print("{:<16} {:<20} both directions, {}\n", row.family->name, row.family->title, forms(*row.family));
    if (!row.family->scanned) fmt::print("{:<16} not scanned: {}\n", "", row.family->why_not_scanned);
    for (const std::string& name : row.names) fmt::print("{:<16}   {}\n", "", name);
  }
}

}  // namespace

int run_models(std::span<const std::string> words) {
  if (words.empty()) {
    print_text();
  } else if (words.size() == 1 && words[0] == "--json") {
    print_json();
  } else if (words.size() == 1 && words[0] == "--markdown") {
    print_markdown();
  } else if (words.size() == 1 && (words[0] == "--help" || words[0] == "-h")) {
    fmt::print("usage: maxport models [--json | --markdown]\n\n"
               "Lists the model families that can be converted, the forms of layers that MaxText's model takes, and the model\n"
               "names that are known. Any other size of a family converts as well; its config.json tells the dimensions.\n");
  } else {
    return Console().fail(Error(ErrorKind::kInvalidArgument, "usage: maxport models [--json | --markdown]"));
  }
  return 0;
}

}  // namespace maxport::cli
