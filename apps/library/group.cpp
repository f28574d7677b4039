// The groups of thinwire.h.
#include "apps/library/handles.h"
#include "comm/transports.h"

namespace tw {

namespace {

/// Sends by the functions of a caller.
class CallbackCommunicator : public Communicator {
 public:
  explicit CallbackCommunicator(const thinwire_callbacks& callbacks) : callbacks_(callbacks) {
    check(callbacks.exchange != nullptr, "[thinwire] the callbacks have no exchange");
    check(callbacks.size > 0 && callbacks.rank >= 0 && callbacks.rank < callbacks.size,
          "[thinwire] rank {} of {} ranks", callbacks.rank, callbacks.size);
  }

  int rank() const override { return callbacks_.rank; }
  int size() const override { return callbacks_.size; }
  const char* transport() const override { return "callbacks"; }
  void abort(const char* reason, int) override {
    if (callbacks_.abort != nullptr) callbacks_.abort(callbacks_.user, reason);
  }

 protected:
  size_t do_exchange(Context&, int to, ConstBytes out, int from, Bytes in) override {
    const int64_t received = callbacks_.exchange(callbacks_.user, to, out.data(), out.size(), from,
                                                 in.data(), in.size(), timeout());
    if (received < 0)
      fail<Fault>("[callbacks] rank {}: the exchange{}{} failed", rank(),
                  to < 0 ? "" : fmt::format(" to rank {}", to),
                  from < 0 ? "" : fmt::format(" from rank {}", from));
    check<Fault>(static_cast<size_t>(received) <= in.size(),
                 "[callbacks] rank {}: {} bytes from rank {}; at most {} fit", rank(), received,
                 from, in.size());
    return static_cast<size_t>(received);
  }

 private:
  thinwire_callbacks callbacks_;
};

}  // namespace

}  // namespace tw

using namespace tw;  // NOLINT: this file defines functions outside of it

int thinwire_api_version(void) { return THINWIRE_API_VERSION; }
const char* thinwire_version(void) { return TW_VERSION; }
const char* thinwire_error(void) { return last_error().c_str(); }

int thinwire_group_of_callbacks(const thinwire_callbacks* callbacks, thinwire_group** group) {
  return guarded([&] {
    need(callbacks, "callbacks");
    need(group, "group");
    *group = new thinwire_group(std::make_unique<CallbackCommunicator>(*callbacks));
  });
}

int thinwire_group_of_mpi(thinwire_group** group) {
  return guarded([&] {
    need(group, "group");
    static std::weak_ptr<void> living;
    check(living.expired(), "[thinwire] there is a group of MPI already; free it first");
    *group =
        new thinwire_group(started_by_mpi() ? make_mpi_communicator() : make_self_communicator());
    living = (*group)->only = std::make_shared<int>();
  });
}

int thinwire_finish_mpi(int* code) {
  return guarded([&] {
    need(code, "code");
    *code = finish_mpi(*code, "", kTimeout);
  });
}

int thinwire_run_threads(int ranks, int (*body)(thinwire_group*, void*), void* user) {
  return guarded([&] {
    check(body != nullptr, "[thinwire] body is NULL");
    run_on_threads(ranks, [&](Communicator& comm) {
      thinwire_group group(comm);
      last_error() = "[thinwire] the body of a thread ended with an error";
      if (const int code = body(&group, user); code != 0) throw BodyFailed(code, last_error());
      check(group.reducers == 0, "[thinwire] the body of a thread left a reducer of its group");
    });
  });
}

int thinwire_group_rank(const thinwire_group* group) { return group ? group->base.rank() : -1; }
int thinwire_group_size(const thinwire_group* group) { return group ? group->base.size() : -1; }

int thinwire_group_set_timeout(thinwire_group* group, double seconds) {
  return guarded([&] {
    need(group, "group");
    check(seconds >= 0 && seconds <= kLongestTimeout,
          "[thinwire] a timeout of {} seconds; expected 0 to {}", seconds, kLongestTimeout);
    group->base.set_timeout(seconds);
    if (group->link) group->link->set_timeout(seconds);
  });
}

int thinwire_group_set_link(thinwire_group* group, const char* link) {
  return guarded([&] {
    need(group, "group");
    need(link, "link");
    check(group->reducers == 0 && !group->link,
          "[thinwire] the link of a group is set once, before its first reducer");
    group->link =
        std::make_unique<LinkCommunicator>(group->base.host(), group->base, parse_link(link));
    group->link->set_timeout(group->base.timeout());
  });
}

int thinwire_group_abort(thinwire_group* group, const char* reason) {
  return guarded([&] {
    need(group, "group");
    group->base.abort(reason != nullptr ? reason : "unknown");
  });
}

void thinwire_group_free(thinwire_group* group) {
  if (group == nullptr || !group->owned) return;
  group->freed = true;
  if (group->reducers == 0) delete group;
}
