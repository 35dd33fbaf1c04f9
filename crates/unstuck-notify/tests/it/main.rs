//! Messages, from the events that they tell of to a real server that gets them.

mod announcing;
mod delivering;
mod formats;
mod receiver;
mod samples;
