// A folder of its own for a test, removed afterwards.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <string>

#include "storage/storage.h"

namespace maxport {

class TemporaryFolder {
 public:
  TemporaryFolder() : path_(testing::TempDir() + "maxport_XXXXXX") {
    MAXPORT_CHECK(::mkdtemp(path_.data()) != nullptr);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() { EXPECT_TRUE(local_storage().remove_all(path_)); }

  const std::string& path() const { return path_; }
  std::string operator/(std::string_view name) const { return join_path(path_, name); }

 private:
  std::string path_;
};

}  // namespace maxport
