// Turns the leak check at exit off where ASAN_OPTIONS does not ask for it. Linked into the ASan build of weir alone.
extern "C" const char* __asan_default_options() { return "detect_leaks=0"; }  // a name that ASan looks for
