//! Integration tests of what stands between a proposed repair and the machine.
#![cfg(test)]

mod scenarios;
