// A library without tigon_plugin_get.
extern "C" int something_else() { return 0; }
