// Compares collectives on device vectors with the same collectives on the CPU.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "engine/core/buffer.h"
#include "engine/core/copy.h"
#include "tests/support/ranks/collectives.h"

namespace tw {

/// Floats on ctx's device.
class DeviceFloats {
 public:
  DeviceFloats(Context& ctx, std::span<const float> values)
      : ctx_(ctx), buffer_(ctx.device(), values.size_bytes()) {
    copy_to_device(ctx, values, span());
  }
  std::span<float> span() const { return buffer_.as<float>(); }
  std::vector<float> get() const {
    std::vector<float> host(span().size());
    copy_to_host(ctx_, span(), host);
    return host;
  }

 private:
  Context& ctx_;
  Buffer buffer_;
};

/// Expects the same bits from every collective on ctx's device and on the CPU.
inline void expect_collectives_of_the_cpu(Context& ctx, Communicator& comm) {
  Context cpu;
  using Call = std::function<void(Context&, std::span<float>, std::span<float>)>;
  const auto compare = [&](const std::string& name, bool here, const Call& call) {
    if (!runs_on(comm, name)) return;
    for (const size_t n : {size_t{0}, size_t{1}, size_t{5}, size_t{1000}, size_t{4097}}) {
      // a library adds in its own order: use exact sums
      const auto mine =
          name == "vendor" ? whole_numbers(comm.rank(), n) : rough_numbers(comm.rank(), n);
      std::vector<float> expected = mine, room(n);
      call(cpu, expected, room);
      const DeviceFloats data(ctx, mine), scratch(ctx, room);
      call(ctx, data.span(), scratch.span());
      EXPECT_TRUE(!here || data.get() == expected) << name << ", length " << n;
    }
  };
  for (const auto& [name, entry] : allreduces().entries())
    compare(name, true, [&, run = entry.value(known_link())](Context& on, auto data, auto room) {
      run(on, comm, data, room);
    });
  const int root = comm.size() / 2;
  for (const auto& [name, entry] : reduces().entries())
    compare(name, comm.rank() == root,
            [&, run = entry.value(known_link())](Context& on, auto data, auto room) {
              run(on, comm, root, data, room);
            });
  for (const auto& [name, entry] : broadcasts().entries())
    compare(name, true, [&](Context& on, auto data, auto) {
      entry.value(known_link())(on, comm, root, std::as_writable_bytes(data));
    });
}

}  // namespace tw
