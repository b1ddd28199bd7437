#include "kernels/parallel.h"

#define PAST_FROM (24 << 20)

bool ng_stores_past(int64_t bytes) { return bytes >= PAST_FROM; }
