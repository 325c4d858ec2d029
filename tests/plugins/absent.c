/* The library that a plugin needs and the loader cannot find: it is built, linked against, and lies where
 * nobody looks. */
int absent_function(void);
int absent_function(void) {
    return 1;
}
