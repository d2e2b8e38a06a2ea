#include "zarr/scratch.h"

#include <lz4.h>
#include <zstd.h>

#include "base/error.h"

namespace maxport::zarr {

Scratch::Scratch() = default;
Scratch::~Scratch() = default;
Scratch::Scratch(Scratch&&) noexcept = default;
Scratch& Scratch::operator=(Scratch&&) noexcept = default;

void Scratch::FreeCompressor::operator()(ZSTD_CCtx_s* context) const { ZSTD_freeCCtx(context); }
void Scratch::FreeDecompressor::operator()(ZSTD_DCtx_s* context) const { ZSTD_freeDCtx(context); }

Scratch& Scratch::inner() {
  if (!inner_) inner_ = std::make_unique<Scratch>();
  return *inner_;
}

void* Scratch::lz4_state() {
  if (!lz4_state_) lz4_state_ = std::make_unique<std::byte[]>(static_cast<size_t>(LZ4_sizeofState()));
  return lz4_state_.get();
}

zstd::LiteralsWorkspace& Scratch::literals() {
  if (!literals_) literals_ = std::make_unique<zstd::LiteralsWorkspace>();
  return *literals_;
}

ZSTD_CCtx_s* Scratch::zstd_compressor() {
  if (!zstd_compressor_) zstd_compressor_.reset(ZSTD_createCCtx());
  MAXPORT_CHECK(zstd_compressor_ != nullptr);
  return zstd_compressor_.get();
}

ZSTD_DCtx_s* Scratch::zstd_decompressor() {
  if (!zstd_decompressor_) zstd_decompressor_.reset(ZSTD_createDCtx());
  MAXPORT_CHECK(zstd_decompressor_ != nullptr);
  return zstd_decompressor_.get();
}

}  // namespace maxport::zarr
