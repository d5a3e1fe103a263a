// OpenCL body of attention: softmax and weighted sum in one pass over the positions, with a running maximum. For few
// queries (decoding) work-items divide the positions among them; many queries (prefill) share tiles of keys and values
// in local memory. Heads are packed and queries divided as in src/kernel/attention.h.
#define FEW_QUERIES 8
#define QUERIES_EACH 4  // per work-item at a time
#define MAX_HEAD_DIM 128
#define MAX_THREADS 256
#define MANY_THREADS 128
#define WIDTH (16 / (int)sizeof(weir_element))  // elements of the head per lane
#define TILE_FLOATS 2048
#define MAX_SCORES 1024
#define MAX_QUERIES (MANY_THREADS * QUERIES_EACH)

// One launch as seen by a work-group: a sequence and one of its heads.
typedef struct {
  int queries, head_dim, length;
  long width;
  float scale;  // factor on each score, so that 2^score is the weight
  __global const weir_element* q;
  __global const weir_element* keys;
  __global const weir_element* values;
  __global weir_element* out;
} attention_block;

static int seen_by(const attention_block* block, int query) {
  return block->length <= 0 || query >= block->queries ? 0 : max(0, block->length - block->queries + query + 1);
}
// The factor that rescales a sum from one maximum to a larger one. Both are -inf if no position was seen yet.
static float rescaled(float from, float to) { return exp2(from - (to > -INFINITY ? to : 0.0f)); }

// Up to QUERIES_EACH queries from `first` on. Takes one position per work-item at a time: each computes one score, then
// they take turns at the values, adjacent along the head.
WEIR_INLINE void attend_few(const attention_block* block, int first, __local float* queries, __local float* weights,
                            __local float* room) {
  const int thread = local_thread(), threads = local_threads(), head_dim = block->head_dim;
  const int count = min(QUERIES_EACH, block->queries - first);
  int lanes = 1;
  while (lanes < head_dim && lanes < threads) lanes *= 2;
  const int lane = thread % lanes, turn = thread / lanes, turns = threads / lanes;
  for (int i = thread; i < count * head_dim; i += threads) {
    const int q = i / head_dim, e = i % head_dim;
    queries[q * MAX_HEAD_DIM + e] = load(block->q, (first + q) * block->width + e) * block->scale;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  const int most = seen_by(block, first + count - 1);
  for (int q = 0; q < count; ++q) {
    const int seen = seen_by(block, first + q);
    float largest = -INFINITY, total = 0.0f;
    float sums[MAX_HEAD_DIM / 32];
    for (int j = 0; j < MAX_HEAD_DIM / 32; ++j) sums[j] = 0.0f;
    for (int base = 0; base < most; base += threads) {
      const int position = base + thread;
      float score = -INFINITY;
      if (position < seen) {
        score = 0.0f;
        for (int e = 0; e < head_dim; ++e)
          score = multiply_add(queries[q * MAX_HEAD_DIM + e], load(block->keys, position * block->width + e), score);
      }
      const float higher = fmax(largest, largest_of_group(score, room));
      const float factor = rescaled(largest, higher), weight = rescaled(score, higher);
      largest = higher;
      weights[thread] = weight;
      total = total * factor + sum_of_group(weight, room);  // its barriers make the weights visible
      for (int j = 0; j < MAX_HEAD_DIM / 32; ++j) sums[j] *= factor;
      for (int p = turn; p < min(threads, seen - base); p += turns) {
        for (int j = 0; j < MAX_HEAD_DIM / 32; ++j) {
          const int e = lane + j * lanes;
          if (e < head_dim)
            sums[j] = multiply_add(weights[p], load(block->values, (base + p) * block->width + e), sums[j]);
        }
      }
      barrier(CLK_LOCAL_MEM_FENCE);  // before the next weights are written
    }
    for (int j = 0; j < MAX_HEAD_DIM / 32; ++j) {
      room[thread] = sums[j];
      barrier(CLK_LOCAL_MEM_FENCE);
      const int e = lane + j * lanes;
      if (turn == 0 && e < head_dim) {
        float sum = 0.0f;
        for (int t = 0; t < turns; ++t) sum += room[t * lanes + lane];
        store(block->out, (first + q) * block->width + e, seen > 0 ? sum / total : 0.0f);
      }
      barrier(CLK_LOCAL_MEM_FENCE);  // before the next sums are written
    }
  }
}

// Loads `count` positions of keys or values as floats, `stride` apart; zeros beyond the head and beyond `most`.
WEIR_INLINE void fetch(__local float* tile, __global const weir_element* from, const attention_block* block, int base,
                       int count, int stride, int most) {
  for (int i = local_thread(); i < count * stride; i += local_threads()) {
    const int p = i / stride, e = i % stride;
    const bool is_inside = e < block->head_dim && base + p < most;
    tile[i] = is_inside ? load(from, (base + p) * block->width + e) : 0.0f;
  }
}

// Queries from `first` on, QUERIES_EACH for each group of `lanes` work-items, which share the head's elements in turn.
WEIR_INLINE void attend_many(const attention_block* block, int first, int lanes, __local float* queries,
                             __local float* tile, __local float* scores, __local float* factors, __local float* totals,
                             __local float* maxima) {
  const int thread = local_thread(), threads = local_threads(), head_dim = block->head_dim;
  const int count = threads / lanes * QUERIES_EACH, padded = lanes * WIDTH;
  const int stride = padded + 1;  // keys of neighbouring positions are in different banks
  const int positions = min(TILE_FLOATS / padded, MAX_SCORES / count);
  for (int i = thread; i < count * padded; i += threads) {
    const int q = i / padded, e = i % padded;
    const bool is_inside = e < head_dim && first + q < block->queries;
    queries[i] = is_inside ? load(block->q, (first + q) * block->width + e) * block->scale : 0.0f;
  }
  for (int q = thread; q < count; q += threads) {
    totals[q] = 0.0f;
    maxima[q] = -INFINITY;
  }
  const int lane = thread % lanes, own = thread / lanes * QUERIES_EACH;
  float sums[QUERIES_EACH][WIDTH];
  for (int q = 0; q < QUERIES_EACH; ++q)
    for (int e = 0; e < WIDTH; ++e) sums[q][e] = 0.0f;
  // Later queries see more positions.
  const int most = seen_by(block, min(block->queries, first + count) - 1);
  for (int base = 0; base < most; base += positions) {
    barrier(CLK_LOCAL_MEM_FENCE);  // after the last values and weights were read
    fetch(tile, block->keys, block, base, positions, stride, most);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = thread; i < count / QUERIES_EACH * positions; i += threads) {
      const int p = i % positions, q0 = i / positions * QUERIES_EACH;
      float score[QUERIES_EACH];
      for (int q = 0; q < QUERIES_EACH; ++q) score[q] = 0.0f;
      for (int e = 0; e < head_dim; ++e) {
        const float key = tile[p * stride + e];
        for (int q = 0; q < QUERIES_EACH; ++q) score[q] = multiply_add(queries[(q0 + q) * padded + e], key, score[q]);
      }
      for (int q = 0; q < QUERIES_EACH; ++q) {
        const bool is_seen = base + p < seen_by(block, first + q0 + q);
        scores[(q0 + q) * positions + p] = is_seen ? score[q] : -INFINITY;
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    fetch(tile, block->values, block, base, positions, stride, most);
    for (int q = thread; q < count; q += threads) {
      float largest = maxima[q];
      for (int p = 0; p < positions; ++p) largest = fmax(largest, scores[q * positions + p]);
      const float factor = rescaled(maxima[q], largest);
      float total = totals[q] * factor;
      for (int p = 0; p < positions; ++p) {
        const float weight = rescaled(scores[q * positions + p], largest);
        scores[q * positions + p] = weight;
        total += weight;
      }
      maxima[q] = largest;
      totals[q] = total;
      factors[q] = factor;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int q = 0; q < QUERIES_EACH; ++q)
      for (int e = 0; e < WIDTH; ++e) sums[q][e] *= factors[own + q];
    for (int p = 0; p < positions; ++p) {
      for (int e = 0; e < WIDTH; ++e) {
        const float value = tile[p * stride + e * lanes + lane];
        for (int q = 0; q < QUERIES_EACH; ++q)
          sums[q][e] = multiply_add(scores[(own + q) * positions + p], value, sums[q][e]);
      }
    }
  }
  for (int q = 0; q < QUERIES_EACH; ++q) {
    const int query = first + own + q;
    if (query >= block->queries) continue;
    const bool has_seen = seen_by(block, query) > 0;
    for (int e = 0; e < WIDTH; ++e)
      if (e * lanes + lane < head_dim)
        store(block->out, query * block->width + e * lanes + lane, has_seen ? sums[q][e] / totals[own + q] : 0.0f);
  }
  barrier(CLK_LOCAL_MEM_FENCE);  // before the next queries are written
}

WEIR_KERNEL(attention) {
  __local float queries[MANY_THREADS * QUERIES_EACH * WIDTH];
  __local float tile[TILE_FLOATS + TILE_FLOATS / WIDTH];
  __local float scores[MAX_SCORES];
  __local float factors[MAX_QUERIES], totals[MAX_QUERIES], maxima[MAX_QUERIES];
  const long heads = a.dims[3] >> 32, positions = a.dims[2];
  attention_block block;
  block.queries = (int)a.dims[1];
  block.head_dim = (int)(a.dims[3] & 0xffffffff);
  block.width = heads * block.head_dim;
  block.scale = 1.44269504f / sqrt((float)block.head_dim);
  int lanes = 1;
  while (lanes * WIDTH < block.head_dim) lanes *= 2;
  const bool is_few = block.queries <= FEW_QUERIES;
  const int per_block = is_few ? (block.queries == 1 ? 1 : QUERIES_EACH) : MANY_THREADS / lanes * QUERIES_EACH;
  const int chunks = (block.queries + per_block - 1) / per_block;
  for (long unit = group(); unit < a.dims[0] * chunks * heads; unit += groups()) {
    const long head = unit % heads, rest = unit / heads, sequence = rest / chunks;
    // The last queries see most positions: they go first, so that a launch does not end with its longest work-groups.
    const int first = (chunks - 1 - (int)(rest % chunks)) * per_block;
    const long of_queries = sequence * block.queries * block.width + head * block.head_dim;
    const long of_positions = sequence * positions * block.width + head * block.head_dim;
    block.length = (int)min((long)WEIR_OPERAND(const int, 3)[sequence], positions);
    block.q = WEIR_OPERAND(const weir_element, 0) + of_queries;
    block.keys = WEIR_OPERAND(const weir_element, 1) + of_positions;
    block.values = WEIR_OPERAND(const weir_element, 2) + of_positions;
    block.out = WEIR_OPERAND(weir_element, 4) + of_queries;
    if (is_few) {
      attend_few(&block, first, queries, scores, tile);
    } else {
      // Work-groups that are smaller than planned process the queries in parts.
      const int at_once = local_threads() / lanes * QUERIES_EACH, end = min(block.queries, first + per_block);
      for (int begin = first; begin < end; begin += at_once)
        attend_many(&block, begin, lanes, queries, tile, scores, factors, totals, maxima);
    }
  }
}
