//! One server-sent event: its name and its data.

use std::borrow::Cow;

use memchr::memchr2;

/// An event of an event stream.
#[derive(Debug, Default)]
pub(super) struct SseEvent<'a> {
    /// The data, its lines joined. `None` if there are only comments or other fields.
    pub(super) data: Option<Cow<'a, [u8]>>,
}

impl<'a> SseEvent<'a> {
    /// Reads a frame, skipping other fields.
    pub(super) fn read(frame: &'a [u8]) -> Self {
        let frame = frame.strip_prefix(b"\xef\xbb\xbf").unwrap_or(frame);
        if let Some(data) = single_data_line(frame) {
            return Self {
                data: Some(Cow::Borrowed(data)),
            };
        }
        let mut event = Self::default();
        for line in frame.split(|byte| matches!(byte, b'\n' | b'\r')) {
            if let Some(value) = field_value(line, b"data") {
                event.add_line(value);
            }
        }
        event
    }

    fn add_line(&mut self, value: &'a [u8]) {
        match &mut self.data {
            None => self.data = Some(Cow::Borrowed(value)),
            Some(data) => {
                let data = data.to_mut();
                data.push(b'\n');
                data.extend_from_slice(value);
            }
        }
    }
}

/// Returns the value of an event that is one line of data and nothing else, as most are.
fn single_data_line(frame: &[u8]) -> Option<&[u8]> {
    let value = frame.strip_prefix(b"data: ")?.strip_suffix(b"\n\n")?;
    memchr2(b'\n', b'\r', value).is_none().then_some(value)
}

/// Returns the value of the field, if the line has that name.
fn field_value<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    match line.strip_prefix(name)? {
        [] => Some(&[]),
        [b':', b' ', value @ ..] | [b':', value @ ..] => Some(value),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(frame: &str) -> Option<String> {
        let event = SseEvent::read(frame.as_bytes());
        event
            .data
            .map(|data| String::from_utf8(data.into_owned()).unwrap())
    }

    #[test]
    fn data_is_read_with_any_line_ending() {
        assert_eq!(data("event: x\ndata: {}\n\n").as_deref(), Some("{}"));
        assert_eq!(data("data:{}\r\n\r\n").as_deref(), Some("{}"));
        assert_eq!(data("data: {\rid: 3\rdata: }\r\r").as_deref(), Some("{\n}"));
        assert_eq!(data("\u{feff}data: {}\n\n").as_deref(), Some("{}"));
        assert_eq!(data("data\n\n").as_deref(), Some(""));
    }

    #[test]
    fn comments_and_other_fields_are_not_data() {
        for frame in [
            ": keep-alive\n\n",
            "retry: 3\n\n",
            "\n",
            "database: 3\n\n",
            "",
        ] {
            assert_eq!(data(frame), None, "{frame:?}");
        }
    }
}
