use proptest::prelude::*;

use super::*;

/// Returns all frames and the remainder of a stream that arrives in these pieces.
fn cut(endpoint: LlmApiEndpoint, content_type: &str, pieces: &[&[u8]]) -> (Vec<Bytes>, Vec<u8>) {
    let mut frames = FrameSplitter::new(endpoint, content_type);
    let mut all = Vec::new();
    for piece in pieces {
        frames.push(Bytes::copy_from_slice(piece));
        all.extend(frames.by_ref());
    }
    (all, frames.remainder().to_vec())
}

fn sse(text: &str) -> Vec<Bytes> {
    let (frames, rest) = cut(
        LlmApiEndpoint::Chat,
        "text/event-stream",
        &[text.as_bytes()],
    );
    assert_eq!(rest, b"", "{text:?}");
    frames
}

fn array(text: &str) -> (Vec<Bytes>, Vec<u8>) {
    cut(
        LlmApiEndpoint::Generate,
        "application/json; charset=UTF-8",
        &[text.as_bytes()],
    )
}

#[test]
fn event_ends_with_a_blank_line_for_any_line_ending() {
    assert_eq!(
        sse("data: 1\n\ndata: 2\n\n"),
        ["data: 1\n\n", "data: 2\n\n"]
    );
    assert_eq!(
        sse("event: x\r\ndata: 1\r\n\r\n: ping\r\n\r\n"),
        ["event: x\r\ndata: 1\r\n\r\n", ": ping\r\n\r\n"]
    );
    assert_eq!(sse("\n\ndata: 1\n\n"), ["\n", "\n", "data: 1\n\n"]);
    assert_eq!(sse("a\r\n\nb\n\r\n"), ["a\r\n\n", "b\n\r\n"]);
}

#[test]
fn lone_carriage_return_ends_a_line_once_the_next_byte_is_known() {
    let (frames, rest) = cut(LlmApiEndpoint::Chat, "text/event-stream", &[b"a\r\rb\r\r"]);
    assert_eq!(
        (frames, &rest[..]),
        (vec![Bytes::from("a\r\r")], &b"b\r\r"[..])
    );
}

#[test]
fn array_elements_are_frames_including_separators() {
    let (frames, rest) = array("[{\"a\":\"}]\\\"\"}\n,\r\n{\"b\":[{}]}\n]\n");
    assert_eq!(
        frames,
        ["[{\"a\":\"}]\\\"\"}", "\n,\r\n{\"b\":[{}]}", "\n]"]
    );
    assert_eq!(rest, b"\n");
    let (frames, rest) = array("{\"error\":{\"code\":1}}");
    assert_eq!(
        (&frames[..], &rest[..]),
        (&[Bytes::from("{\"error\":{\"code\":1}}")][..], &b""[..])
    );
}

#[test]
fn truncated_frame_is_the_remainder() {
    let (frames, rest) = cut(
        LlmApiEndpoint::Messages,
        "text/event-stream",
        &[b"data: 1\n\ndata: {\"a"],
    );
    assert_eq!((frames.len(), &rest[..]), (1, &b"data: {\"a"[..]));
    let (frames, rest) = array("[{\"a\":1},{\"b\":");
    assert_eq!((frames.len(), &rest[..]), (1, &b",{\"b\":"[..]));
}

#[test]
fn gemini_events_are_split_if_requested() {
    let stream = b"data: {\"a\":1}\r\n\r\n";
    let (frames, _) = cut(
        LlmApiEndpoint::Generate,
        "Text/Event-Stream; charset=utf-8",
        &[stream],
    );
    assert_eq!(frames, [&stream[..]]);
}

#[test]
fn uninspected_chunks_are_passed_on_unchanged() {
    let (frames, rest) = cut(
        LlmApiEndpoint::Other,
        "text/event-stream",
        &[b"data", b"", b": 1"],
    );
    assert_eq!(
        (frames, rest),
        (vec![Bytes::from("data"), Bytes::from(": 1")], Vec::new())
    );
}

#[test]
fn complete_frame_is_not_copied() {
    let chunk = Bytes::from("data: 1\n\ndata: 2\n\n");
    let mut frames = FrameSplitter::new(LlmApiEndpoint::Chat, "text/event-stream");
    frames.push(chunk.clone());
    assert_eq!(
        frames.next().map(|frame| frame.as_ptr()),
        Some(chunk.as_ptr())
    );
}

#[test]
fn frames_do_not_depend_on_chunk_boundaries() {
    let events =
        "event: a\r\ndata: {\"x\":\"é\"}\r\n\r\n: p\n\n\ndata: 1\rdata: 2\r\rdata: [DONE]\n\n";
    let elements = "[{\"a\":\"\\\\\\\"é]\"},\r\n{\"b\":[[],{}]}\n,{}]\r\n";
    let cases = [
        (LlmApiEndpoint::Chat, "text/event-stream", events),
        (LlmApiEndpoint::Generate, "application/json", elements),
    ];
    for (endpoint, content_type, text) in cases {
        let bytes = text.as_bytes();
        let whole = cut(endpoint, content_type, &[bytes]);
        for at in 0..=bytes.len() {
            let pieces = [&bytes[..at], &bytes[at..]];
            assert_eq!(cut(endpoint, content_type, &pieces), whole, "{at}");
        }
        let single: Vec<_> = bytes.chunks(1).collect();
        assert_eq!(cut(endpoint, content_type, &single), whole);
    }
}

fn like_a_stream() -> impl Strategy<Value = Vec<u8>> {
    let byte =
        prop_oneof![4 => prop::sample::select(&b"\r\n\n\r:d{}[]\"\\,"[..]), 1 => any::<u8>()];
    prop::collection::vec(byte, 0..80)
}

proptest! {
    /// No byte is lost or changed, however the stream is split into pieces.
    #[test]
    fn frames_and_remainder_equal_the_input(
        stream in like_a_stream(), sizes in prop::collection::vec(1usize..9, 1..20), which in 0usize..3,
    ) {
        let (endpoint, content_type) = [
            (LlmApiEndpoint::Messages, "text/event-stream"), (LlmApiEndpoint::Generate, "application/json"),
            (LlmApiEndpoint::Other, ""),
        ][which];
        let mut pieces = Vec::new();
        let mut left = &stream[..];
        for size in sizes.iter().cycle() {
            if left.is_empty() {
                break;
            }
            let (piece, rest) = left.split_at((*size).min(left.len()));
            pieces.push(piece);
            left = rest;
        }
        let (frames, rest) = cut(endpoint, content_type, &pieces);
        let mut all = frames.concat();
        all.extend_from_slice(&rest);
        prop_assert_eq!(&all, &stream);
        prop_assert!(frames.iter().all(|frame| !frame.is_empty()));
        if endpoint != LlmApiEndpoint::Other {
            prop_assert_eq!((frames, rest), cut(endpoint, content_type, &[&stream]));
        }
    }
}
