// The inverse of the standard normal distribution function.
#pragma once

namespace tw {

/// x with Phi(x) = p, for p in (0, 1), to about 1e-15 relative. (Wichura, AS 241, PPND16, 1988)
double normal_quantile(double p);

}  // namespace tw
