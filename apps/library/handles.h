// The objects behind the handles of thinwire.h, and how their functions report errors.
#pragma once

#include <omp.h>

#include <memory>
#include <new>
#include <string>

#include "apps/library/thinwire.h"
#include "comm/link/link.h"
#include "engine/core/error.h"
#include "engine/core/utf8.h"

/// Seconds that a rank waits for another one, unless its caller says otherwise.
inline constexpr double kTimeout = 60;

/// A group owns its communicator, unless it is one of the threads of run_on_threads().
struct thinwire_group {
  explicit thinwire_group(tw::Communicator& of) : base(of) { base.set_timeout(kTimeout); }
  explicit thinwire_group(std::unique_ptr<tw::Communicator> of) : thinwire_group(*of) {
    owned = std::move(of);
  }

  tw::Communicator& comm() const { return link ? *link : base; }

  tw::Communicator& base;
  std::unique_ptr<tw::Communicator> owned;
  std::unique_ptr<tw::LinkCommunicator> link;
  std::shared_ptr<void> only;  // of a group of MPI, while it lives
  int reducers = 0;
  bool freed = false;  // it lives until its last reducer is freed
};

namespace tw {

/// What thinwire_error() returns in this thread.
inline std::string& last_error() {
  thread_local std::string text;
  return text;
}

/// What the body of thinwire_run_threads() returned.
class BodyFailed : public Fault {
 public:
  BodyFailed(int code, const std::string& text) : Fault(text), code_(code) {}
  int code() const { return code_; }

 private:
  int code_;
};

/// A Context sets the OpenMP width of its thread, which belongs to the caller.
class KeepThreads {
 public:
  KeepThreads() = default;
  ~KeepThreads() { omp_set_num_threads(before_); }
  KeepThreads(const KeepThreads&) = delete;

 private:
  int before_ = omp_get_max_threads();
};

/// Runs the body of a C function: its code, with the text of an exception in last_error().
template <class Body>
int guarded(const Body& body) {
  const auto failed = [](int code, const std::string& text) {
    last_error() = printable(text);  // one line
    return code;
  };
  const KeepThreads keep;
  try {
    body();
    return THINWIRE_OK;
  } catch (const BodyFailed& error) {
    return failed(error.code(), error.what());
  } catch (const UserError& error) {
    return failed(THINWIRE_MISUSE, error.what());
  } catch (const CollectiveFault& error) {
    return failed(THINWIRE_NONFINITE, error.what());
  } catch (const std::bad_alloc&) {
    return failed(THINWIRE_FAULT, "[thinwire] the memory ran out");
  } catch (const std::exception& error) {
    return failed(THINWIRE_FAULT, error.what());
  } catch (...) {
    return failed(THINWIRE_FAULT, "[thinwire] an unknown exception");
  }
}

/// UserError when an argument is a null pointer.
inline void need(const void* pointer, const char* name) {
  check(pointer != nullptr, "[thinwire] {} is NULL", name);
}

}  // namespace tw
