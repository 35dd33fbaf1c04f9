//! Tells people what happened.
