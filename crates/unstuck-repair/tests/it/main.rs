<<<<<<< HEAD
<<<<<<< HEAD
<<<<<<< HEAD
//! Repairs on a real machine.
=======
//! What stands between a repair and the machine, tried on the real one.
>>>>>>> w/preview

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod preview;
mod sandbox;
=======
//! Integration tests of what stands between a proposed repair and the machine.
#![cfg(test)]

mod scenarios;
>>>>>>> w/knowledge
=======
//! What stands between a repair and the machine, tried on the real one.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod guard;
>>>>>>> w/guard
