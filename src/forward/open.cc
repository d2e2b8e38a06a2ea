#include "forward/open.h"

#include "forward/huggingface/families.h"
#include "forward/maxtext/families.h"

namespace maxport::forward {

Result<bool> is_huggingface(Storage& storage, const std::string& path) {
  MAXPORT_ASSIGN_OR_RETURN(const auto config, storage.kind(join_path(path, "config.json")));
  if (config) return true;
  // A repository of the hub's cache keeps its files in snapshots.
  MAXPORT_ASSIGN_OR_RETURN(const auto snapshots, storage.kind(join_path(path, "snapshots")));
  return snapshots.has_value();
}

Result<std::unique_ptr<Decoder>> open_model(Storage& storage, const OpenModelRequest& request) {
  MAXPORT_ASSIGN_OR_RETURN(const bool huggingface, is_huggingface(storage, request.path));
  if (huggingface) return open_huggingface(storage, request.path, request.like_maxtext);
  return open_maxtext(storage, {request.path, request.settings, request.maxtext_config, request.like_maxtext});
}

}  // namespace maxport::forward
