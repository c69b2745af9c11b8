// A library without tigon_find.
extern "C" int something_else() { return 0; }
