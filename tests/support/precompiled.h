// Headers that every test includes, compiled once for all tests.
#pragma once

#include <gtest/gtest.h>

#include <fstream>

#include "engine/core/precompiled.h"
