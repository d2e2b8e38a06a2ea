#include "cli/console.h"

#include <sys/resource.h>
#include <unistd.h>

#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <fstream>

namespace maxport::cli {
namespace {

constexpr auto kBarInterval = std::chrono::milliseconds(200);
constexpr auto kLineInterval = std::chrono::seconds(10);

volatile std::sig_atomic_t stop_signal = 0;

void remember_signal(int signal) { stop_signal = signal; }

}  // namespace

bool stop_requested() { return stop_signal != 0; }

void install_signal_handlers() {
  struct sigaction action = {};
  action.sa_handler = remember_signal;
  action.sa_flags = static_cast<int>(SA_RESETHAND);  // a second signal ends the program at once
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a full quota is an error of write(), with a message
}

Console::Console(Verbosity verbosity) : verbosity_(verbosity), terminal_(isatty(STDERR_FILENO) == 1) {}

void Console::clear_bar() {
  if (bar_shown_) std::fputs("\r\x1b[K", stderr);
  bar_shown_ = false;
}

void Console::line(std::string_view level, std::string_view text) {
  const std::lock_guard lock(mutex_);
  clear_bar();
  fmt::print(stderr, "{} {}\n", level, text);
}

int Console::fail(const Error& error) {
  const std::lock_guard lock(mutex_);
  clear_bar();
  fmt::print(stderr, "maxport: {}: {}\n", error_kind_name(error.kind()), error.message());
  return exit_code(error.kind());
}

ProgressDisplay::ProgressDisplay(Console& console, std::string what, uint64_t total, std::function<uint64_t()> done)
    : console_(console), what_(std::move(what)), total_(total), done_(std::move(done)),
      start_(std::chrono::steady_clock::now()) {
  if (console_.verbosity() != Verbosity::kQuiet) thread_ = std::jthread([this](std::stop_token stop) { loop(stop); });
}

ProgressDisplay::~ProgressDisplay() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  thread_.join();
  const std::lock_guard lock(console_.mutex_);
  console_.clear_bar();
}

std::string ProgressDisplay::text(double seconds) const {
  const uint64_t done = std::min(done_(), total_);
  const double share = total_ ? static_cast<double>(done) / static_cast<double>(total_) : 1.0;
  const double rate = seconds > 0 ? static_cast<double>(done) / seconds : 0;
  const std::string left = rate > 0 ? duration_text(static_cast<double>(total_ - done) / rate) : "?";
  return fmt::format("{} {:3.0f} %  {} of {}  {}/s  {} left  {} memory", what_, share * 100, bytes_text(done),
                     bytes_text(total_), bytes_text(static_cast<uint64_t>(rate)), left, bytes_text(current_memory()));
}

void ProgressDisplay::loop(std::stop_token stop) {
  std::mutex mutex;
  std::condition_variable_any wake;
  std::unique_lock lock(mutex);
  while (!stop.stop_requested()) {
    const auto interval = console_.terminal() ? std::chrono::milliseconds(kBarInterval) : std::chrono::milliseconds(kLineInterval);
    if (wake.wait_for(lock, stop, interval, [&] { return stop.stop_requested(); })) return;
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    if (!console_.terminal()) {
      console_.info("{}", text(seconds));
      continue;
    }
    const std::lock_guard console_lock(console_.mutex_);
    fmt::print(stderr, "\r\x1b[K{}", text(seconds));
    std::fflush(stderr);
    console_.bar_shown_ = true;
  }
}

std::string bytes_text(uint64_t bytes) {
  static constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB", "PB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 999.5 && unit + 1 < std::size(kUnits)) {
    value /= 1000;
    ++unit;
  }
  return unit == 0 || value >= 99.5 ? fmt::format("{:.0f} {}", value, kUnits[unit]) : fmt::format("{:.3g} {}", value, kUnits[unit]);
}

std::string duration_text(double seconds) {
  if (seconds < 99.5) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<int64_t>(seconds + 0.5);
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole / 60 % 60);
}

uint64_t peak_memory() {
  rusage usage;
  if (getrusage(RUSAGE_SELF, &usage) != 0) return 0;
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

uint64_t current_memory() {
  std::ifstream file("/proc/self/statm");
  uint64_t pages = 0, resident = 0;
  if (!(file >> pages >> resident)) return 0;
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace maxport::cli
