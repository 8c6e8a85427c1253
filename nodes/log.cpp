#include "nodes/log.hpp"

#include <sys/ioctl.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <deque>
#include <optional>
#include <ostream>
#include <thread>
#include <variant>

#include "base/guarded.hpp"
#include "base/printable.hpp"
#include "graph/figures/nodes.hpp"

namespace sluice {
namespace {

using Clock = std::chrono::steady_clock;

struct Message {
  Level level;
  std::string text;
};
using Entry = std::variant<Record, Message, Progress>;  // Progress: the end of a phase

std::string time_stamp() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::localtime_r(&now, &parts);
  std::array<char, 32> buffer;
  return {buffer.data(), std::strftime(buffer.data(), buffer.size(), "%Y-%m-%d %H:%M:%S ", &parts)};
}

std::string worded(const Message& message) {
  constexpr std::array<std::string_view, 3> prefix{"", "warning: ", "error: "};
  return std::string(prefix[static_cast<std::size_t>(message.level)]) + printable_lines(message.text);
}

}  // namespace

class Log::Impl {
 public:
  explicit Impl(LogOptions options) : options_(std::move(options)), thread_([this] { run(); }) {}

  // The log's own thread (on_error may send a message) never waits for itself.
  void push(Entry entry) {
    const Lock lock(mutex_);
    if (std::this_thread::get_id() != self_) {
      const auto room = [this]() REQUIRES(mutex_) {
        return closing_ || queue_.size() < std::max<std::size_t>(1, options_.capacity);
      };
      if (!room()) {
        const auto start = Clock::now();
        not_full_.wait(mutex_, room);
        waited_ += Clock::now() - start;
      }
      if (closing_) return;
    }
    queue_.push_back(std::move(entry));
    ++taken_;
    work_.notify_one();
  }

  void newest(Progress progress) {
    const Lock lock(mutex_);
    newest_ = std::move(progress);
    work_.notify_one();
  }

  Status sync(std::chrono::milliseconds at_most) {
    const auto deadline = Clock::now() + at_most;
    const Lock lock(mutex_);
    if (std::this_thread::get_id() == self_)
      return first_error_ ? *first_error_
                          : Error{name_of(NodeId::log), "", "sync() was called on the log's own thread", ""};
    const std::uint64_t mine = taken_;
    while (on_disk_ < mine) {
      // One wish at a time, the oldest: a steady stream of new ones holds nobody up.
      if (wished_ <= on_disk_ || mine < wished_) wished_ = mine;
      work_.notify_one();
      if (reached_.wait_until(mutex_, deadline) == std::cv_status::timeout) break;
    }
    if (first_error_) return *first_error_;
    return Done{};
  }

  Status close() {
    {
      const Lock lock(mutex_);
      closing_ = true;
    }
    work_.notify_all();
    not_full_.notify_all();
    if (thread_.joinable()) thread_.join();
    const Lock lock(mutex_);
    if (first_error_) return *first_error_;
    return Done{};
  }

  std::size_t waiting() {
    const Lock lock(mutex_);
    return queue_.size();
  }

  std::chrono::nanoseconds waited() {
    const Lock lock(mutex_);
    return waited_;
  }

 private:
  void run() {
    Lock lock(mutex_);
    self_ = std::this_thread::get_id();
    next_plain_ = Clock::now() + options_.plain;
    for (;;) {
      if (newest_) shown_ = std::move(newest_), newest_.reset(), undrawn_ = unwritten_ = true;
      if (wished()) {
        bring_to_disk();
        continue;
      }
      if (!queue_.empty()) {
        write_oldest();
        continue;
      }
      lock.unlock();
      const auto now = Clock::now();
      if (undrawn_ && now >= next_draw_) draw();
      if (unwritten_ && now >= next_plain_) write_plain(*shown_);
      lock.lock();
      if (!queue_.empty() || newest_ || wished()) continue;
      if (closing_) break;
      pause();
    }
    lock.unlock();
    if (undrawn_) draw();
    if (unwritten_) write_plain(*shown_);
    if (drawn_) *options_.screen << '\n' << std::flush;
    drawn_ = false;
    lock.lock();
    do {  // on_error may have had something to say
      while (!queue_.empty()) write_oldest();
      bring_to_disk();
    } while (!queue_.empty());
    self_ = {};  // the system may give the same number to a thread of the future
  }

  void write_oldest() REQUIRES(mutex_) {
    const Entry entry = std::move(queue_.front());
    queue_.pop_front();
    not_full_.notify_one();
    {
      const Unlocked open(mutex_);
      std::visit([this](const auto& item) { write(item); }, entry);
    }
    ++written_;
  }

  [[nodiscard]] bool wished() const REQUIRES(mutex_) { return wished_ > on_disk_ && wished_ <= written_; }

  // A failure is a write error like others; who waits is told so, not left waiting.
  void bring_to_disk() REQUIRES(mutex_) {
    const std::uint64_t written = written_;
    if (on_disk_ < written && options_.sync) {
      const Unlocked open(mutex_);
      check(options_.sync());
    }
    on_disk_ = written;
    reached_.notify_all();
  }

  void pause() REQUIRES(mutex_) {
    std::optional<Clock::time_point> until;
    if (undrawn_ && drawable()) until = next_draw_;
    if (unwritten_ && (!until || next_plain_ < *until)) until = next_plain_;
    const auto due = [this]() REQUIRES(mutex_) { return closing_ || !queue_.empty() || newest_ || wished(); };
    if (until)
      work_.wait_until(mutex_, *until, due);
    else
      work_.wait(mutex_, due);
  }

  [[nodiscard]] bool drawable() const { return options_.screen && options_.terminal; }

  void write(const Record& record) {
    // A checkpoint counts records by lines: behind a gap, none is better than a wrong one.
    if (options_.metrics && !gap_) {
      const Status written = options_.metrics(json_line(record));
      gap_ = !written;
      check(written);
    }
    if (options_.events) check(options_.events(record));
  }

  void write(const Message& message) {
    const std::string text = worded(message);
    say(text);
    check(options_.text, time_stamp() + text);
  }

  // The last state of a phase stays on the terminal, above the next phase (which may have been shown
  // already).
  void write(const Progress& last) {
    std::optional<Progress> next;
    if (shown_ && shown_->label != last.label) next = std::move(shown_);
    shown_ = last;
    if (drawable()) {
      draw();
      *options_.screen << '\n' << std::flush;
      drawn_ = false;
    }
    write_plain(last);
    shown_ = std::move(next);
    undrawn_ = unwritten_ = shown_.has_value();
  }

  void write_plain(const Progress& progress) {
    const std::string text = plain_line(progress);
    if (!drawable()) say(text);
    check(options_.text, time_stamp() + text);
    unwritten_ = false;
    next_plain_ = Clock::now() + options_.plain;
  }

  void say(const std::string& text) {
    if (!options_.screen) return;
    clear();
    *options_.screen << text << '\n' << std::flush;
    // The line that had to make room comes back as soon as the queue is empty.
    if (shown_ && drawable()) undrawn_ = true, next_draw_ = Clock::now();
  }

  void clear() {
    if (drawn_) *options_.screen << "\r\x1b[K";
    drawn_ = false;
  }

  void draw() {
    undrawn_ = false;
    if (!drawable() || !shown_) return;
    // The last column stays free: some terminals wrap as soon as it is written.
    const int width = options_.width ? options_.width() : 80;
    *options_.screen << '\r' << progress_line(*shown_, width - 1) << "\x1b[K" << std::flush;
    drawn_ = true;
    next_draw_ = Clock::now() + options_.redraw;
  }

  void check(const LineSink& sink, const std::string& line) {
    if (sink) check(sink(line));
  }

  void check(const Status& status) {
    if (status) return;
    {
      const Lock lock(mutex_);
      if (first_error_) return;
      first_error_ = status.error();
    }
    if (options_.on_error) options_.on_error(status.error());
  }

  const LogOptions options_;
  Mutex mutex_;
  Condition work_, not_full_, reached_;
  std::deque<Entry> queue_ GUARDED_BY(mutex_);
  std::optional<Progress> newest_ GUARDED_BY(mutex_);
  bool closing_ GUARDED_BY(mutex_) = false;
  std::thread::id self_ GUARDED_BY(mutex_);
  std::chrono::nanoseconds waited_ GUARDED_BY(mutex_){0};
  // Entries, counted from the first.
  std::uint64_t taken_ GUARDED_BY(mutex_) = 0, written_ GUARDED_BY(mutex_) = 0,
                       on_disk_ GUARDED_BY(mutex_) = 0;
  std::uint64_t wished_ GUARDED_BY(mutex_) = 0;  // so many are to be on the disk soon
  std::optional<Error> first_error_ GUARDED_BY(mutex_);

  // The log's own thread alone uses these.
  bool gap_ = false;  // a record could not be written
  std::optional<Progress> shown_;
  bool drawn_ = false, undrawn_ = false, unwritten_ = false;
  Clock::time_point next_draw_, next_plain_;
  std::thread thread_;  // last: it uses all of the above
};

Log::Log(LogOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Log::~Log() { static_cast<void>(impl_->close()); }

void Log::put(Record record) { impl_->push(std::move(record)); }
void Log::message(Level level, std::string text) { impl_->push(Message{level, std::move(text)}); }
void Log::progress(Progress progress) { impl_->newest(std::move(progress)); }
void Log::finish(Progress progress) { impl_->push(std::move(progress)); }
Status Log::sync(std::chrono::milliseconds at_most) { return impl_->sync(at_most); }
Status Log::close() { return impl_->close(); }
std::size_t Log::waiting() const { return impl_->waiting(); }
std::chrono::nanoseconds Log::waited() const { return impl_->waited(); }

int terminal_width(int descriptor) {
  winsize size{};
  return ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace sluice
