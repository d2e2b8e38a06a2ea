// Faults seeded into the map, the plan or the source of every family, one at a time: the check must find each.
//
// The source is what the sound plan needs, so the sound plan is good; the parameters it yields are the checkpoint that
// a fault on MaxText's side is held against.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "maxtext/catalog.h"
#include "models/family.h"
#include "plan/check.h"

namespace maxport::plan {
namespace {

using models::ParameterMap;
using models::Part;
using models::Rule;

/// One family in one form, small where there is a golden model of it.
struct Subject {
  std::string_view family;
  models::MaxTextLayout layout;
};

std::string subject_name(const Subject& subject) {
  std::string name =
      fmt::format("{}_{}{}{}", subject.family, subject.layout.scan_layers ? "scan" : "unscan",
                  subject.layout.use_multimodal ? "_mm" : "", subject.layout.mtp_num_layers ? "_mtp" : "") +
      (subject.layout.float8_weights ? "_float8" : "");
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}

/// A full-size configuration with few layers and experts; what a single layer is stays as it was.
Json shrunk(Json config) {
  constexpr int64_t kPeriods = 8, kExperts = 4;  // whole periods of every family
  if (config.contains("thinker_config")) return {{"thinker_config", shrunk(config["thinker_config"])}};
  Json& text = config.contains("text_config") ? config["text_config"] : config;
  const int64_t layers = text.value("num_hidden_layers", int64_t{0});
  const int64_t kept = std::min(layers, kPeriods + text.value("num_hash_layers", int64_t{0}));
  for (auto& [key, value] : text.items())
    if (value.is_array() && value.size() == static_cast<size_t>(layers)) value.erase(value.begin() + kept, value.end());
  text["num_hidden_layers"] = kept;
  for (const char* experts : {"num_experts", "n_routed_experts"})
    if (text.contains(experts)) text[experts] = kExperts;
  return config;
}

/// The configuration of the family's golden, or a small one of the catalog. Goldens are too narrow for blocks of
/// scales.
Json config_of(const Subject& subject) {
  for (const auto& model : std::filesystem::directory_iterator(MAXPORT_TEST_DATA "/goldens")) {
    if (subject.layout.float8_weights || !model.is_directory() ||
        maxtext::catalog_family(model.path().filename().string()) != subject.family)
      continue;
    std::ifstream file(model.path() / "hf" / "config.json");
    return Json::parse(file);
  }
  for (std::string_view name : maxtext::catalog_names())
    if (maxtext::catalog_family(name) == subject.family) return shrunk(maxtext::find_model(name).value()->hf_config);
  return {};
}

Result<ParameterMap> map_of(const Subject& subject) {
  MAXPORT_ASSIGN_OR_RETURN(const auto config,
                           huggingface::ConfigRoles::create(config_of(subject), std::string(subject.family)));
  return models::parameter_map(*models::find_family(subject.family), {config, subject.layout, nullptr});
}

/// Every form of every family, as far as its map differs from the plain one's.
std::vector<Subject> subjects() {
  std::vector<Subject> out;
  for (const models::Family& family : models::all_families())
    for (bool scanned : {false, true}) {
      Subject plain{family.name, {}};
      plain.layout.scan_layers = scanned;
      const auto plain_map = map_of(plain);
      if (!plain_map) continue;
      out.push_back(plain);
      Subject multimodal = plain, ahead = plain, float8 = plain;
      multimodal.layout.use_multimodal = true;
      ahead.layout.mtp_num_layers = 1;
      float8.layout.float8_weights = true;
      for (const Subject& subject : {multimodal, ahead, float8}) {
        const auto map = map_of(subject);
        if (map && map->rules.size() > plain_map->rules.size()) out.push_back(subject);
      }
    }
  return out;
}

std::vector<SourceTensor> source_of(const Plan& plan) {
  std::vector<SourceTensor> source;
  for (const Tensor& tensor : plan.tensors) source.push_back({tensor.name, DType::kBfloat16, tensor.shape});
  std::ranges::sort(source, {}, &SourceTensor::name);
  return source;
}

class Mutation : public testing::TestWithParam<Subject> {
 protected:
  void SetUp() override {
    auto map = map_of(GetParam());
    ASSERT_TRUE(map) << map.error().message();
    map_ = std::move(*map);
    auto plan = build(map_);
    ASSERT_TRUE(plan) << plan.error().message();
    plan_ = std::move(*plan);
    source_ = source_of(plan_);
    for (const Leaf& leaf : plan_.leaves) held_.push_back({leaf.checkpoint_name(), leaf.shape});
  }

  /// What the check finds in a map, a contradiction between its rules (which build() reports) being a fault as well.
  static std::vector<Fault> faults_of(const ParameterMap& map, const std::vector<SourceTensor>& source) {
    auto plan = build(map);
    if (!plan) return {{FaultKind::kFilledTwice, "", plan.error().message()}};
    return faults_of(*plan, map, source);
  }
  static std::vector<Fault> faults_of(const Plan& plan, const ParameterMap& map,
                                      const std::vector<SourceTensor>& source) {
    auto account = check(plan, map, source);
    if (!account) return {{FaultKind::kOutside, "", account.error().message()}};
    return account->faults;
  }

  /// Some of many, always the first and the last.
  template <class Visit>
  static void for_some(size_t count, Visit visit) {
    const size_t step = std::max<size_t>(1, count / 12);
    for (size_t i = 0; i < count; i += step) visit(i);
    if (count > 1) visit(count - 1);
  }

  /// Unrolled layers repeat their rules dozens of times; every third or so will do then.
  size_t rule_step() const { return std::max<size_t>(1, map_.rules.size() / 128); }

  /// A copy of the map with one rule changed, for each rule that reads tensors and that `change` can change.
  template <class Change>
  void expect_found_in_each_rule(const Change& change, bool some_rule_changes = true) {
    size_t seeded = 0;
    for (size_t i = 0; i < map_.rules.size(); i += rule_step()) {
      if (map_.rules[i].parts.empty()) continue;
      ParameterMap map = map_;
      if (!change(map, i)) continue;
      ++seeded;
      EXPECT_FALSE(faults_of(map, source_).empty()) << map_.rules[i].maxtext;
    }
    if (some_rule_changes) {
      EXPECT_GT(seeded, 0u);
    }
  }

  ParameterMap map_;
  Plan plan_;
  std::vector<SourceTensor> source_;
  std::vector<HeldLeaf> held_;
};

using Kinds = std::vector<FaultKind>;
Kinds kinds_of(const std::vector<Fault>& faults) {
  Kinds kinds;
  for (const Fault& fault : faults) kinds.push_back(fault.kind);
  return kinds;
}

bool mentions(const std::vector<Fault>& faults, FaultKind kind, std::string_view name) {
  return std::ranges::any_of(faults, [&](const Fault& fault) { return fault.kind == kind && fault.name == name; });
}

TEST_P(Mutation, NothingIsFoundInTheSoundMap) {
  EXPECT_THAT(kinds_of(faults_of(map_, source_)), testing::IsEmpty());
  EXPECT_THAT(kinds_of(check_leaves(plan_, held_)), testing::IsEmpty());
}

TEST_P(Mutation, ATensorThatIsMissingIsFound) {
  for_some(source_.size(), [&](size_t i) {
    auto source = source_;
    source.erase(source.begin() + static_cast<std::ptrdiff_t>(i));
    EXPECT_TRUE(mentions(faults_of(plan_, map_, source), FaultKind::kMissing, source_[i].name));
  });
}

TEST_P(Mutation, ATensorThatNothingUsesIsFound) {
  for_some(source_.size(), [&](size_t i) {
    auto source = source_;
    source[i].name += "_more";
    EXPECT_TRUE(mentions(faults_of(plan_, map_, source), FaultKind::kUnused, source[i].name));
  });
}

TEST_P(Mutation, ARuleThatIsMissingIsFound) {
  expect_found_in_each_rule([](ParameterMap& map, size_t i) {
    map.rules.erase(map.rules.begin() + static_cast<std::ptrdiff_t>(i));
    return true;
  });
}

TEST_P(Mutation, ATensorThatIsUsedTwiceIsFound) {
  expect_found_in_each_rule([](ParameterMap& map, size_t i) {
    Rule again = map.rules[i];
    again.maxtext += "_again";
    map.rules.push_back(std::move(again));
    return true;
  });
}

TEST_P(Mutation, TwoSourcesForOneTargetAreFound) {
  size_t seeded = 0;
  for (size_t i = 0; i < map_.rules.size(); i += rule_step()) {
    if (map_.rules[i].parts.empty()) continue;
    ParameterMap map = map_;
    Part other = map.rules[i].parts[0];
    other.huggingface += "_other";
    map.rules[i].parts.push_back(std::move(other));
    auto plan = build(map);
    ASSERT_TRUE(plan) << plan.error().message();
    ++seeded;
    EXPECT_THAT(kinds_of(faults_of(*plan, map, source_of(*plan))), testing::Contains(FaultKind::kFilledTwice));
  }
  EXPECT_GT(seeded, 0u);
}

TEST_P(Mutation, TwoRulesForOneTargetAreRefused) {
  expect_found_in_each_rule([](ParameterMap& map, size_t i) {
    map.rules.push_back(map.rules[i]);
    return !build(map).has_value();
  });
}

TEST_P(Mutation, AWrongShapeIsFound) {
  for_some(source_.size(), [&](size_t i) {
    for (size_t axis = 0; axis < source_[i].shape.size(); ++axis) {
      auto source = source_;
      ++source[i].shape[axis];
      EXPECT_TRUE(mentions(faults_of(plan_, map_, source), FaultKind::kWrongShape, source[i].name));
    }
  });
}

/// Index names at the top level of one side, e.g. {"(heads dim)", "emb"}.
std::vector<std::string> axes_of(std::string_view side) {
  std::vector<std::string> axes;
  int depth = 0;
  for (char c : side) {
    if (c == ' ' && depth == 0) {
      axes.emplace_back();
      continue;
    }
    depth += (c == '(') - (c == ')');
    if (axes.empty()) axes.emplace_back();
    axes.back() += c;
  }
  std::erase(axes, "");
  return axes;
}

TEST_P(Mutation, SwappedAxesOfATensorAreFound) {
  size_t seeded = 0;
  for (size_t i = 0; i < map_.rules.size(); i += rule_step())
    for (size_t part = 0; part < map_.rules[i].parts.size(); ++part) {
      ParameterMap map = map_;
      std::string& pattern = map.rules[i].parts[part].pattern;
      const size_t arrow = pattern.find("->");
      auto axes = axes_of(std::string_view(pattern).substr(0, arrow));
      if (axes.size() < 2) continue;
      std::swap(axes[axes.size() - 2], axes[axes.size() - 1]);
      std::string swapped;
      for (const std::string& axis : axes) swapped += axis + " ";
      pattern.replace(0, arrow, swapped);
      // Of a square tensor no shape tells the axes apart.
      const auto before = parse_pattern(map_.rules[i].parts[part].pattern, map_.dimensions);
      const auto after = parse_pattern(pattern, map_.dimensions);
      ASSERT_TRUE(before && after);
      if (before->huggingface.shape() == after->huggingface.shape()) continue;
      ++seeded;
      EXPECT_FALSE(faults_of(map, source_).empty()) << pattern;
    }
  EXPECT_GT(seeded, 0u);
}

TEST_P(Mutation, LayersStackedAlongTheWrongAxisAreFound) {
  size_t seeded = 0;
  for (size_t i = 0; i < map_.rules.size(); i += rule_step()) {
    const auto& layers = map_.rules[i].layers;
    if (!layers || !layers->stacked) continue;
    for (int64_t axis = 0; axis < 4; ++axis) {
      ParameterMap map = map_;
      map.rules[i].stack_axis = axis;
      const auto plan = build(map);
      ASSERT_TRUE(plan) << plan.error().message();
      std::vector<Shape> before, after;
      for (const Leaf& leaf : plan_.leaves) before.push_back(leaf.shape);
      for (const Leaf& leaf : plan->leaves) after.push_back(leaf.shape);
      if (before == after) continue;
      ++seeded;
      EXPECT_THAT(kinds_of(check_leaves(*plan, held_)), testing::ElementsAre(FaultKind::kWrongShape));
    }
  }
  if (GetParam().layout.scan_layers) {
    EXPECT_GT(seeded, 0u);
  }
}

TEST_P(Mutation, ALayerOffByOneIsFound) {
  expect_found_in_each_rule([](ParameterMap& map, size_t i) {
    if (!map.rules[i].layers || !map.rules[i].parts[0].huggingface.contains("{layer}")) return false;
    ++map.rules[i].layers->first_layer;
    return true;
  });
}

TEST_P(Mutation, OneLayerTooFewOrTooManyIsFound) {
  for (int64_t change : {-1, 1})
    expect_found_in_each_rule(
        [change](ParameterMap& map, size_t i) {
          if (!map.rules[i].layers || !map.rules[i].parts[0].huggingface.contains("{layer}")) return false;
          if (map.rules[i].layers->loops.empty()) {  // a layer by itself: the one beside it instead
            map.rules[i].layers->first_layer += change;
            return true;
          }
          int64_t& count = map.rules[i].layers->loops.back().count;
          count += change;
          return count > 0;  // groups of a single layer can only grow
        },
        change > 0);
}

TEST_P(Mutation, AnExpertOffByOneIsFound) {
  const bool has_experts = map_.dimensions.all().contains("expert");
  size_t seeded = 0;
  for (int64_t change : {-1, 1}) {
    if (!has_experts) continue;
    ParameterMap map = map_;
    map.dimensions.set("expert", map.dimensions.get("expert").value() + change);
    EXPECT_FALSE(faults_of(map, source_).empty());
    ++seeded;
  }
  // The same in the plan: one slice reads the tensor, or lands in the place, of its neighbour.
  for (const Leaf& leaf : plan_.leaves) {
    if (leaf.link_count < 2) continue;
    const uint32_t link = leaf.first_link + leaf.link_count / 2;
    Plan plan = plan_;
    plan.links[link].tensor = plan.links[link - 1].tensor;
    if (plan.links[link].tensor != plan_.links[link].tensor) {
      ++seeded;
      EXPECT_FALSE(faults_of(plan, map_, source_).empty()) << leaf.path;
    }
    plan = plan_;
    plan.links[link].maxtext_offset = plan.links[link - 1].maxtext_offset;
    EXPECT_THAT(kinds_of(faults_of(plan, map_, source_)), testing::Contains(FaultKind::kFilledTwice)) << leaf.path;
  }
  if (has_experts) {
    EXPECT_GT(seeded, 0u);
  }
}

TEST_P(Mutation, AParameterThatIsMissingOrLeftOverInACheckpointIsFound) {
  for_some(held_.size(), [&](size_t i) {
    auto held = held_;
    held[i].name += "_more";
    const auto faults = check_leaves(plan_, held);
    EXPECT_TRUE(mentions(faults, FaultKind::kMissing, held_[i].name));
    EXPECT_TRUE(mentions(faults, FaultKind::kUnused, held[i].name));
  });
}

INSTANTIATE_TEST_SUITE_P(Families, Mutation, testing::ValuesIn(subjects()),
                         [](const auto& subject) { return subject_name(subject.param); });

}  // namespace
}  // namespace maxport::plan
