// What toil and the host exchange: the launch's dims, its record in host memory, the words it keeps between launches.
// Compiled by both the host compiler and nvcc/hipcc; toil.cl repeats the numbers.
#pragma once

namespace weir {

// dims: size of a unit, units of a job, blocks that take them, style.
inline constexpr int kToilAmount = 0;  // ns; when streaming: words of 16 bytes
inline constexpr int kToilUnits = 1;
inline constexpr int kToilBlocks = 2;  // 0: a block per unit, scheduled by hardware; else blocks take units in turn
inline constexpr int kToilStyle = 3;
// Bits of the style; above them the size of the memory to stream through, in words of 16 bytes.
inline constexpr long long kToilStreams = 1;    // units read memory instead of the clock
inline constexpr long long kToilStoppable = 2;  // stops between two units when asked to
inline constexpr int kToilSizeShift = 8;

// A launch's record, 64-bit words. The host writes the first two before it submits the launch, the kernel the others.
inline constexpr int kToilJob = 0;    // counted from 0; an unfinished job is launched again
inline constexpr int kToilEpoch = 1;  // the flag's value at launch: only a larger one stops this launch
inline constexpr int kToilStarted = 2;
inline constexpr int kToilEnded = 3;
inline constexpr int kToilTaken = 4;     // units of the job so far, at the end of the launch: all of them are done
inline constexpr int kToilLaunches = 5;  // launches that ended with this record; written last
inline constexpr int kToilRecordWords = 8;
inline constexpr int kToilRecordElements = 2 * kToilRecordWords;

// The kernel's own words, 32 bits each. Every job finds its cursor at 0: the block that takes a job's first unit clears
// the cursor of the previous job, which is over then. So fewer than kToilCursors jobs may be launched at a time.
inline constexpr int kToilCursors = 16;
inline constexpr int kToilFlagSeen = 16;     // the largest flag seen
inline constexpr int kToilEndedBlocks = 17;  // blocks of this launch that have left
inline constexpr int kToilLost = 18;         // units that a job had not done when a later job reached them
inline constexpr int kToilRepeated = 19;     // units that were done twice in one job
inline constexpr int kToilNotZero = 20;      // memory that was not 0: never happens, but the compiler must not know
inline constexpr int kToilReady = 21;        // GPUs: the orders of this launch are in kToilOrders
inline constexpr int kToilOrders = 24;       // GPUs: job and epoch, 64 bits each
inline constexpr int kToilStateElements = 32;

}  // namespace weir
