#include "maxtext/spelling.h"

#include <gmock/gmock.h>

namespace maxport::maxtext {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Spelling, CountsEditsAndTakesHyphensAndCaseForEqual) {
  EXPECT_EQ(edit_distance("scan_layers", "scan_layers"), 0u);
  EXPECT_EQ(edit_distance("Scan-Layers", "scan_layers"), 0u);
  EXPECT_EQ(edit_distance("scan_layer", "scan_layers"), 1u);
  EXPECT_EQ(edit_distance("sacn_layers", "scan_layers"), 1u) << "neighbours swapped";
  EXPECT_EQ(edit_distance("", "abc"), 3u);
}

TEST(Spelling, FindsTheNearestNamesFirst) {
  const std::string_view names[] = {"save_dtype", "scan_layers", "weight_dtype", "param_scan_axis"};
  EXPECT_THAT(nearest_names("scan_layer", names), ElementsAre("scan_layers"));
  EXPECT_THAT(nearest_names("save_dtyp", names), ElementsAre("save_dtype"));
  EXPECT_THAT(nearest_names("zzz", names), IsEmpty());
  EXPECT_THAT(nearest_names(std::string(100000, 'a'), names), IsEmpty()) << "must not take a table of that size";
}

TEST(Spelling, SaysDidYouMeanInPlainWords) {
  EXPECT_EQ(did_you_mean({}), "");
  const std::string one[] = {"a"}, three[] = {"a", "b", "c"};
  EXPECT_EQ(did_you_mean(one), "; did you mean a?");
  EXPECT_EQ(did_you_mean(three), "; did you mean a, b or c?");
}

}  // namespace
}  // namespace maxport::maxtext
