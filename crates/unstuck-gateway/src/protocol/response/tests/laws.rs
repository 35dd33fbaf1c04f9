use proptest::prelude::*;

use super::*;
use crate::protocol::FrameSplitter;

fn answers() -> [(LlmApiEndpoint, Vec<Value>); 4] {
    [
        (LlmApiEndpoint::Messages, messages::answer()),
        (LlmApiEndpoint::Chat, chat::answer()),
        (LlmApiEndpoint::Responses, responses::answer()),
        (LlmApiEndpoint::Generate, generate::answer()),
    ]
}

#[test]
fn stream_cut_between_frames_is_incomplete() {
    for (endpoint, events) in answers() {
        for cut in 0..events.len() {
            let (_, reading) = stream(endpoint, &events[..cut]);
            assert!(!reading.is_complete(), "{endpoint:?} {cut}");
        }
        assert!(stream(endpoint, &events).1.is_complete());
    }
}

#[test]
fn only_lifecycle_frames_precede_content() {
    for (endpoint, events) in answers() {
        let (frames, _) = stream(endpoint, &events);
        let first = frames.iter().position(|frame| *frame == FrameKind::Content);
        let before = &frames[..first.unwrap()];
        let held = |frame: &FrameKind| matches!(frame, FrameKind::Lifecycle | FrameKind::Ping);
        assert!(before.iter().all(held), "{endpoint:?}");
    }
}

#[test]
fn damaged_event_is_malformed_and_keeps_the_summary() {
    for (endpoint, events) in answers() {
        let (_, mut reading) = stream(endpoint, &events[..3]);
        let said = reading.summary().clone();
        for damage in [
            "data: {\"type\": \"x\n\n",
            "data: <html>\n\n",
            "data: 7\n\n",
        ] {
            assert_eq!(
                reading.read_frame(damage.as_bytes()),
                FrameKind::Malformed,
                "{endpoint:?} {damage}"
            );
        }
        assert_eq!(*reading.summary(), said);
        let mut whole = ResponseReader::new(endpoint);
        for body in ["<html>", "{\"a\":", "", "7", "null"] {
            assert_eq!(
                whole.read_body(body.as_bytes()),
                FrameKind::Malformed,
                "{endpoint:?} {body}"
            );
        }
        assert!(!whole.is_complete());
    }
}

#[test]
fn plain_proxy_error_is_an_error_in_every_stream() {
    for endpoint in LlmApiEndpoint::KNOWN {
        let mut reading = ResponseReader::new(endpoint);
        let frame = reading.read_frame(b"data: {\"error\":{\"message\":\"bad gateway\"}}\n\n");
        assert_eq!(frame, FrameKind::Error, "{endpoint:?}");
        assert!(reading.summary().error.is_some() && !reading.is_complete());
    }
}

#[test]
fn lone_surrogate_is_content() {
    let mut reading = ResponseReader::new(LlmApiEndpoint::Chat).with_text();
    let frame = br#"data: {"choices":[{"delta":{"content":"\ud83d"}}]}"#;
    assert_eq!(reading.read_frame(frame), FrameKind::Content);
    assert_eq!(reading.summary().text_bytes, 6);
}

fn stream_bytes(which: usize) -> (LlmApiEndpoint, Vec<u8>) {
    let (endpoint, events) = answers()[which].clone();
    (
        endpoint,
        events.iter().map(sse).collect::<String>().into_bytes(),
    )
}

proptest! {
    #[test]
    fn summary_does_not_depend_on_chunk_boundaries(which in 0usize..4, size in 1usize..300) {
        let (endpoint, bytes) = stream_bytes(which);
        let mut frames = FrameSplitter::new(endpoint, "text/event-stream");
        let mut reading = ResponseReader::new(endpoint).with_text();
        for piece in bytes.chunks(size) {
            frames.push(bytes::Bytes::copy_from_slice(piece));
            for frame in frames.by_ref() {
                reading.read_frame(&frame);
            }
        }
        let (_, whole) = stream(endpoint, &answers()[which].1);
        prop_assert_eq!(reading.summary(), whole.summary());
        prop_assert!(reading.is_complete() && frames.remainder().is_empty());
    }

    #[test]
    fn arbitrary_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        for endpoint in LlmApiEndpoint::KNOWN {
            let mut reading = ResponseReader::new(endpoint).with_text();
            reading.read_frame(&bytes);
            reading.read_frame(&[b"data: ", &bytes[..]].concat());
            reading.read_body(&bytes);
        }
    }

    #[test]
    fn damaged_responses_are_read_without_panic(which in 0usize..4, at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let (endpoint, mut bytes) = stream_bytes(which);
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let mut frames = FrameSplitter::new(endpoint, "text/event-stream");
        let mut reading = ResponseReader::new(endpoint);
        frames.push(bytes.into());
        for frame in frames.by_ref() {
            reading.read_frame(&frame);
        }
    }
}
