// What toil and the host tell each other: the launch's dims, its record in host memory, the words it keeps between
// launches. Compiled by the host compiler and by nvcc/hipcc alike; toil.cl repeats the numbers.
#pragma once

namespace weir {

// dims: how much a unit is, units of a job, blocks that take them, style.
inline constexpr int kToilAmount = 0;  // ns; of memory: words of 16 bytes
inline constexpr int kToilUnits = 1;
inline constexpr int kToilBlocks = 2;  // 0: a block per unit, by the hardware's hand; else each takes the next one left
inline constexpr int kToilStyle = 3;
// Bits of the style; above them the words of 16 bytes that there are to stream through.
inline constexpr long long kToilStreams = 1;  // units read memory instead of the clock
inline constexpr long long kToilObeys = 2;    // ends between two units when told so
inline constexpr int kToilSizeShift = 8;

// A launch's record, 64-bit words. The host writes two of them before it submits the launch, the kernel the others.
inline constexpr int kToilJob = 0;    // counted from 0; a job that did not come to its end is launched again
inline constexpr int kToilEpoch = 1;  // what the flag was: only a larger one tells this launch to end
inline constexpr int kToilStarted = 2;
inline constexpr int kToilEnded = 3;
inline constexpr int kToilTaken = 4;     // units of the job so far, at the end of the launch: all of them done
inline constexpr int kToilLaunches = 5;  // that ended with this record; written last
inline constexpr int kToilRecordWords = 8;
inline constexpr int kToilRecordElements = 2 * kToilRecordWords;

// The kernel's own words, 32 bits each. Every job finds its cursor at 0: who takes the first unit of one clears that of
// the job before, which is over then. So less than kToilCursors jobs may have been launched at a time.
inline constexpr int kToilCursors = 16;
inline constexpr int kToilTold = 16;      // the largest flag that was seen
inline constexpr int kToilGone = 17;      // blocks of this launch that have left
inline constexpr int kToilLost = 18;      // units that a job had not done when a later one came to them
inline constexpr int kToilRepeated = 19;  // units that were done again in one job
inline constexpr int kToilOdd = 20;       // memory that was not 0: it is, which the compiler must not know
inline constexpr int kToilReady = 21;     // GPUs: the orders of this launch stand in kToilOrders
inline constexpr int kToilOrders = 24;    // GPUs: job and epoch, 64 bits each
inline constexpr int kToilStateElements = 32;

}  // namespace weir
