/* ADOL-C as a tool of GradBench: engine_adolc MODULE. Loops over numbers, whose tape is recorded
 * before the timed part, as the benchmark's own tool for ADOL-C does. It has no kmeans. */
#include "gradbench.h"
#include <adolc/adolc.h>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

/* Entries of each of ADOL-C's buffers, beyond which it writes files to the working directory; a
 * mixture with as many products is refused. */
enum { IN_MEMORY = 1 << 28 };
static std::vector<double> at, slope; /* the independent variables, and the gradient there */
static std::vector<double> data;
static int64_t d, k, n, m;
static double gamma_;

static std::vector<double> numbers(const char *input, const char *name)
{
    const ng_tensor *x = input_tensor(input, name);
    return x ? std::vector<double>(ng_data_f64(x), ng_data_f64(x) + ng_size(x))
             : std::vector<double>();
}

static void append(const char *input, const char *name)
{
    const std::vector<double> more = numbers(input, name);
    at.insert(at.end(), more.begin(), more.end());
}

/* ---- The functions, whose operations ADOL-C tapes -------------------------------------------- */

static adouble log_sum_exp(const adouble *x, int64_t count, double first)
{
    double most = x[0].value();
    for (int64_t i = 1; i < count; i++) most = std::fmax(most, x[i].value());
    adouble sum = first * std::exp(-most);
    for (int64_t i = 0; i < count; i++) sum += exp(x[i] - most);
    return log(sum) + most;
}

static adouble lse(const adouble *x) { return log_sum_exp(x, n, 0); }

static adouble llsq(const adouble *x)
{
    adouble sum = 0;
    for (int64_t i = 0; i < n; i++) {
        const double t = -1 + 2 * (double)i / (double)(n - 1);
        adouble error = (t > 0) - (t < 0);
        double power = 1;
        for (int64_t j = 0; j < m; j++, power *= t) error -= x[j] * power;
        sum += error * error;
    }
    return sum / 2;
}

static adouble ode(const adouble *x)
{
    const double h = 2 / (double)m;
    std::vector<adouble> y(n, adouble(0)), z(n), k1(n), sum(n);
    for (int64_t step = 0; step < m; step++) {
        static const double ahead[] = {0, 0.5, 0.5, 1}, weight[] = {1, 2, 2, 1};
        for (int stage = 0; stage < 4; stage++) {
            for (int64_t i = 0; i < n; i++) z[i] = stage ? y[i] + h * ahead[stage] * k1[i] : y[i];
            for (int64_t i = 0; i < n; i++) k1[i] = i ? x[i] * z[i - 1] : x[0];
            for (int64_t i = 0; i < n; i++)
                sum[i] = stage ? sum[i] + weight[stage] * k1[i] : weight[stage] * k1[i];
        }
        for (int64_t i = 0; i < n; i++) y[i] += h / 6 * sum[i];
    }
    return y[n - 1];
}

static adouble minor_of(const adouble *a, int64_t row, unsigned columns)
{
    if (row == n) return 1;
    adouble sum = 0;
    double sign = 1;
    for (int64_t column = 0; column < n; column++) {
        if (!(columns >> column & 1)) continue;
        if (row == n - 1) return a[row * n + column];
        sum += sign * a[row * n + column] * minor_of(a, row + 1, columns & ~(1u << column));
        sign = -sign;
    }
    return sum;
}

static adouble det(const adouble *a) { return minor_of(a, 0, (1u << n) - 1); }

static adouble gmm(const adouble *alpha)
{
    const adouble *mu = alpha + k, *q = mu + k * d, *l = q + k * d;
    const int64_t below = d * (d - 1) / 2;
    std::vector<adouble> diagonal(k * d), log_det(k, adouble(0)), z(d), beta(k);
    adouble prior = 0, fit = 0;
    for (int64_t i = 0; i < k * d; i++) {
        diagonal[i] = exp(q[i]);
        log_det[i / d] += q[i];
        prior -= 0.5 * gamma_ * gamma_ * diagonal[i] * diagonal[i];
    }
    for (int64_t i = 0; i < k * below; i++) prior -= 0.5 * gamma_ * gamma_ * l[i] * l[i];
    for (int64_t i = 0; i < k; i++) prior += (double)m * log_det[i];
    for (int64_t p = 0; p < n; p++) {
        for (int64_t c = 0; c < k; c++) {
            const adouble *below_diagonal = l + c * below;
            adouble square = 0;
            for (int64_t i = 0; i < d; i++)
                z[i] = diagonal[c * d + i] * (data[p * d + i] - mu[c * d + i]);
            for (int64_t i = 0; i < d; i++)
                for (int64_t j = i + 1; j < d; j++)
                    z[j] += *below_diagonal++ * (data[p * d + i] - mu[c * d + i]);
            for (int64_t i = 0; i < d; i++) square += z[i] * z[i];
            beta[c] = alpha[c] + log_det[c] - 0.5 * square;
        }
        fit += log_sum_exp(beta.data(), k, 0);
    }
    const double freedom = (double)(d + m + 1);
    double constant = freedom * (double)d * std::log(gamma_ / M_SQRT2) -
                      0.25 * (double)(d * (d - 1)) * std::log(M_PI);
    for (int64_t i = 0; i < d; i++) constant -= std::lgamma(0.5 * (freedom - (double)i));
    return fit + prior - (double)n * log_sum_exp(alpha, k, 0) + (double)k * constant -
           0.5 * (double)(n * d) * std::log(2 * M_PI);
}

/* k layers, d bits, n characters; data: the state, and then the text. */
static adouble lstm(const adouble *w)
{
    const adouble *extra = w + 8 * k * d;
    std::vector<adouble> state(data.begin(), data.begin() + 2 * k * d), x(d);
    adouble total = 0;
    for (int64_t t = 0; t + 1 < n; t++) {
        const double *now = &data[(2 * k + t) * d], *next = now + d;
        for (int64_t i = 0; i < d; i++) x[i] = now[i] * extra[i];
        for (int64_t layer = 0; layer < k; layer++)
            for (int64_t i = 0; i < d; i++) {
                const adouble *a = w + 8 * layer * d + i, *b = a + 4 * d;
                adouble &h = state[2 * layer * d + i], &c = state[(2 * layer + 1) * d + i];
                const adouble forget = 1 / (1 + exp(-(x[i] * a[0] + b[0])));
                const adouble in = 1 / (1 + exp(-(h * a[d] + b[d])));
                const adouble out = 1 / (1 + exp(-(x[i] * a[2 * d] + b[2 * d])));
                c = c * forget + in * tanh(h * a[3 * d] + b[3 * d]);
                h = out * tanh(c);
                x[i] = h;
            }
        for (int64_t i = 0; i < d; i++) x[i] = x[i] * extra[d + i] + extra[2 * d + i];
        const adouble norm = log_sum_exp(x.data(), d, 2);
        for (int64_t i = 0; i < d; i++) total -= next[i] * (x[i] - norm);
    }
    return total / (double)((n - 1) * d);
}

/* ---- The protocol ---------------------------------------------------------------------------- */

struct eval {
    const char *name, *gradient;
    std::vector<const char *> variables;
    adouble (*function)(const adouble *);
};
static const eval evals[] = {
    {"lse", "gradient", {"x"}, lse},
    {"llsq", "gradient", {"x"}, llsq},
    {"ode", "gradient", {"x"}, ode},
    {"det", "gradient", {"A"}, det},
    {"gmm", "jacobian", {"alpha", "mu", "q", "l"}, gmm},
    {"lstm", "jacobian", {"main_params", "extra_params"}, lstm},
};
static const eval *current;

static void read_sizes(const char *input)
{
    const std::string name = current->name;
    if (name == "lse") n = (int64_t)at.size();
    if (name == "det") n = input_count(input, "ell");
    if (name == "llsq") n = input_count(input, "n"), m = (int64_t)at.size();
    if (name == "ode") n = (int64_t)at.size(), m = input_count(input, "s");
    if (name == "gmm") {
        d = input_count(input, "d"), k = input_count(input, "k"), n = input_count(input, "n");
        m = input_count(input, "m"), gamma_ = input_number(input, "gamma");
        data = numbers(input, "x");
        if (n * k * d * d > IN_MEMORY) ng_fail(NG_ENOMEM, "gmm: too large a tape");
    }
    if (name == "lstm") {
        const ng_tensor *text = input_tensor(input, "sequence");
        n = ng_dim(text, 0), d = ng_dim(text, 1), k = (int64_t)at.size() / (8 * d);
        data = numbers(input, "state");
        data.insert(data.end(), ng_data_f64(text), ng_data_f64(text) + n * d);
    }
}

static void prepare(const char *input)
{
    at.clear();
    for (const char *name : current->variables) append(input, name);
    if (ng_failed()) return;
    read_sizes(input);
    if (ng_failed()) return;
    slope.resize(at.size());
    std::vector<adouble> x(at.size());
    double value;
    trace_on(1, 0, IN_MEMORY, IN_MEMORY, IN_MEMORY, IN_MEMORY);
    for (size_t i = 0; i < at.size(); i++) x[i] <<= at[i];
    current->function(x.data()) >>= value;
    trace_off();
}

static void evaluate(ng_tape *tape, ng_tensor **results)
{
    gradient(1, (int)at.size(), at.data(), slope.data());
    int64_t begin = 0;
    const int64_t sizes[] = {k, k * d, k * d, k * d * (d - 1) / 2};
    const bool is_mixture = current->variables.size() == 4;
    for (int i = 0; i < (is_mixture ? 4 : 1); i++) {
        const int64_t size = is_mixture ? sizes[i] : (int64_t)at.size();
        results[i] = ng_from(tape, NG_F64, NG_SHAPE(size), slope.data() + begin, size);
        begin += size;
    }
}

int main(int argc, char **argv)
{
    gradbench_module module = {};
    module.prepare = prepare;
    module.module = module.primal.name = "";
    module.gradient[0].evaluate = evaluate;
    for (const eval &known : evals) {
        if (argc != 2 || strcmp(argv[1], known.name)) continue;
        current = &known;
        module.module = known.name;
        module.gradient[0].name = known.gradient;
        for (size_t i = 0; i < 4 && known.variables.size() == 4; i++)
            module.gradient[0].members[i] = known.variables[i];
    }
    return gradbench(&module);
}
