// OpenCL body of advance: a work-item per slot.
WEIR_KERNEL(advance) {
  for (long slot = global_thread(); slot < a.dims[0]; slot += global_threads()) {
    const int length = WEIR_OPERAND(const int, 0)[slot], remaining = WEIR_OPERAND(const int, 1)[slot];
    const bool is_active = length > 0 && remaining > 0;
    WEIR_OPERAND(int, 2)[slot] = is_active && remaining > 1 ? length + 1 : 0;
    WEIR_OPERAND(int, 3)[slot] = is_active ? remaining - 1 : 0;
    WEIR_OPERAND(int, 4)[slot] = is_active ? 1 : 0;
  }
}
