// Where the items of a data set come from. A source knows how many there are, their labels and names, and
// brings the bytes of one into memory that its caller provides once the size is known. It blocks, and is
// asked by threads that may; or it completes, and answers many requests later, on threads of its own. Every
// function may be called by many threads at once. The same items give the same batches from every source.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "nodes/read.hpp"

namespace sluice {

class CompletingSource;

class Source {
 public:
  Source() = default;
  virtual ~Source() = default;

  [[nodiscard]] virtual std::size_t size() const = 0;  // items
  [[nodiscard]] virtual int label(std::size_t index) const = 0;
  [[nodiscard]] virtual std::string name(std::size_t index) const = 0;  // the whole of it, for messages
  // Bytes of an item, if they are known without opening it.
  [[nodiscard]] virtual std::optional<std::size_t> bytes(std::size_t index) const = 0;
  [[nodiscard]] virtual const std::vector<std::string>& class_names() const = 0;
  [[nodiscard]] virtual std::size_t index_bytes() const = 0;  // what the index holds, this object included

  // Brings an item, and blocks until it is there.
  [[nodiscard]] virtual Outcome fetch(std::size_t index, const ReadOptions& options, MakeRoom make_room,
                                      const Stop& stop) const = 0;
  // Itself, if it completes: the graph then has no threads wait for it.
  [[nodiscard]] virtual const CompletingSource* completing() const { return nullptr; }

 protected:
  Source(const Source&) = default;
  Source(Source&&) = default;
  Source& operator=(const Source&) = default;
  Source& operator=(Source&&) = default;
};

// Takes the bytes of one item and how its read ended, on any thread.
class Delivery {
 public:
  virtual ~Delivery() = default;  // unanswered: the read has failed
  // As MakeRoom; once.
  [[nodiscard]] virtual bool make_room(std::size_t bytes, std::vector<iovec>& where) = 0;
  virtual void done(Outcome outcome) = 0;  // once, and the last call
};

class CompletingSource : public Source {
 public:
  // Returns at once; the answer may come before it does. It may be called from within Delivery::done(), so
  // who calls that must hold no lock that begin() needs. `stop` lives until the answer. What begins while or
  // after `stop` is asked for is answered soon: look at `stop` with the lock held that drop_stopped() takes.
  virtual void begin(std::size_t index, const ReadOptions& options, std::unique_ptr<Delivery> delivery,
                     const Stop& stop) const = 0;
  // Some run was stopped: answers soon what was begun for it, as its `stop` tells, whatever comes of it. What
  // others have begun goes on. Returns at once.
  virtual void drop_stopped() const = 0;

  // Begins it and waits. A read that never comes back keeps its caller, as one from a dead mount does.
  [[nodiscard]] Outcome fetch(std::size_t index, const ReadOptions& options, MakeRoom make_room,
                              const Stop& stop) const final;
  [[nodiscard]] const CompletingSource* completing() const final { return this; }
};

// One item for those who are no graph: `bytes` lies in `room`, which is made larger if it must be.
struct Fetched {
  Outcome outcome;
  std::span<const std::uint8_t> bytes;  // of one that is done
};
[[nodiscard]] Fetched fetch_whole(const Source& source, std::size_t index, const ReadOptions& options,
                                  std::vector<std::uint8_t>& room);

}  // namespace sluice
