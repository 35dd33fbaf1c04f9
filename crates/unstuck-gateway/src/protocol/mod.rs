//! What the gateway must know of the APIs that it stands in front of. Pure: bytes in, facts or bytes out.

mod asked;
mod change;
mod endpoint;
mod event;
mod frames;
mod hash;
mod json;
mod reading;
mod trouble;

pub use asked::{Asked, LastTurn, ToolCall};
pub use change::{Changed, with_error_context, with_max_output, with_model, with_note};
pub use endpoint::{Endpoint, Protocol};
pub use frames::Frames;
pub use reading::{Finish, Frame, JsonState, Reading, Said};
pub use trouble::{Trouble, error_body, error_event, keep_alive, stop_status};
