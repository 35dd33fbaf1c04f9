use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::protocol::{FinishReason, LastTurn, LlmApiEndpoint, ResponseReader, ToolCall};

/// A session with one conversation that continues turn by turn.
struct Agent {
    watch: ApiLoopDetector,
    now: Timestamp,
    conversation: u64,
    position: u64,
    messages: usize,
    tokens: u64,
    signs: Vec<ApiLoopSignal>,
}

impl Agent {
    fn new() -> Self {
        Self {
            watch: ApiLoopDetector::new(LoopDetectionLimits::default()),
            now: Timestamp::from_seconds(1_790_000_000),
            conversation: 1,
            position: 0,
            messages: 1,
            tokens: 1000,
            signs: Vec::new(),
        }
    }

    fn wait(&mut self, time: Duration) {
        self.now = self.now.after(time);
    }

    fn asked(&self, calls: &[ToolCall], results: &[u64]) -> RequestFacts {
        RequestFacts {
            tools: true,
            messages: self.messages,
            prompt_tokens: self.tokens,
            last: Some(LastTurn {
                conversation: self.conversation,
                calls: calls.to_vec(),
                results: results.to_vec(),
                position: self.position,
                continues: None,
            }),
            ..RequestFacts::default()
        }
    }

    fn ask(&mut self, calls: &[ToolCall], results: &[u64]) -> ConversationId {
        self.position += 1;
        self.messages += 2;
        self.wait(Duration::from_millis(300));
        let (talk, sign) = self.watch.on_request(&self.asked(calls, results), self.now);
        self.signs.extend(sign);
        talk
    }

    fn answer(&mut self, talk: ConversationId, said: &ResponseSummary) {
        self.wait(Duration::from_millis(300));
        let sign = self.watch.on_response(talk, said, self.now);
        self.signs.extend(sign);
    }

    /// Adds a tool call with that result after that time.
    fn turn_taking(&mut self, name: &str, arguments: u64, result: u64, time: Duration) {
        let call = call(name, arguments);
        let talk = ConversationId(Some(self.conversation));
        self.answer(talk, &calling(&call));
        self.wait(time);
        self.ask(&[call], &[result]);
    }

    fn turn(&mut self, name: &str, arguments: u64, result: u64) {
        self.turn_taking(name, arguments, result, Duration::ZERO);
    }

    fn grows_to(&mut self, tokens: u64) {
        self.tokens = tokens;
        let position = self.position;
        self.turn("read", position, position);
    }

    fn seen(&self) -> Vec<(ApiLoopKind, u32)> {
        self.signs
            .iter()
            .map(|sign| (sign.kind, sign.count))
            .collect()
    }
}

fn call(name: &str, arguments_hash: u64) -> ToolCall {
    ToolCall {
        name: name.into(),
        arguments_hash,
    }
}

fn calling(call: &ToolCall) -> ResponseSummary {
    ResponseSummary {
        calls: vec![call.clone()],
        finish: Some(FinishReason::ToolUse),
        ..ResponseSummary::default()
    }
}

fn saying(text_hash: u64) -> ResponseSummary {
    ResponseSummary {
        text_bytes: 10,
        text_hash,
        finish: Some(FinishReason::Stop),
        ..ResponseSummary::default()
    }
}

#[test]
fn repeated_call_is_reported_at_each_fifth_repeat() {
    let mut agent = Agent::new();
    for _ in 0..11 {
        agent.turn("bash", 7, 7);
    }
    assert_eq!(
        agent.seen(),
        [
            (ApiLoopKind::RepeatedCall, 5),
            (ApiLoopKind::RepeatedCall, 10)
        ]
    );
    assert_eq!(
        agent.signs[0].sentence,
        "The same call of `bash` had the same result 5 times in a row."
    );
}

#[test]
fn resent_request_is_counted_once() {
    let mut agent = Agent::new();
    for _ in 0..4 {
        agent.turn("bash", 7, 7);
    }
    for _ in 0..20 {
        let asked = agent.asked(&[call("bash", 7)], &[7]);
        assert_eq!(agent.watch.on_request(&asked, agent.now).1, None);
    }
    assert_eq!(agent.seen(), []);
}

#[test]
fn polling_with_changing_output_is_no_loop() {
    let mut agent = Agent::new();
    for progress in 0..200 {
        agent.turn("job_status", 1, progress);
    }
    assert_eq!(agent.seen(), []);
}

#[test]
fn polling_a_slow_job_has_a_higher_limit() {
    let mut agent = Agent::new();
    for _ in 0..29 {
        agent.turn_taking("bash", 1, 1, Duration::from_secs(30));
    }
    // 25 requests brought nothing new, which is reported, but no call is blamed yet.
    assert!(
        agent
            .signs
            .iter()
            .all(|sign| sign.kind == ApiLoopKind::NoProgress)
    );
    agent.turn_taking("bash", 1, 1, Duration::from_secs(30));
    assert_eq!(agent.seen().last(), Some(&(ApiLoopKind::RepeatedCall, 30)));
}

#[test]
fn failing_test_between_edits_is_no_loop() {
    let mut agent = Agent::new();
    for edit in 0..12 {
        agent.turn("bash", 1, 1);
        agent.turn("edit", 100 + edit, 200 + edit);
    }
    assert_eq!(agent.seen(), []);
}

#[test]
fn reading_many_missing_files_is_no_loop() {
    let mut agent = Agent::new();
    for file in 0..40 {
        agent.turn("read", file, 404);
    }
    assert_eq!(agent.seen(), []);
}

#[test]
fn eight_repeats_among_twelve_turns_are_reported() {
    let mut agent = Agent::new();
    for other in 0..4 {
        agent.turn("bash", 7, 7);
        agent.turn("bash", 7, 7);
        agent.turn("todo", other, other);
    }
    assert_eq!(agent.seen(), [(ApiLoopKind::RepeatedCall, 8)]);
    let sentence = "8 of the last 11 turns were the same call of `bash` with the same result.";
    assert_eq!(agent.signs[0].sentence, sentence);
}

#[test]
fn user_message_resets_the_repeat_count() {
    let mut agent = Agent::new();
    for _ in 0..3 {
        for _ in 0..4 {
            agent.turn("bash", 7, 7);
        }
        agent.ask(&[], &[]);
    }
    assert_eq!(agent.seen(), []);
}

#[test]
fn calls_come_from_the_last_response_if_the_request_has_only_results() {
    let mut agent = Agent::new();
    for turn in 0..5 {
        let name = if turn == 0 { "other" } else { "bash" };
        let talk = ConversationId(Some(agent.conversation));
        agent.answer(talk, &calling(&call(name, 1)));
        agent.ask(&[], &[7]);
    }
    assert_eq!(agent.seen(), []);
    let talk = ConversationId(Some(agent.conversation));
    agent.answer(talk, &calling(&call("bash", 1)));
    agent.ask(&[], &[7]);
    assert_eq!(agent.seen(), [(ApiLoopKind::RepeatedCall, 5)]);
}

/// Agents with the same task call the same tools, in whatever words: each of them is counted separately.
#[test]
fn independent_agents_with_the_same_task_are_counted_separately() {
    let mut agent = Agent::new();
    for _ in 0..12 {
        agent.messages = 1;
        agent.turn("bash", 7, 7);
    }
    for _ in 0..10 {
        agent.messages = 3;
        agent.turn("bash", 8, 8);
    }
    assert_eq!(agent.seen(), []);
    // One of them is really stuck in a loop.
    for _ in 0..5 {
        agent.turn("bash", 8, 8);
    }
    assert_eq!(agent.seen(), [(ApiLoopKind::RepeatedCall, 5)]);
}

/// A conversation that was summarized in between is still the same one.
#[test]
fn loop_is_detected_across_a_summary() {
    let mut agent = Agent::new();
    for turn in 0..20 {
        agent.turn("read", turn, turn);
    }
    agent.messages = 1;
    for _ in 0..5 {
        agent.turn("bash", 7, 7);
    }
    assert_eq!(agent.seen(), [(ApiLoopKind::RepeatedCall, 5)]);
}

/// Where the provider stores the conversations, a request belongs to the response that it continues.
#[test]
fn requests_with_only_results_belong_to_the_continued_response() {
    fn play(conversations: i64) -> Vec<ApiLoopSignal> {
        let mut watch = ApiLoopDetector::new(LoopDetectionLimits::default());
        let mut signs = Vec::new();
        for turn in 0..12 {
            let at = Timestamp::from_seconds(1_790_000_000 + turn);
            let (own, one) = (turn / conversations, turn % conversations);
            let body = match own {
                0 => json!({"input": "Go"}),
                _ => json!({
                    "previous_response_id": format!("resp_{one}_{}", own - 1),
                    "input": [{"type": "function_call_output", "call_id": "a", "output": "none"}],
                }),
            };
            let body = body.to_string();
            let asked =
                RequestFacts::read(LlmApiEndpoint::Responses, "/responses", body.as_bytes());
            let (talk, sign) = watch.on_request(&asked, at);
            signs.extend(sign);
            let answer = json!({"id": format!("resp_{one}_{own}"), "status": "completed", "output": [{"type": "function_call", "name": "ls", "arguments": "{}", "call_id": "a"}]});
            let mut reading = ResponseReader::new(LlmApiEndpoint::Responses);
            reading.read_body(answer.to_string().as_bytes());
            watch.on_response(talk, reading.summary(), at);
        }
        let repeated = |sign: &ApiLoopSignal| sign.kind == ApiLoopKind::RepeatedCall;
        signs.into_iter().filter(repeated).collect()
    }
    // Four conversations with two repeats each are no loop; one with eleven is.
    assert_eq!(play(4), []);
    assert_ne!(play(1), []);
}

#[test]
fn subagents_are_counted_separately() {
    let mut agent = Agent::new();
    for turn in 0..8 {
        agent.conversation = turn % 4;
        agent.turn("bash", 7, 7);
        agent.turn("bash", 7, 7);
    }
    assert_eq!(agent.seen(), []);
}

#[test]
fn three_consecutive_empty_responses_are_reported() {
    let mut agent = Agent::new();
    let empty = ResponseSummary {
        finish: Some(FinishReason::Stop),
        ..ResponseSummary::default()
    };
    for said in [&empty, &empty, &saying(1), &empty, &empty] {
        let talk = agent.ask(&[], &[]);
        agent.answer(talk, said);
    }
    assert_eq!(agent.seen(), []);
    let talk = agent.ask(&[], &[]);
    agent.answer(talk, &empty);
    assert_eq!(agent.seen(), [(ApiLoopKind::EmptyResponses, 3)]);
}

#[test]
fn refusals_and_errors_are_not_empty_responses() {
    let mut agent = Agent::new();
    for turn in 0..9 {
        let refused = turn % 2 == 0;
        let said = ResponseSummary {
            finish: refused.then_some(FinishReason::Refusal),
            error: (!refused).then(|| "{}".into()),
            ..ResponseSummary::default()
        };
        let talk = agent.ask(&[], &[]);
        agent.answer(talk, &said);
    }
    assert_eq!(agent.seen(), []);
}

#[test]
fn requests_without_conversation_are_not_watched() {
    let mut agent = Agent::new();
    for _ in 0..40 {
        let (talk, sign) = agent.watch.on_request(&RequestFacts::default(), agent.now);
        assert_eq!(sign, None);
        agent.answer(talk, &ResponseSummary::default());
        assert_eq!(
            agent.watch.on_failure(talk, FailureKind::ContextLimit),
            None
        );
    }
    assert_eq!(agent.seen(), []);
}

#[test]
fn equal_requests_may_get_equal_responses() {
    let mut agent = Agent::new();
    let talk = agent.ask(&[], &[]);
    for _ in 0..60 {
        agent.watch.on_request(&agent.asked(&[], &[]), agent.now);
        agent.answer(talk, &saying(1));
    }
    assert_eq!(agent.seen(), []);
}

#[test]
fn loop_of_several_calls_is_reported_as_no_progress() {
    let mut agent = Agent::new();
    for turn in 0..(3 + 25) {
        agent.turn("bash", turn % 3, turn % 3);
    }
    assert_eq!(agent.seen(), [(ApiLoopKind::NoProgress, 25)]);
}

#[test]
fn old_calls_with_new_results_are_progress() {
    let mut agent = Agent::new();
    for turn in 0..200 {
        let result = if turn % 20 == 0 {
            1000 + turn
        } else {
            turn % 3
        };
        agent.turn("bash", turn % 3, result);
    }
    assert_eq!(agent.seen(), []);
}

#[test]
fn twenty_new_conversations_within_a_minute_are_a_storm() {
    let mut agent = Agent::new();
    for conversation in 0..19 {
        agent.conversation = conversation;
        agent.ask(&[], &[]);
    }
    assert_eq!(agent.seen(), []);
    agent.conversation = 19;
    agent.ask(&[], &[]);
    assert_eq!(agent.seen(), [(ApiLoopKind::ConversationStorm, 20)]);
    assert_eq!(
        agent.signs[0].sentence,
        "20 new conversations were started within 1 min."
    );
}

#[test]
fn ten_concurrent_subagents_and_titles_are_no_storm() {
    let mut agent = Agent::new();
    for conversation in 0..60 {
        agent.conversation = conversation;
        agent.ask(&[], &[]);
        agent.wait(Duration::from_secs(5));
    }
    for conversation in 100..200 {
        agent.conversation = conversation;
        agent.position += 1;
        let asked = RequestFacts {
            tools: false,
            ..agent.asked(&[], &[])
        };
        assert_eq!(agent.watch.on_request(&asked, agent.now).1, None);
    }
    assert_eq!(agent.seen(), []);
}

#[test]
fn soon_refilled_context_is_reported() {
    for same_conversation in [true, false] {
        let mut agent = Agent::new();
        for round in 0..4 {
            if !same_conversation {
                agent.conversation = 10 + round;
            }
            agent.grows_to(50_000);
            agent.grows_to(100_000);
            agent.grows_to(150_000);
        }
        assert_eq!(
            agent.seen(),
            [(ApiLoopKind::FailedCompactions, 3)],
            "{same_conversation}"
        );
    }
}

#[test]
fn occasional_summaries_of_a_long_task_are_no_loop() {
    let mut agent = Agent::new();
    for round in 0..10 {
        agent.conversation = round;
        for step in 0..12 {
            agent.grows_to(40_000 + step * 10_000);
        }
    }
    assert_eq!(agent.seen(), []);
}

#[test]
fn shorter_subagents_are_no_summaries() {
    let mut agent = Agent::new();
    for round in 0..8 {
        agent.conversation = 1;
        agent.grows_to(60_000);
        agent.conversation = 100 + round;
        agent.grows_to(20_000);
        agent.conversation = 1;
        agent.grows_to(60_500);
        agent.conversation = 100 + round;
        agent.grows_to(58_000);
    }
    assert_eq!(agent.seen(), []);
}

#[test]
fn context_that_stays_too_long_is_reported() {
    let mut agent = Agent::new();
    let mut signs = Vec::new();
    for _ in 0..3 {
        agent.tokens = 200_000;
        let talk = agent.ask(&[], &[]);
        signs.extend(agent.watch.on_failure(talk, FailureKind::ContextLimit));
        agent.wait(Duration::from_secs(1));
        agent.answer(talk, &saying(agent.position));
    }
    let seen: Vec<_> = signs.iter().map(|sign| (sign.kind, sign.count)).collect();
    assert_eq!(seen, [(ApiLoopKind::FailedCompactions, 3)]);
}

#[test]
fn context_shortened_after_a_rejection_is_no_loop() {
    let mut agent = Agent::new();
    for round in 0..6 {
        agent.tokens = 200_000;
        let talk = agent.ask(&[], &[]);
        assert_eq!(
            agent.watch.on_failure(talk, FailureKind::ContextLimit),
            None
        );
        assert_eq!(agent.watch.on_failure(talk, FailureKind::RateLimit), None);
        agent.tokens = 50_000;
        for step in 0..8 {
            let talk = agent.ask(&[], &[]);
            agent.answer(talk, &saying(round * 8 + step));
        }
    }
    assert_eq!(agent.seen(), []);
}

/// An agent that repeats one call forever, seen through the bytes of each API.
#[test]
fn endlessly_repeated_call_is_reported_in_every_api() {
    let answers = [
        (
            LlmApiEndpoint::Messages,
            json!({"content": [{"type": "tool_use", "id": "a", "name": "ls", "input": {"p": 1}}], "stop_reason": "tool_use"}),
        ),
        (
            LlmApiEndpoint::Chat,
            json!({"choices": [{"message": {"tool_calls": [{"id": "a", "function": {"name": "ls", "arguments": "{\"p\":1}"}}]}, "finish_reason": "tool_calls"}]}),
        ),
        (
            LlmApiEndpoint::Responses,
            json!({"status": "completed", "output": [{"type": "function_call", "name": "ls", "arguments": "{\"p\":1}", "call_id": "a"}]}),
        ),
        (
            LlmApiEndpoint::Generate,
            json!({"candidates": [{"content": {"parts": [{"functionCall": {"name": "ls", "args": {"p": 1}}}]}, "finishReason": "STOP"}]}),
        ),
    ];
    for (endpoint, answer) in answers {
        let mut watch = ApiLoopDetector::new(LoopDetectionLimits::default());
        let mut signs = Vec::new();
        for turns in 0..6 {
            let at = Timestamp::from_seconds(1_790_000_000 + turns);
            let body = endless(endpoint, turns).to_string();
            let asked =
                RequestFacts::read(endpoint, "/v1/models/m:generateContent", body.as_bytes());
            let (talk, sign) = watch.on_request(&asked, at);
            signs.extend(sign);
            let mut reading = ResponseReader::new(endpoint);
            reading.read_body(answer.to_string().as_bytes());
            assert!(reading.is_complete());
            signs.extend(watch.on_response(talk, reading.summary(), at));
        }
        let seen: Vec<_> = signs.iter().map(|sign| (sign.kind, sign.count)).collect();
        assert_eq!(seen, [(ApiLoopKind::RepeatedCall, 5)], "{endpoint:?}");
        assert!(signs[0].sentence.contains("`ls`"));
    }
}

/// Returns the conversation of that agent after some turns.
fn endless(endpoint: LlmApiEndpoint, turns: i64) -> Value {
    let (key, first, turn): (_, Value, Vec<Value>) = match endpoint {
        LlmApiEndpoint::Messages => (
            "messages",
            json!({"role": "user", "content": "Go"}),
            vec![
                json!({"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "ls", "input": {"p": 1}}]}),
                json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "none"}]}),
            ],
        ),
        LlmApiEndpoint::Chat => (
            "messages",
            json!({"role": "user", "content": "Go"}),
            vec![
                json!({"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "ls", "arguments": "{\"p\":1}"}}]}),
                json!({"role": "tool", "tool_call_id": "a", "content": "none"}),
            ],
        ),
        LlmApiEndpoint::Responses => (
            "input",
            json!({"role": "user", "content": "Go"}),
            vec![
                json!({"type": "function_call", "name": "ls", "arguments": "{\"p\":1}", "call_id": "a"}),
                json!({"type": "function_call_output", "call_id": "a", "output": "none"}),
            ],
        ),
        _ => (
            "contents",
            json!({"role": "user", "parts": [{"text": "Go"}]}),
            vec![
                json!({"role": "model", "parts": [{"functionCall": {"name": "ls", "args": {"p": 1}}}]}),
                json!({"role": "user", "parts": [{"functionResponse": {"name": "ls", "response": {"output": "none"}}}]}),
            ],
        ),
    };
    let mut messages = vec![first];
    for _ in 0..turns {
        messages.extend(turn.clone());
    }
    json!({key: messages})
}

proptest! {
    /// For any events in any order, no limit is passed unreported and no state grows without bound.
    #[test]
    fn agent_with_new_calls_is_never_reported(steps in prop::collection::vec((0u64..5, 0u64..40), 0..120)) {
        let mut agent = Agent::new();
        for (at, (conversation, seconds)) in (1u64..).zip(steps) {
            agent.conversation = conversation;
            agent.wait(Duration::from_secs(seconds));
            agent.turn("bash", at, at);
        }
        prop_assert_eq!(agent.seen(), []);
    }

    #[test]
    fn limit_of_zero_is_off(turns in 0u32..60, limit in 0u32..2) {
        let mut agent = Agent::new();
        let limits = LoopDetectionLimits {
            repeats: 0, repeats_in_window: 0, slow_tool_repeats: 0, empty_responses: 0, failed_compactions: 0, no_progress_responses: 0, conversation_storm: 0,
            window: limit as usize, ..LoopDetectionLimits::default()
        };
        agent.watch = ApiLoopDetector::new(limits);
        for _ in 0..turns {
            agent.turn("bash", 1, 1);
        }
        prop_assert_eq!(agent.seen(), []);
    }
}
