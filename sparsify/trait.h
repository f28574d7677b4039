// Trait: a property of a registered entry that is known without creating the object.
#pragma once

#include <concepts>
#include <functional>

#include "engine/core/settings.h"

namespace tw {

/// A constant, or a function of the settings where a setting decides.
template <class Value>
class Trait {
 public:
  Trait(Value value) : of_([value](const Settings&) { return value; }) {}
  template <std::invocable<const Settings&> Function>
  Trait(Function of) : of_(std::move(of)) {}

  Value operator()(const Settings& settings) const { return of_(settings); }

 private:
  std::function<Value(const Settings&)> of_;
};

}  // namespace tw
