#include "apps/doctor/report.h"

#include <algorithm>
#include <set>

#include "apps/common/console.h"
#include "apps/common/rank_utils.h"
#include "apps/common/version.h"
#include "comm/host_id.h"

namespace tw {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kStates[] = {"ok", "note", "problem"};

Json to_json(const Finding& finding) {
  return {{"name", finding.name},
          {"state", kStates[static_cast<int>(finding.state)]},
          {"text", finding.text},
          {"cure", finding.cure},
          {"details", finding.details}};
}

Finding from_json(const Json& json) {
  const auto state = std::ranges::find(kStates, json["state"].get<std::string>());
  return {.name = json["name"],
          .state = static_cast<State>(state - std::begin(kStates)),
          .text = json["text"],
          .cure = json["cure"],
          .details = json["details"]};
}

/// The findings of a check on this machine; an error is a finding, too.
Findings run_here(const Check& check, const Checkup& checkup) {
  try {
    return check.run(checkup);
  } catch (const std::exception& error) {
    return {{.name = check.name, .state = State::problem, .text = error.what()}};
  }
}

}  // namespace

Findings examine(Checkup checkup) {
  Communicator& comm = checkup.comm;
  const std::vector<HostId> hosts = gather(comm, this_host());
  const HostId& mine = hosts[static_cast<size_t>(comm.rank())];
  checkup.local_ranks = static_cast<int>(std::ranges::count(hosts, mine));
  const bool speaks_for_host = std::ranges::find(hosts, mine) - hosts.begin() == comm.rank();
  const bool several = std::set(hosts.begin(), hosts.end()).size() > 1;

  Findings all;
  for (const Check& check : checks()) {
    if (check.by_all_ranks) {
      std::ranges::move(check.run(checkup), std::back_inserter(all));
      continue;
    }
    Json here = Json::array();
    if (speaks_for_host)
      for (Finding& finding : run_here(check, checkup)) {
        if (several) finding.text = fmt::format("{}: {}", host_name(), finding.text);
        here.push_back(to_json(finding));
      }
    // texts of the system may not be UTF-8
    const std::string text = here.dump(-1, ' ', false, Json::error_handler_t::replace);
    for (const std::string& of_rank : gather_texts(comm, text))
      for (const Json& finding : Json::parse(of_rank)) all.push_back(from_json(finding));
  }
  return all;
}

std::string report_text(const Findings& findings, size_t columns) {
  constexpr size_t kText = 17, kCure = 23;  // columns where they begin
  std::string text;
  for (const Finding& finding : findings) {
    text += wrap(fmt::format("{:<8} {:<7} {}\n", kStates[static_cast<int>(finding.state)],
                             finding.name, finding.text),
                 columns, kText);
    if (!finding.cure.empty())
      text += wrap(fmt::format("{:<16} cure: {}\n", "", finding.cure), columns, kCure);
  }
  const size_t count = problems(findings);
  text += count == 0 ? "no problems\n" : fmt::format("{} problem{}\n", count, count > 1 ? "s" : "");
  return text;
}

std::string report_json(const Findings& findings, int ranks) {
  Json json = {{"version", version()}, {"ranks", ranks}, {"problems", problems(findings)}};
  json["build"] = provenance_json();
  json["findings"] = Json::array();
  for (const Finding& finding : findings) json["findings"].push_back(to_json(finding));
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

size_t problems(const Findings& findings) {
  return static_cast<size_t>(std::ranges::count(findings, State::problem, &Finding::state));
}

}  // namespace tw
