// All small memory-bound ops at once.
#pragma once

#include "engine/ops/dropout.h"
#include "engine/ops/normalize.h"
#include "engine/ops/relu.h"
#include "engine/ops/subsample_pad.h"
#include "engine/ops/vector.h"
