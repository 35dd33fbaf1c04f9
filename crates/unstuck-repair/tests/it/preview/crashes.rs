//! What happens when applying is cut off.
