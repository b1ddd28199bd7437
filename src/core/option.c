/* Settings of a call: defaults, and checks that are written once. */
#include "core/error.h"
#include <math.h>

double ng_option(double value, double standard)
{
    return value == 0 && !signbit(value) ? standard : value;
}

bool ng_option_given(double value) { return value != 0 || signbit(value); }

bool ng_option_idle(const char *function, const char *option, bool given, const char *where)
{
    if (!given) return true;
    ng_fail(NG_EVALUE, "%s: .%s is set, which has an effect only %s", function, option, where);
    return false;
}

bool ng_option_apart(const char *function, const char *one, bool has_one, const char *other,
                     bool has_other)
{
    if (!has_one || !has_other) return true;
    ng_fail(NG_EVALUE, "%s: both .%s and .%s, expected one of them", function, one, other);
    return false;
}

int64_t ng_fraction_of(double fraction, int64_t n)
{
    return (int64_t)(fraction * (double)n + 1e-9);
}

double ng_exactly(double value) { return value == 0 ? NG_ZERO : value; }

bool ng_option_positive(const char *function, const char *option, int64_t value, const char *what)
{
    if (value > 0 && value <= NG_OPTION_MOST) return true;
    if (value <= 0)
        ng_fail(NG_EVALUE, "%s: %s is %lld, expected a positive number of %s", function, option,
                (long long)value, what);
    else
        ng_fail(NG_EVALUE, "%s: %s is %lld, expected at most %lld %s", function, option,
                (long long)value, (long long)NG_OPTION_MOST, what);
    return false;
}

bool ng_option_range(const char *function, const char *option, double value, double low,
                     double below)
{
    if (isfinite(value) && value >= low && value < below) return true;
    value += 0; /* NG_ZERO is shown as 0 */
    if (below < HUGE_VAL)
        ng_fail(NG_EVALUE, "%s: %s is %g, expected %g <= %s < %g", function, option, value, low,
                option, below);
    else if (low > -HUGE_VAL)
        ng_fail(NG_EVALUE, "%s: %s is %g, expected a finite number of at least %g", function,
                option, value, low);
    else
        ng_fail(NG_EVALUE, "%s: %s is %g, expected a finite number", function, option, value);
    return false;
}

bool ng_above_zero(const char *function, const char *name, double value)
{
    if (value > 0 && isfinite(value)) return true;
    ng_fail(NG_EVALUE, "%s: %s is %g, expected a positive number", function, name, value + 0);
    return false;
}
