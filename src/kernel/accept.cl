// OpenCL body of accept: a work-item per sequence.
WEIR_KERNEL(accept) {
  const int speculated = (int)a.dims[1];
  for (long s = global_thread(); s < a.dims[0]; s += global_threads()) {
    __global const int* const draft = WEIR_OPERAND(const int, 0) + s * speculated;
    __global const int* const target = WEIR_OPERAND(const int, 1) + s * (speculated + 1);
    int agreed = 0;
    while (agreed < speculated && draft[agreed] == target[agreed]) ++agreed;
    WEIR_OPERAND(int, 3)[s] = WEIR_OPERAND(const int, 2)[s] + agreed + 1;
    WEIR_OPERAND(int, 4)[s] = target[agreed];
    WEIR_OPERAND(int, 5)[s] = agreed + 1;
  }
}
