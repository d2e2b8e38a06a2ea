// A short name for a whole plan: equal plans have equal ones, on every machine.
#pragma once

#include <string>

#include "plan/plan.h"

namespace maxport::plan {

/// 32 hex digits over everything that decides what is written where: names, shapes, walks, links, arithmetic, fills.
std::string digest(const Plan& plan);

}  // namespace maxport::plan
