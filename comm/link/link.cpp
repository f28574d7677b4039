#include "comm/link/link.h"

#include <algorithm>
#include <charconv>
#include <span>
#include <string>

#include "comm/host_id.h"
#include "comm/link/node_ports.h"
#include "comm/on_device.h"
#include "engine/core/error.h"

namespace tw {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};
constexpr Unit kRates[] = {{"bit", 1}, {"kbit", 1e3}, {"Mbit", 1e6}, {"Gbit", 1e9}};
constexpr Unit kTimes[] = {{"us", 1e-6}, {"ms", 1e-3}, {"s", 1}};

/// `0.4ms` in seconds; negative unless the text is a number and one of the units.
double quantity(std::string_view text, std::span<const Unit> units) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(end, text.data() + text.size() - end);
  const auto found = std::ranges::find(units, unit, &Unit::name);
  const bool good = error == std::errc{} && found != units.end() && number < 1e18;
  return good ? number * found->factor : -1;
}

/// UserError when ranks run on different machines: they compare times of one real clock.
void check_one_machine(Context& ctx, Communicator& comm) {
  if (comm.size() == 1) return;
  const HostId here = this_host();
  HostId there{};
  const int left = (comm.rank() + comm.size() - 1) % comm.size();
  comm.exchange(ctx, (comm.rank() + 1) % comm.size(), std::as_bytes(std::span(here)), left,
                std::as_writable_bytes(std::span(there)));
  check(here == there,
        "[link] ranks {} and {} run on different machines; links are emulated on one", left,
        comm.rank());
}

}  // namespace

LinkSpec parse_link(std::string_view text, int ranks_per_node) {
  const size_t comma = std::min(text.find(','), text.size());
  const std::string_view rate = text.substr(0, comma);
  const std::string_view latency = text.substr(std::min(comma + 1, text.size()));
  const LinkSpec link{.latency = quantity(latency, kTimes),
                      .bits_per_second = quantity(rate, kRates),
                      .ranks_per_node = ranks_per_node};
  check(comma < text.size(), "[link] link is \"{}\"; expected RATE,LATENCY as in 1Gbit,0.4ms",
        text);
  check(link.bits_per_second > 0,
        "[link] rate is \"{}\"; expected a number above 0 and bit, kbit, Mbit or Gbit (per second)",
        rate);
  check(link.latency >= 0,
        "[link] latency is \"{}\"; expected a number and us, ms or s, as in 0.4ms", latency);
  check(ranks_per_node >= 1, "[link] ranks-per-node is {}; expected at least 1", ranks_per_node);
  return link;
}

LinkCommunicator::LinkCommunicator(Context& ctx, Communicator& inner, const LinkSpec& link,
                                   LinkTime time)
    : CommunicatorDecorator(inner),
      link_(link),
      transport_(fmt::format("{} over an emulated link", inner.transport())),
      clock_(make_link_clock(time)) {
  set_timeout(inner.timeout());
  const OperationScope operation(inner, "link");
  if (time == LinkTime::real) check_one_machine(ctx, inner);
  const int first = node(rank()) * link.ranks_per_node;
  ports_ = std::make_unique<NodePorts>(ctx, inner, first,
                                       std::min(first + link.ranks_per_node, inner.size()));
}

LinkCommunicator::~LinkCommunicator() = default;

size_t LinkCommunicator::do_exchange(Context& ctx, int to, ConstBytes out, int from, Bytes in) {
  inner_.inherit_timeout(*this);
  if (lies_on_device(ctx, out)) ctx.synchronize();  // a message departs when its bytes are computed
  // departure times of the outgoing and the incoming message
  double departure = clock_->now(), origin = departure, done = departure;
  if (to >= 0 && !inside(to)) {
    const double seconds = link_.seconds(out.size());
    departure = ports_->book(NodePorts::out, departure, seconds);
    done = departure + seconds;
  }
  // the time travels in a message of its own, so that long messages are not copied
  inner_.exchange(ctx, to, std::as_bytes(std::span(&departure, 1)), from,
                  std::as_writable_bytes(std::span(&origin, from >= 0 ? 1 : 0)));
  const size_t received = inner_.exchange(ctx, to, out, from, in);
  if (from >= 0 && !inside(from)) {
    const double seconds = link_.seconds(received);
    origin = ports_->book(NodePorts::in, origin, seconds) + seconds;
  }
  clock_->wait_until(std::max(done, origin));
  return received;
}

}  // namespace tw
