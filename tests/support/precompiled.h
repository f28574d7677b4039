// What every test includes, compiled once for all of them.
#pragma once

#include <gtest/gtest.h>

#include <fstream>

#include "engine/core/precompiled.h"
