// A mutex that the compiler knows about: a member says which mutex guards it, a function which one it needs
// held, and clang's -Wthread-safety refuses code that does not keep to it (tests/thread_safety runs it over
// the whole tree). g++ sees a plain std::mutex and std::condition_variable, and the same machine code.
//
//   Mutex mutex_;
//   std::deque<Entry> queue_ GUARDED_BY(mutex_);
//   void write_oldest() REQUIRES(mutex_);
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define SLUICE_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define SLUICE_THREAD_ATTRIBUTE(x)
#endif

#define GUARDED_BY(...) SLUICE_THREAD_ATTRIBUTE(guarded_by(__VA_ARGS__))
#define REQUIRES(...) SLUICE_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define EXCLUDES(...) SLUICE_THREAD_ATTRIBUTE(locks_excluded(__VA_ARGS__))
#define ACQUIRE(...) SLUICE_THREAD_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define RELEASE(...) SLUICE_THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))
#define CAPABILITY(name) SLUICE_THREAD_ATTRIBUTE(capability(name))
#define SCOPED_CAPABILITY SLUICE_THREAD_ATTRIBUTE(scoped_lockable)
#define NO_THREAD_SAFETY_ANALYSIS SLUICE_THREAD_ATTRIBUTE(no_thread_safety_analysis)

namespace sluice {

class CAPABILITY("mutex") Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;
  void lock() ACQUIRE() { inner_.lock(); }
  void unlock() RELEASE() { inner_.unlock(); }

 private:
  friend class Condition;
  std::mutex inner_;
};

// Holds the mutex for as long as it lives, but for the time between unlock() and lock().
class SCOPED_CAPABILITY Lock {
 public:
  explicit Lock(Mutex& mutex) ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~Lock() RELEASE() {
    if (held_) mutex_.unlock();
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  void unlock() RELEASE() {
    held_ = false;
    mutex_.unlock();
  }
  void lock() ACQUIRE() {
    mutex_.lock();
    held_ = true;
  }

 private:
  Mutex& mutex_;
  bool held_ = true;
};

// The other way round: gives up a mutex that is held, and holds it again at its end.
class SCOPED_CAPABILITY Unlocked {
 public:
  explicit Unlocked(Mutex& mutex) RELEASE(mutex) : mutex_(mutex) { mutex_.unlock(); }
  ~Unlocked() RELEASE() { mutex_.lock(); }  // RELEASE of this object: takes the mutex again
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  Mutex& mutex_;
};

// Waits give up the mutex meanwhile, and wake now and then without cause. A predicate runs with the mutex
// held and says so: cond.wait(mutex_, [this]() REQUIRES(mutex_) { return closed_; }).
class Condition {
 public:
  void notify_one() { inner_.notify_one(); }
  void notify_all() { inner_.notify_all(); }

  void wait(Mutex& mutex) REQUIRES(mutex) {
    const Adopted held(mutex);
    inner_.wait(held.lock);
  }
  template <class Period>
  void wait_for(Mutex& mutex, Period time) REQUIRES(mutex) {
    const Adopted held(mutex);
    inner_.wait_for(held.lock, time);
  }
  template <class Time>
  std::cv_status wait_until(Mutex& mutex, Time deadline) REQUIRES(mutex) {
    const Adopted held(mutex);
    return inner_.wait_until(held.lock, deadline);
  }

  // The analysis knows the mutex of a predicate by its name there alone, so it cannot follow these.
  template <class Predicate>
  void wait(Mutex& mutex, Predicate done) REQUIRES(mutex) NO_THREAD_SAFETY_ANALYSIS {
    const Adopted held(mutex);
    inner_.wait(held.lock, done);
  }
  template <class Period, class Predicate>
  bool wait_for(Mutex& mutex, Period time, Predicate done) REQUIRES(mutex) NO_THREAD_SAFETY_ANALYSIS {
    const Adopted held(mutex);
    return inner_.wait_for(held.lock, time, done);
  }
  template <class Time, class Predicate>
  bool wait_until(Mutex& mutex, Time deadline, Predicate done) REQUIRES(mutex) NO_THREAD_SAFETY_ANALYSIS {
    const Adopted held(mutex);
    return inner_.wait_until(held.lock, deadline, done);
  }

 private:
  // What std::condition_variable takes, over a mutex that stays held before and after.
  struct Adopted {
    explicit Adopted(Mutex& mutex) : lock(mutex.inner_, std::adopt_lock) {}
    ~Adopted() { lock.release(); }
    mutable std::unique_lock<std::mutex> lock;
  };
  std::condition_variable inner_;
};

}  // namespace sluice
