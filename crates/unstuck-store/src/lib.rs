//! The log of all that unstuck saw and did.
