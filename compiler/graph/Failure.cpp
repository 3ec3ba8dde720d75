// Anchor for the RTTI of tare::Failure.
#include "compiler/graph/Failure.h"

char tare::Failure::ID;
