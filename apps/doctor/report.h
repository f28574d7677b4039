// The findings of all checks on all machines, as text or JSON.
#pragma once

#include "apps/doctor/checkup.h"

namespace tw {

/// Runs every check. All ranks return the same findings; with several machines, each finding of one
/// of them names it. Collective.
Findings examine(Checkup checkup);

/// A line for each finding, with the cure below it where it is not well; broken between words that
/// end beyond `columns`.
std::string report_text(const Findings& findings, size_t columns);
/// `{"version", "ranks", "problems", "findings": [{"name", "state", "text", "cure", "details"}]}`
std::string report_json(const Findings& findings, int ranks);

/// The number of problems.
size_t problems(const Findings& findings);

}  // namespace tw
