// What the program says: data on stdout, talk on stderr.
//
// Log lines look like those of MaxText's converters ("INFO Conversion complete."). A progress bar is drawn when stderr is
// a terminal, otherwise a plain line now and then.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "base/error.h"

namespace maxport::cli {

enum class Verbosity { kQuiet, kNormal, kVerbose };

class Console {
 public:
  explicit Console(Verbosity verbosity = Verbosity::kNormal);

  template <class... Args>
  void info(fmt::format_string<Args...> format, Args&&... args) {
    if (verbosity_ != Verbosity::kQuiet) line("INFO", fmt::format(format, std::forward<Args>(args)...));
  }
  template <class... Args>
  void detail(fmt::format_string<Args...> format, Args&&... args) {
    if (verbosity_ == Verbosity::kVerbose) line("INFO", fmt::format(format, std::forward<Args>(args)...));
  }
  template <class... Args>
  void warn(fmt::format_string<Args...> format, Args&&... args) {
    line("WARNING", fmt::format(format, std::forward<Args>(args)...));
  }
  /// Prints the error and returns the program's exit status for it.
  int fail(const Error& error);

  bool terminal() const { return terminal_; }
  Verbosity verbosity() const { return verbosity_; }

 private:
  friend class ProgressDisplay;
  void line(std::string_view level, std::string_view text);
  void clear_bar();

  Verbosity verbosity_;
  bool terminal_;
  bool bar_shown_ = false;
  std::mutex mutex_;
};

/// Shows how far a long operation is until it is destroyed.
class ProgressDisplay {
 public:
  /// `done` is asked from another thread; both are bytes.
  ProgressDisplay(Console& console, std::string what, uint64_t total, std::function<uint64_t()> done);
  ~ProgressDisplay();
  ProgressDisplay(const ProgressDisplay&) = delete;
  ProgressDisplay& operator=(const ProgressDisplay&) = delete;

 private:
  void loop(std::stop_token stop);
  std::string text(double seconds) const;

  Console& console_;
  std::string what_;
  uint64_t total_;
  std::function<uint64_t()> done_;
  std::chrono::steady_clock::time_point start_;
  std::jthread thread_;
};

/// "1.5 GB", "12 MB", "640 B": decimal units.
std::string bytes_text(uint64_t bytes);
/// "1.2 s", "3 min 20 s".
std::string duration_text(double seconds);
/// Peak and current resident memory of this process in bytes, 0 when unknown.
uint64_t peak_memory();
uint64_t current_memory();

/// True once SIGINT or SIGTERM arrived; install_signal_handlers() makes them stop the work cleanly.
bool stop_requested();
void install_signal_handlers();

}  // namespace maxport::cli
