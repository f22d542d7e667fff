package weights

// openAtOnce is nothing here: a path of a file system is never a pipe.
const openAtOnce = 0
