/* Losses and gradients of plain blocks of one head (configs/adder_plain.yaml), sixteen seeds at once.

   Everything is an array of sixteen numbers, one a seed, which compilers turn into single instructions. As there are ten
   tokens, a share of attention depends on which token asks, which is asked and how far back it stands, so shares are a
   table. Weights follow one another as in the model: digits, gains, period, query, key, value, output, gate, up, down.
   D width, W width of a value, F hidden units; GAINS of that many norms, the last ones; PERIOD if it is learned. */
#include <math.h>
#include <string.h>
#define SEEDS 16
#define T 34
#define A 11
#define EACH for (int s = 0; s < SEEDS; s++)
typedef float seeds[SEEDS];
enum {
  DIGITS = 0, GAIN = 10 * D, PER = GAIN + GAINS * D, QUERY = PER + PERIOD, KEY = QUERY + 2 * D, VALUE = KEY + 2 * D,
  OUTPUT = VALUE + W * D, GATE = OUTPUT + W * D, UP = GATE + F * D, DOWN = UP + F * D, NUMBERS = DOWN + F * D
};
static seeds share[10][10][T], d_share[10][10][T], along[10][10], across[10][10], cosine[T], sine[T];
static seeds n_token[10][D], r_token[10], query[10][2], key[10][2], value[10][W], d_value[10][W];
static const float EPSILON = 1e-6f, LEAST = -60.f, HALF = 0.70710678f;

int numbers(void) { return NUMBERS; }

/* The n-th norm: y = x r g, r = 1 / rms(x). g is where its gains begin, or none if that is below zero. */
static int gains_of(int n) { return n - 3 + GAINS >= 0 ? GAIN + (n - 3 + GAINS) * D : -1; }

static void norm(const seeds *p, int g, const seeds *x, seeds *y, seeds r) {
  seeds square;
  EACH square[s] = 0;
  for (int d = 0; d < D; d++) EACH square[s] += x[d][s] * x[d][s];
  EACH r[s] = 1.f / sqrtf(square[s] / D + EPSILON);
  for (int d = 0; d < D; d++) EACH y[d][s] = x[d][s] * r[s] * (g < 0 ? 1.f : p[g < 0 ? 0 : g + d][s]);
}

/* Adds the norm's gradients: to gains, and to dx from dy, which is changed. */
static void norm_back(const seeds *p, seeds *grad, int g, const seeds *x, const seeds r, seeds *dy, seeds *dx) {
  seeds dot;
  EACH dot[s] = 0;
  for (int d = 0; d < D; d++) {
    if (g >= 0) {
      EACH grad[g + d][s] += dy[d][s] * x[d][s] * r[s];
      EACH dy[d][s] *= p[g + d][s];
    }
    EACH dot[s] += dy[d][s] * x[d][s];
  }
  EACH dot[s] *= r[s] * r[s] * r[s] / D;
  for (int d = 0; d < D; d++) EACH dx[d][s] += r[s] * dy[d][s] - x[d][s] * dot[s];
}

static void tables(const seeds *p, float period) {
  seeds rate;
  EACH rate[s] = 6.2831853f / (PERIOD ? p[PER][s] : period);
  for (int t = 0; t < T; t++) EACH { cosine[t][s] = cosf(rate[s] * t); sine[t][s] = sinf(rate[s] * t); }
  for (int v = 0; v < 10; v++) {
    norm(p, gains_of(0), p + DIGITS + v * D, n_token[v], r_token[v]);
    for (int o = 0; o < 2; o++) {
      EACH query[v][o][s] = key[v][o][s] = 0;
      for (int d = 0; d < D; d++) EACH {
        query[v][o][s] += HALF * p[QUERY + o * D + d][s] * n_token[v][d][s];
        key[v][o][s] += p[KEY + o * D + d][s] * n_token[v][d][s];
      }
    }
    for (int w = 0; w < W; w++) {
      EACH value[v][w][s] = 0;
      for (int d = 0; d < D; d++) EACH value[v][w][s] += p[VALUE + w * D + d][s] * n_token[v][d][s];
    }
  }
  for (int q = 0; q < 10; q++) {
    seeds most;
    EACH most[s] = 0;
    for (int k = 0; k < 10; k++) EACH {
      float one = query[q][0][s] * key[k][0][s] + query[q][1][s] * key[k][1][s];
      float other = query[q][0][s] * key[k][1][s] - query[q][1][s] * key[k][0][s];
      along[q][k][s] = one, across[q][k][s] = other;
      most[s] = fmaxf(most[s], one * one + other * other);
    }
    EACH most[s] = sqrtf(most[s]);
    for (int k = 0; k < 10; k++) for (int t = 0; t < T; t++) EACH {
      float score = along[q][k][s] * cosine[t][s] + across[q][k][s] * sine[t][s] - most[s];
      share[q][k][t][s] = expf(fmaxf(score, LEAST));
    }
  }
}

static void tables_back(const seeds *p, seeds *grad, float period) {
  static seeds d_query[10][2], d_key[10][2];
  memset(d_query, 0, sizeof d_query), memset(d_key, 0, sizeof d_key);
  seeds d_rate;
  EACH d_rate[s] = 0;
  for (int q = 0; q < 10; q++) for (int k = 0; k < 10; k++) {
    seeds one, other;
    EACH one[s] = other[s] = 0;
    for (int t = 0; t < T; t++) EACH {
      float held = share[q][k][t][s], d = d_share[q][k][t][s] * (held > 9e-27f ? held : 0.f); /* exp(LEAST): held fast */
      one[s] += d * cosine[t][s], other[s] += d * sine[t][s];
      d_rate[s] += d * t * (across[q][k][s] * cosine[t][s] - along[q][k][s] * sine[t][s]);
    }
    EACH {
      d_query[q][0][s] += one[s] * key[k][0][s] + other[s] * key[k][1][s];
      d_query[q][1][s] += one[s] * key[k][1][s] - other[s] * key[k][0][s];
      d_key[k][0][s] += one[s] * query[q][0][s] - other[s] * query[q][1][s];
      d_key[k][1][s] += one[s] * query[q][1][s] + other[s] * query[q][0][s];
    }
  }
  if (PERIOD) EACH grad[PER][s] -= d_rate[s] * 6.2831853f / (p[PER][s] * p[PER][s]);
  for (int v = 0; v < 10; v++) {
    seeds dn[D];
    memset(dn, 0, sizeof dn);
    for (int d = 0; d < D; d++) {
      for (int o = 0; o < 2; o++) EACH {
        grad[QUERY + o * D + d][s] += HALF * d_query[v][o][s] * n_token[v][d][s];
        grad[KEY + o * D + d][s] += d_key[v][o][s] * n_token[v][d][s];
        dn[d][s] += HALF * p[QUERY + o * D + d][s] * d_query[v][o][s] + p[KEY + o * D + d][s] * d_key[v][o][s];
      }
      for (int w = 0; w < W; w++) EACH {
        grad[VALUE + w * D + d][s] += d_value[v][w][s] * n_token[v][d][s];
        dn[d][s] += p[VALUE + w * D + d][s] * d_value[v][w][s];
      }
    }
    norm_back(p, grad, gains_of(0), p + DIGITS + v * D, r_token[v], dn, grad + DIGITS + v * D);
  }
}

/* ids (problems, T) and answers (problems, A); loss (mean cross entropy of a digit) and right (share of problems), one a
   seed; the gradient is left out where `grad` is null. */
void adders(const seeds *p, seeds *grad, const int *ids, const int *answers, int problems, float period, seeds loss,
            seeds right) {
  tables(p, period);
  if (grad) memset(grad, 0, sizeof(seeds) * NUMBERS), memset(d_share, 0, sizeof d_share), memset(d_value, 0, sizeof d_value);
  EACH loss[s] = right[s] = 0;
  const float each = 1.f / (problems * A);
  for (int b = 0; b < problems; b++) {
    seeds all_right;
    EACH all_right[s] = 1;
    for (int a = 0; a < A; a++) {
      const int *row = ids + b * T, here = T - A + a, z = row[here], answer = answers[b * A + a];
      seeds total, mean[W], x[D], n1[D], r1, gate[F], up[F], sigmoid[F], hidden[F], y[D], n2[D], r2, p_v[10], most, sum;
      EACH total[s] = 0;
      memset(mean, 0, sizeof mean);
      for (int j = 0; j <= here; j++) {
        const float *held = share[z][row[j]][here - j];
        EACH total[s] += held[s];
        for (int w = 0; w < W; w++) EACH mean[w][s] += held[s] * value[row[j]][w][s];
      }
      EACH total[s] = 1.f / total[s];
      for (int w = 0; w < W; w++) EACH mean[w][s] *= total[s];
      for (int d = 0; d < D; d++) {
        EACH x[d][s] = p[DIGITS + z * D + d][s];
        for (int w = 0; w < W; w++) EACH x[d][s] += p[OUTPUT + d * W + w][s] * mean[w][s];
      }
      norm(p, gains_of(1), x, n1, r1);
      for (int f = 0; f < F; f++) {
        EACH gate[f][s] = up[f][s] = 0;
        for (int d = 0; d < D; d++) EACH {
          gate[f][s] += p[GATE + f * D + d][s] * n1[d][s];
          up[f][s] += p[UP + f * D + d][s] * n1[d][s];
        }
        EACH sigmoid[f][s] = 1.f / (1.f + expf(-gate[f][s]));
        EACH hidden[f][s] = gate[f][s] * sigmoid[f][s] * up[f][s];
      }
      for (int d = 0; d < D; d++) {
        EACH y[d][s] = x[d][s];
        for (int f = 0; f < F; f++) EACH y[d][s] += p[DOWN + d * F + f][s] * hidden[f][s];
      }
      norm(p, gains_of(2), y, n2, r2);
      EACH most[s] = -1e30f, sum[s] = 0;
      for (int v = 0; v < 10; v++) {
        EACH p_v[v][s] = 0;
        for (int d = 0; d < D; d++) EACH p_v[v][s] += p[DIGITS + v * D + d][s] * n2[d][s];
        EACH most[s] = fmaxf(most[s], p_v[v][s]);
      }
      EACH all_right[s] *= p_v[answer][s] >= most[s];
      EACH loss[s] -= each * (p_v[answer][s] - most[s]);
      for (int v = 0; v < 10; v++) EACH { p_v[v][s] = expf(p_v[v][s] - most[s]); sum[s] += p_v[v][s]; }
      EACH loss[s] += each * logf(sum[s]);
      if (!grad) continue;

      seeds dn[D], dx[D], d_hidden, d_gate, d_up, d_mean[W], d_total;
      EACH sum[s] = each / sum[s];
      memset(dn, 0, sizeof dn), memset(dx, 0, sizeof dx), memset(d_mean, 0, sizeof d_mean);
      for (int v = 0; v < 10; v++) {
        EACH p_v[v][s] *= sum[s];
        if (v == answer) EACH p_v[v][s] -= each;
        for (int d = 0; d < D; d++) EACH {
          grad[DIGITS + v * D + d][s] += p_v[v][s] * n2[d][s];
          dn[d][s] += p_v[v][s] * p[DIGITS + v * D + d][s];
        }
      }
      norm_back(p, grad, gains_of(2), y, r2, dn, dx);
      memset(dn, 0, sizeof dn);
      for (int f = 0; f < F; f++) {
        EACH d_hidden[s] = 0;
        for (int d = 0; d < D; d++) EACH {
          grad[DOWN + d * F + f][s] += dx[d][s] * hidden[f][s];
          d_hidden[s] += p[DOWN + d * F + f][s] * dx[d][s];
        }
        EACH d_gate[s] = d_hidden[s] * up[f][s] * sigmoid[f][s] * (1.f + gate[f][s] * (1.f - sigmoid[f][s]));
        EACH d_up[s] = d_hidden[s] * gate[f][s] * sigmoid[f][s];
        for (int d = 0; d < D; d++) EACH {
          grad[GATE + f * D + d][s] += d_gate[s] * n1[d][s];
          grad[UP + f * D + d][s] += d_up[s] * n1[d][s];
          dn[d][s] += p[GATE + f * D + d][s] * d_gate[s] + p[UP + f * D + d][s] * d_up[s];
        }
      }
      norm_back(p, grad, gains_of(1), x, r1, dn, dx);
      for (int d = 0; d < D; d++) {
        EACH grad[DIGITS + z * D + d][s] += dx[d][s];
        for (int w = 0; w < W; w++) EACH {
          grad[OUTPUT + d * W + w][s] += dx[d][s] * mean[w][s];
          d_mean[w][s] += p[OUTPUT + d * W + w][s] * dx[d][s];
        }
      }
      EACH d_total[s] = 0;
      for (int w = 0; w < W; w++) EACH { d_mean[w][s] *= total[s]; d_total[s] -= d_mean[w][s] * mean[w][s]; }
      for (int j = 0; j <= here; j++) {
        const float *held = share[z][row[j]][here - j];
        float *d_held = d_share[z][row[j]][here - j];
        EACH d_held[s] += d_total[s];
        for (int w = 0; w < W; w++) EACH {
          d_held[s] += d_mean[w][s] * value[row[j]][w][s];
          d_value[row[j]][w][s] += d_mean[w][s] * held[s];
        }
      }
    }
    EACH right[s] += all_right[s] / problems;
  }
  if (grad) tables_back(p, grad, period);
}
