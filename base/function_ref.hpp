// A function that is only borrowed, for the length of a call: unlike std::function it never allocates. For
// parameters alone: as a variable it would outlive the lambda that it was made from.
#pragma once

#include <type_traits>
#include <utility>

namespace sluice {

template <class Signature>
class FunctionRef;

template <class R, class... Arguments>
class FunctionRef<R(Arguments...)> {
 public:
  template <class Function>
  requires(!std::is_same_v<std::remove_cvref_t<Function>, FunctionRef>) FunctionRef(
      Function&& function)  // NOLINT(google-explicit-constructor): as a parameter it takes any lambda
      : object_(const_cast<void*>(static_cast<const void*>(&function))),
        call_([](void* object, Arguments... a) -> R {
          return (*static_cast<std::remove_reference_t<Function>*>(object))(std::forward<Arguments>(a)...);
        }) {}

  R operator()(Arguments... arguments) const { return call_(object_, std::forward<Arguments>(arguments)...); }

 private:
  void* object_;
  R (*call_)(void*, Arguments...);
};

}  // namespace sluice
