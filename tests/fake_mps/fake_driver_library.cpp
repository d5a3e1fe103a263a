// Looks like the library of a driver to those who only ask whether there is one.
extern "C" int weir_fake_driver() { return 0; }
