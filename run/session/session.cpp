#include "run/session/session.hpp"

#include <utility>

namespace sluice {
namespace {

Stages with_upload(Stages stages, DeviceFeed* feed) {
  if (feed) stages.upload = [feed](Batch& batch) { return feed->upload(batch); };
  return stages;
}

}  // namespace

Session::Session(const PipelineOptions& options, Stages stages, std::unique_ptr<DeviceFeed> feed)
    : pipeline_(options, with_upload(std::move(stages), feed.get())), feed_(std::move(feed)) {
  catch_signals();
  if (feed_) stop().on_stop([feed = feed_.get()] { feed->cancel(); });
}

Log& Session::open_log(LogOptions options) {
  options.on_error = [this](const Error& error) { stop().fail(error); };
  if (options.metrics)
    options.metrics = [&stats = pipeline_.log_stats(),
                       sink = std::move(options.metrics)](std::string_view line) {
      stats.arrive();
      const Serving serving(stats);
      return sink(line);
    };
  return log_.emplace(std::move(options));
}

Status Session::prepare() {
  if (!prepared_) prepared_ = feed_ ? feed_->prepare(pipeline_.slots()) : Done{};
  return *prepared_;
}

Ending Session::run(const Watch& watch) {
  if (Status ready = prepare(); !ready) return Ending::refused(ready.error());
  bool told = false;
  RunEnd end = pipeline_.run([&] {
    if (const int signal = watch.signal(); signal != 0 && !std::exchange(told, true))
      watch.on_signal ? watch.on_signal(signal) : stop().request();
    watch.tick();
  });
  Ending ending;
  ending.abandoned = end.abandoned;
  ending.figures = std::move(end.figures);
  if (end.failure)
    ending.fail(*end.failure);
  else if (const auto late = feed_ ? feed_->failure() : std::nullopt)
    ending.fail(*late);
  else if (!end.finished && enough_)
    ending.kind = Ending::Kind::enough;
  else if (!end.finished)
    ending.stopped_by(watch.signal());
  return ending;
}

void Session::enough() {
  enough_ = true;
  stop().request();
}

}  // namespace sluice
