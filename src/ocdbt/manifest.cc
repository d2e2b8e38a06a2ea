#include "ocdbt/manifest.h"

#include <zstd.h>

#include <algorithm>

#include "ocdbt/frame.h"

namespace maxport::ocdbt {
namespace {

/// Versions are few; even 2^16 of them with their version nodes stay far below.
constexpr uint64_t kMaxManifestBodyBytes = uint64_t{64} << 20;

void encode_config(const Config& config, ByteWriter& writer) {
  writer.bytes().reserve(64);
  writer.write_bytes(config.uuid);
  writer.write_u8(static_cast<uint8_t>(config.manifest_kind));
  writer.write_varint(config.max_inline_value_bytes);
  writer.write_varint(config.max_decoded_node_bytes);
  writer.write_u8(config.version_tree_arity_log2);
  writer.write_varint(config.zstd_level ? 1 : 0);
  if (config.zstd_level) writer.write_le32(static_cast<uint32_t>(*config.zstd_level));
}

Result<Config> decode_config(ByteReader& reader) {
  Config config;
  MAXPORT_ASSIGN_OR_RETURN(const ByteSpan uuid, reader.read_bytes(config.uuid.size()));
  std::ranges::copy(uuid, config.uuid.begin());
  const size_t kind_offset = reader.offset();
  MAXPORT_ASSIGN_OR_RETURN(const uint8_t kind, reader.read_u8());
  if (kind > 1)
    return fail(ErrorKind::kCorruptData, "manifest_kind at offset {} is {}, expected 0 (single) or 1 (numbered)",
                kind_offset, kind);
  config.manifest_kind = static_cast<ManifestKind>(kind);
  MAXPORT_ASSIGN_OR_RETURN(const uint64_t max_inline, reader.read_varint(32));
  config.max_inline_value_bytes = static_cast<uint32_t>(max_inline);
  MAXPORT_ASSIGN_OR_RETURN(const uint64_t max_decoded, reader.read_varint(32));
  config.max_decoded_node_bytes = static_cast<uint32_t>(max_decoded);
  MAXPORT_ASSIGN_OR_RETURN(config.version_tree_arity_log2, decode_arity_log2(reader));
  const size_t method_offset = reader.offset();
  MAXPORT_ASSIGN_OR_RETURN(const uint64_t method, reader.read_varint(32));
  if (method > 1)
    return fail(ErrorKind::kCorruptData, "compression_method at offset {} is {}, expected 0 (none) or 1 (zstd)",
                method_offset, method);
  config.zstd_level.reset();
  if (method == 0) return config;
  MAXPORT_ASSIGN_OR_RETURN(const uint32_t level, reader.read_le32());
  config.zstd_level = static_cast<int32_t>(level);
  if (*config.zstd_level < ZSTD_minCLevel() || *config.zstd_level > ZSTD_maxCLevel())
    return fail(ErrorKind::kCorruptData, "the zstd level at offset {} is {}, expected {} to {}", reader.offset() - 4,
                *config.zstd_level, ZSTD_minCLevel(), ZSTD_maxCLevel());
  return config;
}

}  // namespace

Bytes encode_manifest_body(const Manifest& manifest) {
  ByteWriter writer;
  encode_config(manifest.config, writer);
  if (manifest.config.manifest_kind == ManifestKind::kNumbered) return writer.take();
  encode_data_file_table(manifest.files, writer);
  encode_versions(manifest.versions, writer);
  encode_version_nodes(manifest.version_nodes, true, writer);
  return writer.take();
}

Result<Bytes> encode_manifest(const Manifest& manifest) {
  return encode_frame(kManifestMagic, encode_manifest_body(manifest), manifest.config.zstd_level);
}

Result<Manifest> decode_manifest_body(ByteSpan body) {
  ByteReader reader(body, "the body");
  Manifest manifest;
  MAXPORT_ASSIGN_OR_RETURN(manifest.config, decode_config(reader));
  const uint8_t arity_log2 = manifest.config.version_tree_arity_log2;
  if (manifest.config.manifest_kind == ManifestKind::kSingle) {
    MAXPORT_ASSIGN_OR_RETURN(manifest.files, decode_data_file_table(reader));
    MAXPORT_ASSIGN_OR_RETURN(manifest.versions, decode_versions(reader, manifest.files.size(), arity_log2));
    // Heights strictly decrease down to 1, so there are at most as many nodes as heights.
    MAXPORT_ASSIGN_OR_RETURN(manifest.version_nodes, decode_version_nodes(reader, manifest.files.size(), 255, true));
  }
  if (reader.remaining() != 0)
    return fail(ErrorKind::kCorruptData, "{} bytes follow the end of the body at offset {}", reader.remaining(),
                reader.offset());
  return manifest;
}

Result<Manifest> decode_manifest(ByteSpan file) {
  Bytes keep;
  MAXPORT_ASSIGN_OR_RETURN(const ByteSpan body,
                           decode_frame(file, kManifestMagic, "manifest", keep, kMaxManifestBodyBytes));
  return with_context(decode_manifest_body(body), "manifest");
}

}  // namespace maxport::ocdbt
