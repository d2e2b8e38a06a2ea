#include "zstd/code_description.h"

#include <algorithm>
#include <bit>

#include "zstd/bit_stream.h"
#include "zstd/state_table.h"

namespace maxport::zstd {
namespace {

/// A description's first byte is the size of the state-coded weights below this, and this plus their number - 1 above.
constexpr uint8_t kPlainWeights = 128;
constexpr int kSmallestStateBits = 5;
/// Three zeros follow, and three more are asked about; three is more than two bits can count.
constexpr uint32_t kThreeZeros = 3;

struct Weights {
  std::array<uint8_t, 256> of = {};
  size_t count = 0;  ///< of symbols 0 up; the last symbol's weight follows from the others and is not told
};

Weights weights_of(const HuffmanCode& code) {
  Weights weights;
  for (size_t symbol = 0; symbol < 256; ++symbol) {
    if (code.bits[symbol] == 0) continue;
    weights.of[symbol] = static_cast<uint8_t>(code.longest + 1 - code.bits[symbol]);
    weights.count = symbol;
  }
  return weights;
}

/// Shares all states out by how often each weight occurs, at least one to each that does.
StateCounts share_states(const Weights& weights) {
  std::array<int, kWeights> occurs = {};
  for (size_t i = 0; i < weights.count; ++i) ++occurs[weights.of[i]];
  StateCounts states{.bits = kMaxStateBits};
  const int all = static_cast<int>(weights.count);
  int left = kMaxStates;
  for (int weight = 0; weight < kWeights; ++weight) {
    if (occurs[weight] == 0) continue;
    states.of[weight] = static_cast<int8_t>(std::max(1, occurs[weight] * kMaxStates / all));
    left -= states.of[weight];
  }
  // At most kWeights states too many or too few: the most frequent weight has enough to give.
  *std::ranges::max_element(states.of) += static_cast<int8_t>(left);
  return states;
}

void write_state_counts(const StateCounts& states, BitWriter& out) {
  out.write(static_cast<uint32_t>(states.bits - kSmallestStateBits), 4);
  int left = (1 << states.bits) + 1, bits = states.bits + 1;
  for (int weight = 0; weight < kWeights && left > 1;) {
    const int count = states.of[weight++];
    // A count + 1 from 0 to `left`; the lower ones take a bit less where there is room for it.
    const int threshold = 1 << (bits - 1), shorter = 2 * threshold - 1 - left;
    const int value = count + 1 + (count + 1 >= threshold ? shorter : 0);
    out.write(static_cast<uint32_t>(value), bits - (count + 1 < shorter));
    left -= count;
    while (left < 1 << (bits - 1)) --bits;
    if (count != 0) continue;
    int zeros = 0;
    while (weight + zeros < kWeights && states.of[weight + zeros] == 0) ++zeros;
    weight += zeros;
    for (; zeros >= 3; zeros -= 3) out.write(kThreeZeros, 2);
    out.write(static_cast<uint32_t>(zeros), 2);
  }
  out.fill_byte();
}

/// The weights from the last to the first, each as the bits that lead from its state to the next of its chain.
void write_states(const Weights& weights, const StateTable& table, BitWriter& out) {
  const int states = 1 << table.bits;
  std::array<std::array<uint8_t, kMaxStates>, kWeights> leads_to;
  for (int state = 0; state < states; ++state)
    for (int i = 0; i < 1 << table.bits_read[state]; ++i)
      leads_to[table.symbol[state]][table.base[state] + i] = static_cast<uint8_t>(state);
  const size_t count = weights.count;
  uint8_t now[2];
  // The reader stops where it finds no bits to go on, so the last states must be ones that read some: those before the last.
  for (size_t i : {count - 2, count - 1}) now[i & 1] = leads_to[weights.of[i]][states - 1];
  for (size_t i = count - 2; i-- > 0;) {
    const uint8_t next = now[i & 1], state = leads_to[weights.of[i]][next];
    out.write(static_cast<uint32_t>(next - table.base[state]), table.bits_read[state]);
    now[i & 1] = state;
  }
  out.write(now[1], table.bits);
  out.write(now[0], table.bits);
  out.finish();
}

/// Returns the bytes after the first; 0 when they do not fit or the weights are all alike.
size_t write_coded_weights(const Weights& weights, MutableByteSpan out) {
  const auto all = std::span(weights.of).first(weights.count);
  if (weights.count < 2 || std::ranges::min(all) == std::ranges::max(all)) return 0;
  const StateCounts states = share_states(weights);
  // At most 6 bits a weight, more than the room for them.
  std::array<std::byte, 256> bytes;
  BitWriter writer(bytes.data());
  write_state_counts(states, writer);
  write_states(weights, make_state_table(states), writer);
  const size_t size = static_cast<size_t>(writer.end() - bytes.data());
  if (size >= kPlainWeights) return 0;
  std::copy_n(bytes.begin(), size, out.begin());
  return size;
}

size_t plain_bytes(size_t weights) { return (weights + 1) / 2; }

void write_plain_weights(const Weights& weights, MutableByteSpan out) {
  for (size_t i = 0; i < weights.count; i += 2)
    out[i / 2] = static_cast<std::byte>(weights.of[i] << 4 | (i + 1 < weights.count ? weights.of[i + 1] : 0));
}

/// Counts of states from their description; `used` becomes its bytes.
std::optional<StateCounts> read_state_counts(ByteSpan in, size_t& used) {
  ForwardBits bits(in);
  StateCounts states{.bits = static_cast<int>(bits.read(4)) + kSmallestStateBits};
  if (states.bits > kMaxStateBits) return std::nullopt;
  int left = (1 << states.bits) + 1, width = states.bits + 1;
  for (int weight = 0; left > 1;) {
    if (weight >= kWeights || bits.overrun()) return std::nullopt;
    const int threshold = 1 << (width - 1), shorter = 2 * threshold - 1 - left;
    int value = static_cast<int>(bits.read(width - 1));
    if (value >= shorter) {
      value += static_cast<int>(bits.read(1)) << (width - 1);
      if (value >= threshold) value -= shorter;
    }
    const int count = value - 1;
    states.of[weight++] = static_cast<int8_t>(count);
    left -= count < 0 ? -count : count;
    if (left < 1) return std::nullopt;
    while (left < 1 << (width - 1)) --width;
    for (uint32_t zeros = kThreeZeros; count == 0 && zeros == kThreeZeros && !bits.overrun();)
      weight += static_cast<int>(zeros = bits.read(2));
  }
  if (bits.overrun()) return std::nullopt;
  used = bits.bytes_used();
  return states;
}

bool read_coded_weights(ByteSpan in, Weights& weights) {
  size_t used = 0;
  const auto states = read_state_counts(in, used);
  if (!states) return false;
  const StateTable table = make_state_table(*states);
  BackwardBits bits(in.subspan(used));
  uint32_t now[2];
  for (uint32_t& state : now) state = bits.read(table.bits);
  if (bits.overrun()) return false;
  // The chains take turns; the one that has no bits left to move on ends both.
  for (size_t turn = 0; weights.count < 254; turn ^= 1) {
    const uint32_t state = now[turn];
    weights.of[weights.count++] = table.symbol[state];
    now[turn] = table.base[state] + bits.read(table.bits_read[state]);
    if (!bits.overrun()) continue;
    weights.of[weights.count++] = table.symbol[now[turn ^ 1]];
    return true;
  }
  return false;
}

/// The code that the weights make together with one more symbol, which completes it.
std::optional<HuffmanCode> code_of(const Weights& weights) {
  uint32_t sum = 0;
  for (size_t i = 0; i < weights.count; ++i) {
    if (weights.of[i] > kMaxCodeBits) return std::nullopt;
    sum += (uint32_t{1} << weights.of[i]) >> 1;
  }
  const int longest = std::bit_width(sum);
  const uint32_t rest = (uint32_t{1} << longest) - sum;
  if (sum == 0 || longest > kMaxCodeBits || !std::has_single_bit(rest)) return std::nullopt;
  HuffmanCode code;
  for (size_t i = 0; i < weights.count; ++i)
    if (weights.of[i] > 0) code.bits[i] = static_cast<uint8_t>(longest + 1 - weights.of[i]);
  code.bits[weights.count] = static_cast<uint8_t>(longest + 1 - std::bit_width(rest));
  assign_codes(code);
  // The two longest codes of a complete code are siblings.
  if (code.longest != longest || std::ranges::count(code.bits, longest) % 2 != 0) return std::nullopt;
  return code;
}

}  // namespace

size_t write_code_description(const HuffmanCode& code, MutableByteSpan out) {
  const Weights weights = weights_of(code);
  const bool plain_fits = weights.count <= kPlainWeights;
  const size_t coded = write_coded_weights(weights, out.subspan(1));
  if (coded > 0 && (!plain_fits || coded < plain_bytes(weights.count))) {
    out[0] = static_cast<std::byte>(coded);
    return 1 + coded;
  }
  if (!plain_fits) return 0;
  out[0] = static_cast<std::byte>(kPlainWeights - 1 + weights.count);
  write_plain_weights(weights, out.subspan(1));
  return 1 + plain_bytes(weights.count);
}

std::optional<HuffmanCode> read_code_description(ByteSpan in, size_t& used) {
  if (in.empty()) return std::nullopt;
  const auto first = static_cast<uint8_t>(in[0]);
  Weights weights;
  const bool plain = first >= kPlainWeights;
  const size_t size = plain ? plain_bytes(size_t{first} - (kPlainWeights - 1)) : first;
  if (size == 0 || size >= in.size()) return std::nullopt;
  used = 1 + size;
  if (!plain) return read_coded_weights(in.subspan(1, size), weights) ? code_of(weights) : std::nullopt;
  weights.count = size_t{first} - (kPlainWeights - 1);
  for (size_t i = 0; i < weights.count; ++i)
    weights.of[i] = static_cast<uint8_t>(static_cast<uint8_t>(in[1 + i / 2]) >> (i % 2 ? 0 : 4) & 15);
  return code_of(weights);
}

}  // namespace maxport::zstd
