// Bytes for tests, written as hexadecimal.
#pragma once

#include <cctype>
#include <string_view>

#include "base/bytes.h"

namespace maxport::ocdbt {

/// Hexadecimal digits with any white space between them.
inline Bytes from_hex(std::string_view text) {
  Bytes out;
  int high = -1;
  for (const char c : text) {
    if (std::isspace(static_cast<unsigned char>(c))) continue;
    const int digit = c <= '9' ? c - '0' : c - 'a' + 10;
    MAXPORT_CHECK(digit >= 0 && digit < 16);
    if (high >= 0) out.push_back(static_cast<std::byte>(high * 16 + digit));
    high = high >= 0 ? -1 : digit;
  }
  MAXPORT_CHECK(high < 0);
  return out;
}

// Written by stock Orbax v0 for {"a": int32 [0, 1, 2, 3], "b": 600 random int32} (formats.md 8).

/// manifest.ocdbt, 114 bytes.
inline constexpr std::string_view kStockManifest = R"(
    0cdb3a2a 7200000000000000 00 01 28b52ffd 20 57 b90200 8346d9e1bb9dda3cf65995b5a2e56898 00 8008 80c2d72f 04
    01 00000000 01 22 00 642f3063643537626537363861623736636231666465353536613162313263303331 01 01 00 00 00 9402
    04 9402 ea12 40422eb807d0ec18 00 e1c45534)";

/// The same manifest without compression, 105 bytes.
inline constexpr std::string_view kPlainManifest = R"(
    0cdb3a2a690000000000000000008346d9e1bb9dda3cf65995b5a2e5689800800880c2d72f040100000000012200642f30
    6364353762653736386162373663623166646535353661316231326330333101010000009402049402ea1240422eb807d0
    ec180079649110)";

/// The root node, a leaf of 276 bytes.
inline constexpr std::string_view kStockLeaf = R"(
    0cdb20de1401000000000000000128b52ffd60c400c50700128f342f80b7e93389199891ac70646462e8bf6bedbea797fc
    38f34db695860c6a2e9ab5ff7fb789c89799dc044a0bc648b60ccfc35880dd6576972d838220c279285888de2b4ba6a424
    8ed0b71ffc7d369c92ceae314eacf79e44a6483156d4db5d65f0f7be2a15bebd79e5c95753c99215b55a52c1b705e83d36
    a5e3db61a596bfc3ea97f72929ed7949e4f496e010dea98235894cbfecb2dd1580600e03ac01f254784eb6340eb3044b30
    cb04304f0fe78022c762d180b019a2a2a6168e06e41c8329f770a0f34894f624e7d554089ca422621b0c0044ebb0b00108
    84460da03914bf609959c274e0d5aa325f5e4d7929aa609216250a3c0d5722)";

}  // namespace maxport::ocdbt
