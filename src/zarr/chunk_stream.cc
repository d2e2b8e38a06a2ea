#include "zarr/chunk_stream.h"

#include <zstd.h>

#include <cstring>

#include "zarr/codec_chain.h"
#include "zarr/sharding.h"

namespace maxport::zarr {
namespace {

/// Encoded bytes that are read at once.
constexpr uint64_t kPieceBytes = uint64_t{1} << 20;

/// The encoded bytes, in order.
class Input {
 public:
  explicit Input(std::unique_ptr<ByteSource> source) : source_(std::move(source)) {}
  uint64_t size() const { return source_->size(); }
  bool at_end() const { return next_ == source_->size(); }
  Result<ByteSpan> take(uint64_t most) {
    const uint64_t count = std::min(most, source_->size() - next_), begin = std::exchange(next_, next_ + count);
    return source_->read(begin, count, keep_);
  }

 private:
  std::unique_ptr<ByteSource> source_;
  Bytes keep_;
  uint64_t next_ = 0;
};

class PlainStream final : public ChunkStream {
 public:
  PlainStream(uint64_t chunk_bytes, std::unique_ptr<ByteSource> source) : chunk_bytes_(chunk_bytes), input_(std::move(source)) {}

  Result<> read(MutableByteSpan out) override {
    if (input_.size() != chunk_bytes_)
      return fail(ErrorKind::kCorruptData, "{} bytes are stored, expected {}", input_.size(), chunk_bytes_);
    for (size_t done = 0; done < out.size();) {
      MAXPORT_ASSIGN_OR_RETURN(const ByteSpan piece, input_.take(std::min<uint64_t>(kPieceBytes, out.size() - done)));
      if (piece.empty()) return fail(ErrorKind::kCorruptData, "more than the {} bytes of the chunk were asked for", chunk_bytes_);
      std::memcpy(out.data() + done, piece.data(), piece.size());
      done += piece.size();
    }
    return {};
  }

 private:
  const uint64_t chunk_bytes_;
  Input input_;
};

/// One frame and nothing else, as in byte_codecs.cc.
class ZstdStream final : public ChunkStream {
 public:
  ZstdStream(uint64_t chunk_bytes, std::unique_ptr<ByteSource> source)
      : left_(chunk_bytes), input_(std::move(source)), context_(ZSTD_createDCtx()) {}

  Result<> read(MutableByteSpan out) override {
    MAXPORT_CHECK(context_ != nullptr);
    if (out.size() > left_) return fail(ErrorKind::kCorruptData, "more than the chunk's bytes were asked for");
    ZSTD_outBuffer target{out.data(), out.size(), 0};
    while (target.pos < target.size) MAXPORT_RETURN_IF_ERROR(step(target));
    left_ -= out.size();
    return left_ == 0 ? end() : Result<>();
  }

 private:
  struct Free {
    void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
  };

  Result<> step(ZSTD_outBuffer& target) {
    if (frame_ended_) return fail(ErrorKind::kCorruptData, "the zstd frame ends {} bytes before the chunk does", left_ - target.pos);
    if (offset_ == piece_.size() && !input_.at_end()) {
      MAXPORT_ASSIGN_OR_RETURN(piece_, input_.take(kPieceBytes));
      offset_ = 0;
    }
    ZSTD_inBuffer source{piece_.data(), piece_.size(), offset_};
    const size_t before = target.pos;
    const size_t status = ZSTD_decompressStream(context_.get(), &target, &source);
    if (ZSTD_isError(status)) return fail(ErrorKind::kCorruptData, "zstd: {}", ZSTD_getErrorName(status));
    const bool stuck = target.pos == before && source.pos == offset_;
    offset_ = source.pos;
    frame_ended_ = status == 0;
    if (stuck && !frame_ended_ && input_.at_end())
      return fail(ErrorKind::kCorruptData, "the zstd frame is cut short after {} bytes", input_.size());
    return {};
  }

  /// Nothing may be left of the frame but its checksum, and nothing after it.
  Result<> end() {
    std::byte none;
    ZSTD_outBuffer target{&none, 0, 0};
    while (!frame_ended_) MAXPORT_RETURN_IF_ERROR(finish_step(target));
    if (offset_ < piece_.size() || !input_.at_end())
      return fail(ErrorKind::kCorruptData, "there are bytes after the zstd frame");
    return {};
  }

  Result<> finish_step(ZSTD_outBuffer& target) {
    const bool was_at_end = offset_ == piece_.size() && input_.at_end();
    MAXPORT_RETURN_IF_ERROR(step(target));
    if (!frame_ended_ && (was_at_end || offset_ < piece_.size()))
      return fail(ErrorKind::kCorruptData, "the zstd frame holds more than the chunk's bytes");
    return {};
  }

  uint64_t left_;  // of the chunk, not asked for yet
  Input input_;
  std::unique_ptr<ZSTD_DCtx, Free> context_;
  ByteSpan piece_;  // of the input, used up to offset_
  size_t offset_ = 0;
  bool frame_ended_ = false;
};

/// A part of a source that it owns.
class OwnedPart final : public ByteSource {
 public:
  OwnedPart(std::unique_ptr<ByteSource> whole, const ShardEntry& entry)
      : whole_(std::move(whole)), part_(*whole_, entry.offset, entry.length) {}
  uint64_t size() const override { return part_.size(); }
  Result<ByteSpan> read(uint64_t offset, uint64_t length, Bytes& keep) override { return part_.read(offset, length, keep); }

 private:
  std::unique_ptr<ByteSource> whole_;
  PartSource part_;
};

bool is_single_shard(const ArraySpec& spec) {
  return spec.codecs.size() == 1 && spec.codecs[0].kind == CodecKind::kSharding &&
         spec.codecs[0].sharding->chunk_shape == spec.chunk_shape;
}

/// The encoded bytes of a shard's only sub-chunk.
Result<std::unique_ptr<ByteSource>> only_sub_chunk(const Sharding& sharding, std::unique_ptr<ByteSource> shard) {
  const uint64_t index_bytes = shard_index_bytes(sharding, 1);
  if (shard->size() < index_bytes)
    return fail(ErrorKind::kCorruptData, "a shard of {} bytes has no room for its index of {}", shard->size(), index_bytes);
  Bytes keep;
  MAXPORT_ASSIGN_OR_RETURN(const ByteSpan index,
                           shard->read(sharding.index_at_end ? shard->size() - index_bytes : 0, index_bytes, keep));
  MAXPORT_ASSIGN_OR_RETURN(const std::vector<ShardEntry> entries, decode_shard_index(sharding, index, 1, shard->size()));
  if (entries[0].missing()) return fail(ErrorKind::kNotFound, "the sub-chunk is missing from the shard");
  return std::make_unique<OwnedPart>(std::move(shard), entries[0]);
}

std::span<const Codec> innermost(const ArraySpec& spec) {
  return is_single_shard(spec) ? spec.codecs[0].sharding->codecs : spec.codecs;
}

}  // namespace

bool can_stream(const ArraySpec& spec) {
  const std::span<const Codec> codecs = innermost(spec);
  if (codecs.empty() || codecs[0].kind != CodecKind::kBytes || swaps_bytes(codecs[0], spec.dtype)) return false;
  return codecs.size() == 1 || (codecs.size() == 2 && codecs[1].kind == CodecKind::kZstd);
}

Result<std::unique_ptr<ChunkStream>> stream_chunk(const ArraySpec& spec, std::unique_ptr<ByteSource> encoded) {
  MAXPORT_CHECK(can_stream(spec));
  if (is_single_shard(spec)) {
    MAXPORT_ASSIGN_OR_RETURN(encoded, only_sub_chunk(*spec.codecs[0].sharding, std::move(encoded)));
  }
  const auto bytes = static_cast<uint64_t>(chunk_bytes(spec));
  if (innermost(spec).size() == 1) return std::make_unique<PlainStream>(bytes, std::move(encoded));
  return std::make_unique<ZstdStream>(bytes, std::move(encoded));
}

}  // namespace maxport::zarr
