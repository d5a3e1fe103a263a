/* Tells `weir race` what a program computes: weir_mark_checkpoint("loss", memory, bytes, stream). C99 and C++, one
 * file; link with -ldl where the C library is older than 2.34. Where weir does not run the program, a checkpoint does
 * nothing.
 *
 * The memory may be the device's, pinned or the host's. That of the device is hashed in `stream` (a cudaStream_t or
 * CUstream; NULL: the legacy default stream), behind what the stream has been given, and the program is not made to
 * wait. Memory of the host is hashed before the call returns. Checkpoints of the same name are counted: the first is
 * compared with the first of other runs, and so on. Threads may call it at the same time. */
#ifndef WEIR_CHECKPOINT_H
#define WEIR_CHECKPOINT_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef void (*weir_checkpoint_function)(const char* name, const void* memory, size_t bytes, void* stream);

/* NULL while the library is not in the process: it may come with the first call of CUDA, so it is looked for again. */
static inline weir_checkpoint_function weir_find_checkpoint(void) {
  weir_checkpoint_function function = NULL;
  void *symbol = NULL, *all = NULL;
  if (getenv("WEIR_RACE_FOLDER") == NULL) return NULL;
  all = dlopen(NULL, RTLD_LAZY);
  if (all == NULL) return NULL;
  symbol = dlsym(all, "weir_checkpoint");
  dlclose(all);
  memcpy(&function, &symbol, sizeof(function)); /* ISO C has no cast between these */
  return function;
}

static inline void weir_mark_checkpoint(const char* name, const void* memory, size_t bytes, void* stream) {
  static weir_checkpoint_function found = NULL; /* of this source file */
  weir_checkpoint_function function = NULL;
#if defined(__GNUC__)
  function = __atomic_load_n(&found, __ATOMIC_RELAXED); /* pairs with the store below; the function is never unloaded */
#else
  function = found;
#endif
  if (function == NULL) {
    function = weir_find_checkpoint();
    if (function == NULL) return;
#if defined(__GNUC__)
    __atomic_store_n(&found, function, __ATOMIC_RELAXED);
#else
    found = function;
#endif
  }
  function(name, memory, bytes, stream);
}

#endif
