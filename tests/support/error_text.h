// The text of an expected error.
#pragma once

#include <gtest/gtest.h>

#include <string>

namespace tw::test {

/// What `body` throws as E; fails the test and gives "" when it throws nothing. Another kind of
/// exception goes on its way.
template <class E, class Body>
std::string error_text(const Body& body) {
  try {
    body();
  } catch (const E& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

}  // namespace tw::test
