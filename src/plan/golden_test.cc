// Every conversion plan of MaxText at full size against ours: names, shapes, sources and stacked axes, without weights.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <map>
#include <set>

#include "maxtext/catalog.h"
#include "models/family.h"
#include "plan/check.h"

namespace maxport::plan {
namespace {

using Index = std::vector<int64_t>;
/// For each position along the stacked axes the tensors that go there.
using Sources = std::map<Index, std::set<std::string>>;

struct Expected {
  Shape shape;
  Sources sources;
};

std::string read_gzip(const std::filesystem::path& path) {
  std::string out;
  gzFile file = gzopen(path.c_str(), "rb");
  EXPECT_NE(file, nullptr) << path;
  char block[1 << 16];
  for (int n; (n = gzread(file, block, sizeof block)) > 0;) out.append(block, static_cast<size_t>(n));
  gzclose(file);
  return out;
}

std::string fill_template(std::string text, const Json& vars, const Index& at) {
  for (size_t k = 0; k < vars.size(); ++k) {
    int64_t value = vars[k]["base"].get<int64_t>();
    for (size_t i = 0; i < at.size(); ++i) value += vars[k]["strides"][i].get<int64_t>() * at[i];
    const std::string name = "{" + std::to_string(k) + "}";
    for (size_t p; (p = text.find(name)) != std::string::npos;) text.replace(p, name.size(), std::to_string(value));
  }
  return text;
}

/// Calls visit(position, place in a tuple, name) for each tensor that a plan's "hf" member names.
template <class Visit>
void each_source(const Json& hf, const Index& at, size_t part, const Visit& visit) {
  if (hf.is_null()) return;
  if (hf.is_string()) {
    visit(at, part, hf.get<std::string>());
  } else if (hf.is_array()) {
    for (size_t i = 0; i < hf.size(); ++i) {
      Index next = at;
      next.push_back(static_cast<int64_t>(i));
      each_source(hf[i], next, part, visit);
    }
  } else if (hf.contains("template")) {
    const Index dims = hf["dims"].get<Index>();
    const Json& text = hf["template"];
    Index i(dims.size(), 0);
    for (bool more = element_count(dims) > 0; more;) {
      if (text.is_string())
        visit(i, part, fill_template(text.get<std::string>(), hf["vars"], i));
      else
        for (size_t k = 0; k < text["tuple"].size(); ++k)
          visit(i, k, fill_template(text["tuple"][k].get<std::string>(), hf["vars"], i));
      more = false;
      for (size_t k = dims.size(); k-- > 0;) {
        if (++i[k] < dims[k]) {
          more = true;
          break;
        }
        i[k] = 0;
      }
    }
  } else {
    for (size_t k = 0; k < hf["tuple"].size(); ++k) each_source(hf["tuple"][k], at, k, visit);
  }
}

Sources decode(const Json& hf) {
  Sources out;
  each_source(hf, {}, 0, [&](const Index& at, size_t, const std::string& name) { out[at].insert(name); });
  return out;
}

/// Positions in the order of the plan's nesting, rearranged to ascending stacked axes.
Sources by_axis(const Sources& sources, const Index& axes) {
  Sources out;
  std::vector<size_t> order(axes.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::sort(order, {}, [&](size_t i) { return axes[i]; });
  for (const auto& [at, names] : sources) {
    Index sorted;
    for (size_t i : order) sorted.push_back(at[i]);
    out[sorted] = names;
  }
  return out;
}

std::map<std::string, Expected> expected_leaves(const Json& golden) {
  std::map<std::string, Expected> leaves;
  for (const Json& entry : golden["params"]) {
    const Json& name = entry["maxtext"];
    const Json& axes = entry.contains("intended_stack_axes") ? entry["intended_stack_axes"] : entry["stack_axes"];
    const Sources sources = by_axis(decode(entry["hf"]), axes.get<Index>());
    if (name.is_string()) {
      leaves[name] = {entry["shape"], sources};
    } else {
      for (size_t i = 0; i < name.size(); ++i) leaves[name[i]] = {entry["shape"][i], sources};
    }
  }
  return leaves;
}

/// What upstream's mapping leaves out although the model has it: the shape is known, the source sometimes.
void add_unmapped(const Json& golden, std::map<std::string, Expected>& leaves) {
  if (!golden["extra"].contains("unmapped_detail")) return;
  for (const auto& [name, detail] : golden["extra"]["unmapped_detail"].items()) {
    Sources sources;
    if (detail.contains("upstream_lists_it_as") && !detail["upstream_lists_it_as"].is_null())
      sources = decode(detail["upstream_lists_it_as"]["hf"]);
    leaves[name] = {detail["shape"], sources};
  }
}

/// Shapes of upstream's table that the tensors of published files do not have, and that its own mapping cannot use.
struct WrongShape {
  std::string_view model, tensor, why;
};
constexpr WrongShape kWrongShapes[] = {
    {"qwen3-vl-30b-a3b", "model.visual.merger.linear_fc*", "intermediate_size in place of hidden_size * merge^2"},
    {"qwen3-vl-30b-a3b", "model.visual.deepstack_merger_list.*", "intermediate_size in place of hidden_size * merge^2"},
};

bool known_wrong(const Json& golden, const std::string& tensor) {
  return std::ranges::any_of(kWrongShapes, [&](const WrongShape& wrong) {
    return wrong.model == golden["model_name"].get<std::string>() && models::matches(wrong.tensor, tensor);
  });
}

/// The shapes of Hugging Face tensors as far as upstream's table has them.
std::map<std::string, Shape> expected_shapes(const Json& golden) {
  std::map<std::string, Shape> shapes;
  for (const Json& entry : golden["params"]) {
    const Json& stated = entry["hf_shapes"];
    const Json& each = stated.is_object() && stated.contains("each") ? stated["each"] : stated;
    each_source(entry["hf"], {}, 0, [&](const Index&, size_t part, const std::string& name) {
      const Json& shape = each.is_object() ? each["tuple"][part] : each;
      if (!shape.is_null() && !known_wrong(golden, name)) shapes[name] = shape.get<Shape>();
    });
  }
  return shapes;
}

Sources sources_of(const Plan& plan, const Leaf& leaf) {
  Sources out;
  const auto strides = row_major_strides(leaf.shape);
  // An axis is stacked when no walk of the leaf has an index on it.
  std::vector<bool> walked(leaf.shape.size(), false);
  for (const Link& link : plan.links_of(leaf)) {
    const Walk& walk = plan.walks[link.walk];
    for (size_t i = 0; i < walk.extents.size(); ++i)
      for (size_t axis = 0; axis < strides.size(); ++axis)
        if (walk.extents[i] > 1 && leaf.shape[axis] > 1 && strides[axis] <= walk.maxtext_strides[i]) {
          walked[axis] = true;
          break;
        }
  }
  for (int axis : leaf.stack_axes) walked[static_cast<size_t>(axis)] = false;
  for (const Link& link : plan.links_of(leaf)) {
    const std::string& name = plan.tensors[link.tensor].name;
    Index at;
    int64_t rest = link.maxtext_offset;
    for (size_t axis = 0; axis < strides.size(); ++axis) {
      const bool stacked = std::ranges::find(leaf.stack_axes, static_cast<int>(axis)) != leaf.stack_axes.end();
      const bool chooses_expert =
          !walked[axis] && name.find(".experts." + std::to_string(rest / strides[axis]) + ".") != std::string::npos &&
          leaf.shape[axis] > 1 && axis == 0;
      if (stacked || chooses_expert) at.push_back(rest / strides[axis]);
      rest %= strides[axis];
    }
    out[at].insert(name);
  }
  return out;
}

std::string key_of(const Leaf& leaf) {
  std::string path = leaf.path;
  std::ranges::replace(path, '.', '-');
  return leaf.collection + "-" + path;
}

Result<Plan> plan_for(const Json& golden, const std::string& variant) {
  MAXPORT_ASSIGN_OR_RETURN(const maxtext::CatalogEntry* entry,
                           maxtext::find_model(golden["model_name"].get<std::string>()));
  MAXPORT_ASSIGN_OR_RETURN(auto config, huggingface::ConfigRoles::create(entry->hf_config, entry->name));
  models::MaxTextLayout layout;
  layout.scan_layers = golden["scan_layers"].get<bool>();
  layout.use_multimodal = golden["use_multimodal"].get<bool>();
  layout.mtp_num_layers = variant == "mtp" ? 1 : 0;
  layout.float8_weights = entry->settings.value("weight_dtype", "") == "float8_e4m3fn";
  if (entry->settings.contains("vocab_size")) layout.vocab_size = entry->settings["vocab_size"].get<int64_t>();
  const models::Family* family = models::find_family(entry->family);
  if (family == nullptr) return fail(ErrorKind::kUnsupported, "family {} is not there", entry->family);
  MAXPORT_ASSIGN_OR_RETURN(auto map, models::parameter_map(*family, {config, layout, nullptr}));
  return build(map);
}

std::vector<std::string> plan_files() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(MAXPORT_TEST_DATA "/plans"))
    if (entry.path().extension() == ".gz" && entry.path().filename() != "status.json.gz")
      names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

class GoldenPlan : public testing::TestWithParam<std::string> {};

TEST_P(GoldenPlan, HasTheNamesShapesSourcesAndStackAxesOfMaxText) {
  const std::string file = GetParam();
  const Json golden = Json::parse(read_gzip(std::filesystem::path(MAXPORT_TEST_DATA "/plans") / file));
  const std::string stem = file.substr(0, file.size() - 8);
  auto plan = plan_for(golden, stem.substr(stem.rfind('.') + 1));
  ASSERT_TRUE(plan) << plan.error().message();
  auto expected = expected_leaves(golden);
  add_unmapped(golden, expected);
  EXPECT_EQ(plan->leaves.size(), golden["num_leaves"].get<size_t>());
  for (const Leaf& leaf : plan->leaves) {
    auto found = expected.find(key_of(leaf));
    if (found == expected.end()) {
      ADD_FAILURE() << "not a MaxText leaf: " << key_of(leaf);
      continue;
    }
    EXPECT_EQ(leaf.shape, found->second.shape) << key_of(leaf);
    if (!found->second.sources.empty() || leaf.link_count == 0) {
      const Sources sources = sources_of(*plan, leaf);
      EXPECT_EQ(sources, found->second.sources) << key_of(leaf);
    }
    expected.erase(found);
  }
  for (const auto& [name, leaf] : expected) ADD_FAILURE() << "missing: " << name;
  const auto shapes = expected_shapes(golden);
  for (const Tensor& tensor : plan->tensors)
    if (const auto found = shapes.find(tensor.name); found != shapes.end()) {
      EXPECT_EQ(tensor.shape, found->second) << tensor.name;
    }
  auto faults = check_cover(*plan);
  ASSERT_TRUE(faults) << faults.error().message();
  for (const Fault& fault : *faults) ADD_FAILURE() << fault.text;
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param.substr(0, info.param.size() - 8);
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Plans, GoldenPlan, testing::ValuesIn(plan_files()), test_name);

}  // namespace
}  // namespace maxport::plan
