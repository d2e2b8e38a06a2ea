// Rotary position embeddings: frequencies of every scaling, and their application.
#pragma once

#include <span>
#include <vector>

#include "base/error.h"
#include "forward/batch.h"
#include "forward/matrix.h"

namespace maxport::forward {

/// Which two elements of a head turn together.
enum class Pairing {
  kHalves,       ///< i and i + n
  kInterleaved,  ///< 2 i and 2 i + 1
};

struct Rotary {
  /// Angle a position, one a pair. A zero leaves its pair alone.
  std::vector<double> frequencies;
  Pairing pairing = Pairing::kHalves;
  double attention_factor = 1;  ///< multiplies cosine and sine
};

/// theta^(-2 i / dim) for i < dim / 2.
std::vector<double> rotary_frequencies(double theta, int64_t dim);
/// "linear": positions are divided by the factor.
std::vector<double> linear_scaled(std::vector<double> frequencies, double factor);

struct Llama3Scaling {
  double factor, low_frequency_factor, high_frequency_factor, original_length;
};
/// Long waves are divided by the factor, short ones kept, between them a mixture.
std::vector<double> llama3_scaled(std::vector<double> frequencies, const Llama3Scaling& scaling);

struct YarnScaling {
  double factor, beta_fast, beta_slow, original_length;
  bool truncate = true;  ///< the range's ends are whole dimensions
};
std::vector<double> yarn_frequencies(double theta, int64_t dim, const YarnScaling& scaling);
/// 0.1 mscale ln(factor) + 1, or 1 for factors up to 1.
double yarn_mscale(double factor, double mscale = 1);

/// kInvalidArgument when a share of more than the whole head would turn.
Result<> check_fits(const Rotary& rotary, int64_t head_dim);

/// Turns the elements [first, first + 2 * frequencies.size()) of each head of `x` ([tokens, heads * head_dim]).
void apply_rotary(Matrix& x, int64_t head_dim, std::span<const int64_t> positions, const Rotary& rotary,
                  int64_t first = 0);

}  // namespace maxport::forward
