//! What the APIs say, read and written without changing a byte that need not be changed.
