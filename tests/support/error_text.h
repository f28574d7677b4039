// The text of an expected error.
#pragma once

#include <gtest/gtest.h>

#include <string>

namespace tw::test {

/// The text of the E that `body` throws. When it throws nothing, the test fails and the text is "".
/// Other exceptions are passed on.
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
