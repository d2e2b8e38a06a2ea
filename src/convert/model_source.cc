#include "convert/model_source.h"

#include <algorithm>
#include <cstring>

namespace maxport::convert {
namespace {

constexpr std::string_view kFloat8 = "float8_e4m3fn";

/// The rows of MaxText's vocabulary table: as given, else as the model file pads it, else as many as there are tokens.
Result<std::optional<int64_t>> table_rows(const maxtext::Settings& settings, const maxtext::CatalogEntry* entry) {
  if (settings.given("vocab_size")) {
    MAXPORT_ASSIGN_OR_RETURN(const int64_t rows, settings.integer("vocab_size"));
    return rows;
  }
  if (entry != nullptr && entry->settings.contains("vocab_size")) return entry->settings["vocab_size"].get<int64_t>();
  return std::nullopt;
}

Result<models::MaxTextLayout> read_layout(const maxtext::Settings& settings, const maxtext::CatalogEntry* named,
                                          bool same_dimensions) {
  models::MaxTextLayout layout;
  MAXPORT_ASSIGN_OR_RETURN(layout.scan_layers, settings.boolean("scan_layers"));
  MAXPORT_ASSIGN_OR_RETURN(layout.param_scan_axis, settings.integer("param_scan_axis"));
  MAXPORT_ASSIGN_OR_RETURN(layout.use_multimodal, settings.boolean("use_multimodal"));
  MAXPORT_ASSIGN_OR_RETURN(layout.use_audio, settings.boolean("use_audio"));
  MAXPORT_ASSIGN_OR_RETURN(layout.mtp_num_layers, settings.integer("mtp_num_layers"));
  MAXPORT_ASSIGN_OR_RETURN(layout.vocab_size, table_rows(settings, same_dimensions ? named : nullptr));
  if (layout.param_scan_axis < 0 || layout.param_scan_axis > 3)
    return fail(ErrorKind::kInvalidArgument, "param_scan_axis is {}; 0 to 3 make sense", layout.param_scan_axis);
  return layout;
}

/// Kernels stay float8, with their block scales as parameters, when the files are so or MaxText's settings ask for it.
Result<bool> keeps_float8(const huggingface::ConfigRoles& config, const maxtext::Settings& settings,
                          const ModelIdentity& identity) {
  MAXPORT_ASSIGN_OR_RETURN(const auto quantization, config.quantization());
  const bool stored = quantization && quantization->method == "fp8";
  const bool named = identity.entry != nullptr && identity.entry->settings.value("weight_dtype", "") == kFloat8;
  if (!settings.given("weight_dtype")) return identity.family->keeps_float8 && (stored || named);
  MAXPORT_ASSIGN_OR_RETURN(const std::string asked, settings.text("weight_dtype"));
  if (asked != kFloat8 && stored && identity.family->keeps_float8)
    return fail(ErrorKind::kUnsupported,
                "weight_dtype={}, but the weights are float8 and their block scales are not applied here; leave "
                "weight_dtype out to keep both as they are",
                printable(asked));
  if (asked == kFloat8 && !identity.family->keeps_float8)
    return fail(ErrorKind::kUnsupported, "weight_dtype={}: MaxText has no float8 form of {}", asked, identity.family->title);
  return asked == kFloat8;
}

constexpr size_t kCompareBytes = size_t{1} << 20;

}  // namespace

Result<ModelIdentity> identify(const huggingface::ConfigRoles& config, const maxtext::Settings& settings) {
  ModelIdentity out;
  MAXPORT_ASSIGN_OR_RETURN(out.family, models::family_of(config));
  bool same = true;
  if (settings.model_name()) {
    MAXPORT_ASSIGN_OR_RETURN(out.entry, maxtext::find_model(*settings.model_name()));
    if (out.entry->family != out.family->name)
      return fail(ErrorKind::kInvalidArgument,
                  "model_name={} is of the family {}, but config.json describes {}; leave model_name out or name the right one",
                  out.entry->name, out.entry->family, out.family->name);
    MAXPORT_ASSIGN_OR_RETURN(const bool override_config, settings.boolean("override_model_config"));
    MAXPORT_ASSIGN_OR_RETURN(out.mismatches, maxtext::check_model_name(config, *out.entry, override_config));
    same = std::ranges::none_of(out.mismatches, &maxtext::ConfigMismatch::decides_shapes);
  } else {
    MAXPORT_ASSIGN_OR_RETURN(out.entry, maxtext::find_by_config(config));
  }
  MAXPORT_ASSIGN_OR_RETURN(out.layout, read_layout(settings, out.entry, same));
  MAXPORT_ASSIGN_OR_RETURN(out.layout.float8_weights, keeps_float8(config, settings, out));
  return out;
}

Result<std::unique_ptr<ModelSource>> ModelSource::open(Storage& storage, const ModelRequest& request,
                                                       const maxtext::Settings& settings) {
  std::unique_ptr<ModelSource> source(new ModelSource());
  huggingface::OpenOptions options;
  options.ignore_index = request.ignore_index;
  MAXPORT_ASSIGN_OR_RETURN(source->directory_, huggingface::ModelDirectory::open(storage, request.folder, options));
  MAXPORT_ASSIGN_OR_RETURN(source->identity_,
                           with_context(identify(source->directory_->roles(), settings), "in " + printable(request.folder)));
  source->identity_.layout.head = request.head;
  MAXPORT_RETURN_IF_ERROR(with_context(source->make_plan(), "planning the conversion of " + printable(request.folder)));
  if (request.drop_unused) source->drop_unused();
  return source;
}

Result<> ModelSource::make_plan() {
  const models::ModelContext context{directory_->roles(), identity_.layout, this};
  MAXPORT_ASSIGN_OR_RETURN(map_, models::parameter_map(*identity_.family, context));
  MAXPORT_ASSIGN_OR_RETURN(plan_, plan::build(map_));
  std::vector<plan::SourceTensor> held;
  for (const auto& [name, entry] : directory_->tensors())
    held.push_back({std::string(name), entry.info->dtype, entry.info->shape});
  MAXPORT_ASSIGN_OR_RETURN(account_, plan::check(plan_, map_, held));
  return connect();
}

void ModelSource::drop_unused() {
  std::erase_if(account_.faults, [&](const plan::Fault& fault) {
    if (fault.kind != plan::FaultKind::kUnused) return false;
    account_.ignored.push_back({fault.name, "it has no place in MaxText, and --drop_unused was given"});
    return true;
  });
}

Result<> ModelSource::connect() {
  for (const plan::Tensor& tensor : plan_.tensors) {
    auto entry = directory_->find(tensor.name);
    // What the headers lack, the account names; what index and headers disagree about is told here, more precisely.
    if (!entry && entry.error().kind() != ErrorKind::kNotFound) return std::unexpected(std::move(entry).error());
    if (!entry) {
      for (plan::Fault& fault : account_.faults)
        if (fault.name == tensor.name && fault.kind == plan::FaultKind::kMissing) fault.text = entry.error().message() + (fault.text.contains("(config says") ? fault.text.substr(fault.text.find(" (config says")) : "");
      entries_.push_back({});
      continue;
    }
    entries_.push_back(*entry);
  }
  return {};
}

Result<> ModelSource::read(uint32_t tensor, uint64_t byte_offset, MutableByteSpan out) const {
  return directory_->read(entries_[tensor], byte_offset, out);
}

bool ModelSource::contains(std::string_view name) const { return directory_->tensors().contains(name); }

std::optional<Shape> ModelSource::shape(std::string_view name) const {
  const auto found = directory_->tensors().find(name);
  if (found == directory_->tensors().end()) return std::nullopt;
  return found->second.info->shape;
}

bool ModelSource::contains_prefix(std::string_view prefix) const {
  const auto found = directory_->tensors().lower_bound(prefix);
  return found != directory_->tensors().end() && found->first.starts_with(prefix);
}

Result<> ModelSource::check_equal_tensors() const {
  for (const models::EqualTensors& pair : map_.equal) {
    MAXPORT_ASSIGN_OR_RETURN(const auto kept, directory_->find(pair.kept));
    MAXPORT_ASSIGN_OR_RETURN(const auto dropped, directory_->find(pair.dropped));
    const auto differ = [&](std::string_view how) {
      return fail(ErrorKind::kInvalidArgument,
                  "{}, but {} and {} differ ({}); pass --head=tie to use {} for both, or --head=untie to keep both",
                  pair.reason, pair.kept, pair.dropped, how, pair.kept);
    };
    if (kept.info->dtype != dropped.info->dtype || kept.info->shape != dropped.info->shape)
      return differ("in type or shape");
    const uint64_t size = kept.info->end - kept.info->begin;
    Bytes a(std::min<uint64_t>(size, kCompareBytes)), b(a.size());
    for (uint64_t at = 0; at < size; at += a.size()) {
      const size_t step = std::min<uint64_t>(a.size(), size - at);
      MAXPORT_RETURN_IF_ERROR(directory_->read(kept, at, MutableByteSpan(a).first(step)));
      MAXPORT_RETURN_IF_ERROR(directory_->read(dropped, at, MutableByteSpan(b).first(step)));
      const auto [first, second] = std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(step), b.begin());
      if (first != a.begin() + static_cast<std::ptrdiff_t>(step))
        return differ(fmt::format("first at element {}", (at + static_cast<uint64_t>(first - a.begin())) /
                                                            static_cast<uint64_t>(dtype_bytes(kept.info->dtype))));
    }
  }
  return {};
}

}  // namespace maxport::convert
