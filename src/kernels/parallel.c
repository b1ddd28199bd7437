#include "kernels/parallel.h"
#include <normgrad/core.h>

#define PAST_FROM_ALONE (24 << 20)
#define PAST_FROM (32 << 20)

bool ng_stores_past(int64_t bytes)
{
    return bytes >= PAST_FROM || (bytes >= PAST_FROM_ALONE && ng_threads() < 2);
}
