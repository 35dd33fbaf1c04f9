//! Key handling, and screens at 80×24.

use std::time::Duration;

use anstream::adapter::strip_str;
use serde_json::json;
use unstuck_core::escalation::{EscalationAnswer, EscalationDeadline};
use unstuck_core::{RunId, Timestamp};
use unstuck_store::EscalationRow;

use super::keys::KeyPress;
use super::render;
use super::view_state::{InboxAction, InboxView};
use super::worker::{AnswerFollowUp, AnswerSubmission, InboxWorkerEvent, InboxWorkerRequest};
use crate::output::TerminalSize;

const NOW: Timestamp = Timestamp::from_seconds(1_794_777_600);
const SMALL: TerminalSize = TerminalSize {
    columns: 80,
    rows: 24,
};

/// An escalation for a missing login, with an id of this letter.
fn login(letter: char) -> EscalationRow {
    let run = letter.to_string().repeat(10);
    let asked = json!({
        "id": format!("{run}-e1"), "type": "hiccup", "trigger": "HICCUP", "kind": "auth_required", "why": "fatal",
        "reason": "Authentication required: retrying will not help; manual action required.", "awaiting": "human",
        "doing": "claude -p 'fix the tests'", "evidence": "Invalid API key · Please run /login", "hash": "1",
        "tried": [{ "what": "as requested", "why": "Authentication required: Invalid API key" }],
        "choices": [
            { "answer": "resolve", "does": "retry; you fixed it manually" },
            { "answer": "retry", "does": "retry with your message" },
            { "answer": "skip", "does": "give up and return the original exit code" },
            { "answer": "abort", "does": "end the run" },
        ],
    });
    question(&run, asked)
}

/// An escalation for a repair that needs approval.
fn repair(letter: char) -> EscalationRow {
    let run = letter.to_string().repeat(10);
    let asked = json!({
        "id": format!("{run}-e1"), "type": "recovery_approval_required", "trigger": "RECOVERY",
        "kind": "lockfile_drift", "why": "repair", "awaiting": "human", "repair": "r1", "hash": "1",
        "reason": "Lockfile out of sync: `npm ci` may fix it; approval required.",
        "doing": "npm test", "evidence": "npm error code EUSAGE", "command": "npm ci",
        "choices": [
            { "answer": "approve", "does": "run `npm ci` once, then retry" },
            { "answer": "reject", "does": "retry without it" },
        ],
    });
    question(&run, asked)
}

fn question(run: &str, asked: serde_json::Value) -> EscalationRow {
    EscalationRow {
        run: RunId::new(run),
        project: "/srv/shop".into(),
        at: NOW.before(Duration::from_secs(180)),
        request: serde_json::from_value(asked).unwrap(),
        closure: None,
    }
}

fn screen(view: &mut InboxView, size: TerminalSize) -> String {
    view.scroll_within(render::max_scroll(view, size, NOW));
    let lines = render::screen(view, size, NOW);
    assert_eq!(lines.len(), size.rows);
    let plain = |line: &String| strip_str(line).to_string().trim_end().to_owned();
    let lines: Vec<String> = lines.iter().map(plain).collect();
    for line in &lines {
        let wide = crate::text_columns::width(line);
        assert!(wide <= size.columns, "{wide} columns: {line}");
    }
    lines.join("\n")
}

fn type_in(view: &mut InboxView, text: &str) -> Vec<InboxAction> {
    let keys = text.chars().map(|letter| match letter {
        '\n' => KeyPress::Enter,
        letter => KeyPress::Char(letter),
    });
    keys.filter_map(|key| view.on_key(key)).collect()
}

/// Returns the submitted answer, if any.
fn given(wishes: &[InboxAction]) -> Option<(EscalationAnswer, &str, &str)> {
    match wishes {
        [InboxAction::Send(InboxWorkerRequest::Answer(giving))] => Some((
            giving.answer,
            giving.question.request.id.as_str(),
            giving.note.as_str(),
        )),
        _ => None,
    }
}

#[test]
fn list_shows_all_pending_requests() {
    let mut view = InboxView::new(vec![login('a'), repair('b')]);
    view.on_key(KeyPress::Down);
    insta::assert_snapshot!(screen(&mut view, SMALL), @r#"
    unstuck inbox: 2 pending requests

      3 min ago   shop              blocked   claude -p 'fix the test…: Invalid API…
    > 3 min ago   shop              approval  npm test: npm ci



















    ↑↓ move  Enter open  X abort all  ? help  q quit
    "#);
}

#[test]
fn details_fit_on_one_screen() {
    let mut view = InboxView::new(vec![login('a'), repair('b')]);
    type_in(&mut view, "j\n");
    insta::assert_snapshot!(screen(&mut view, SMALL), @r#"
    bbbbbbbbbb-e1 · approval needed · 3 min ago · /srv/shop

    activity  npm test
    failure   lockfile_drift: npm error code EUSAGE
    reason    Lockfile out of sync: `npm ci` may fix it; approval required.
    proposed  npm ci

    a  approve    run `npm ci` once, then retry
    r  reject     retry without it
    p  preview    run the command on a copy without network access (it probably
                  needs it)
    P  preview    run it on a copy with network access; its network effects are real
    n  note       add a note to your answer










    a approve  r reject  p/P preview  q back
    "#);
}

#[test]
fn default_answer_at_the_deadline_is_shown() {
    let mut asked = repair('b');
    asked.request.details.deadline = Some(EscalationDeadline {
        at: NOW.after(Duration::from_secs(7200)),
        answer: EscalationAnswer::Reject,
    });
    let mut view = InboxView::new(vec![asked]);
    type_in(&mut view, "\n");
    let seen = screen(&mut view, SMALL);
    assert!(seen.contains("deadline  reject applies at "), "{seen}");
    assert!(seen.contains("(in 2 h)"), "{seen}");
}

#[test]
fn help_lists_every_key_and_any_key_closes_it() {
    let mut view = InboxView::new(vec![login('a')]);
    view.on_key(KeyPress::Char('?'));
    insta::assert_snapshot!(screen(&mut view, SMALL), @r#"
    unstuck inbox: keys

    List
      ↑ ↓ or j k    move; also PgUp, PgDn, Home, End
      Enter         open the request
      X             abort all requests of the selected request's project
      q or Esc      quit; requests stay pending

    Request
      a  approve    approve the proposed action and continue
      r  reject     continue without the proposed action
      d  resolve    retry; you fixed the cause manually
      t  retry      retry with your message
      e  escalate   retry with a stronger model
      s  skip       skip this step and continue
      x  abort      abort the run
      p  preview    show what a repair would change
      n  note       add a note to your answer
      q or Esc      back to the list

    Only applicable answers are offered, each with its effect.


    any key to close
    "#);
    // The key that closes the help has no other effect.
    assert_eq!(view.on_key(KeyPress::Char('q')), None);
    assert!(!view.shows_help);
    for answer in EscalationAnswer::ALL {
        let told = format!("  {}  {answer} ", answer.key());
        view.shows_help = true;
        assert!(screen(&mut view, SMALL).contains(&told), "{told}");
    }
}

#[test]
fn one_key_answers_the_shown_request() {
    let mut view = InboxView::new(vec![login('a'), repair('b')]);
    let wishes = type_in(&mut view, "j\na");
    assert_eq!(
        given(&wishes),
        Some((EscalationAnswer::Approve, "bbbbbbbbbb-e1", ""))
    );
    // A second answer is ignored while the first is submitted.
    assert_eq!(type_in(&mut view, "ar"), []);
}

#[test]
fn unavailable_answer_is_rejected() {
    let mut view = InboxView::new(vec![login('a')]);
    assert_eq!(type_in(&mut view, "\nap"), []);
    assert!(view.notice.contains("unknown key"), "{}", view.notice);
}

#[test]
fn answer_that_ends_the_run_needs_confirmation() {
    let mut view = InboxView::new(vec![login('a')]);
    assert_eq!(type_in(&mut view, "\nx"), []);
    let seen = screen(&mut view, SMALL);
    assert!(
        seen.contains("abort: end the run. Are you sure? [y/N]"),
        "{seen}"
    );
    assert_eq!(type_in(&mut view, "x"), [], "another key cancels");
    assert_eq!(view.notice, "abort canceled");
    let wishes = type_in(&mut view, "sy");
    assert_eq!(
        given(&wishes),
        Some((EscalationAnswer::Skip, "aaaaaaaaaa-e1", ""))
    );
}

/// N29: aborting in bulk covers all requests of one project and no others.
#[test]
fn all_requests_of_a_project_are_aborted_at_once() {
    let mut other = login('c');
    other.project = "/srv/blog".into();
    let mut view = InboxView::new(vec![login('a'), other, repair('b')]);
    assert_eq!(type_in(&mut view, "X"), []);
    let seen = screen(&mut view, SMALL);
    let asked = "abort all 2 requests of shop and end their runs? [y/N]";
    assert!(seen.contains(asked), "{seen}");
    assert_eq!(type_in(&mut view, "n"), [], "another key cancels");
    assert_eq!(view.notice, "abort canceled");
    let wishes = type_in(&mut view, "Xy");
    let [InboxAction::Send(InboxWorkerRequest::AbortAll(questions))] = wishes.as_slice() else {
        panic!("{wishes:?}");
    };
    assert_eq!(*questions, [login('a'), repair('b')]);
    assert!(screen(&mut view, SMALL).contains("aborting 2 …"));
    assert_eq!(type_in(&mut view, "Xyq"), [], "it is being done");
    view.on_event(InboxWorkerEvent::AbortedAll {
        count: 2,
        refused: None,
    });
    assert!(screen(&mut view, SMALL).contains("2 aborted"));
    let why = Some("ann may not answer with abort here".to_owned());
    view.on_event(InboxWorkerEvent::AbortedAll {
        count: 0,
        refused: why,
    });
    let seen = screen(&mut view, SMALL);
    assert!(seen.contains("0 aborted; error: ann may not"), "{seen}");
}

/// S0-10, S0-30: a level 3 retry is a human choice with a message.
#[test]
fn retry_takes_a_message() {
    let mut view = InboxView::new(vec![login('a')]);
    assert_eq!(
        type_in(&mut view, "\nt\n"),
        [],
        "nothing happens without a message"
    );
    assert!(view.notice.contains("needs a message"), "{}", view.notice);
    type_in(&mut view, "use q? in stagingg");
    view.on_key(KeyPress::Backspace);
    view.on_key(KeyPress::Pasted(" now\n\u{1b}[2J".into()));
    let seen = screen(&mut view, SMALL);
    assert!(seen.contains("retry: use q? in staging now"), "{seen}");
    let wishes = type_in(&mut view, "\n");
    let words = "use q? in staging now  [2J";
    assert_eq!(
        given(&wishes),
        Some((EscalationAnswer::Retry, "aaaaaaaaaa-e1", words))
    );
}

#[test]
fn canceled_message_submits_no_answer() {
    let mut view = InboxView::new(vec![login('a')]);
    type_in(&mut view, "\nthello");
    assert_eq!(view.on_key(KeyPress::Escape), None);
    assert_eq!(view.notice, "canceled");
    assert_eq!(view.on_key(KeyPress::Escape), None);
    assert_eq!(view.on_key(KeyPress::Escape), Some(InboxAction::Leave));
}

#[test]
fn note_is_sent_with_the_answer() {
    let mut view = InboxView::new(vec![login('a')]);
    type_in(&mut view, "\nnlogged in\n");
    let wishes = type_in(&mut view, "d");
    let told = (EscalationAnswer::Resolve, "aaaaaaaaaa-e1", "logged in");
    assert_eq!(given(&wishes), Some(told));
}

#[test]
fn answered_request_leaves_the_list_and_its_effect_is_shown() {
    let mut view = InboxView::new(vec![login('a'), repair('b')]);
    let wishes = type_in(&mut view, "\nd");
    let [InboxAction::Send(InboxWorkerRequest::Answer(giving))] = wishes.as_slice() else {
        panic!("{wishes:?}");
    };
    view.on_event(InboxWorkerEvent::Answered(
        giving.clone(),
        Ok(AnswerFollowUp::Started),
    ));
    let seen = screen(&mut view, SMALL);
    assert!(seen.contains("1 pending request"), "{seen}");
    assert!(
        seen.contains("resuming run aaaaaa in the background"),
        "{seen}"
    );
    let code = Some(0);
    let run = RunId::new("aaaaaaaaaa");
    view.on_event(InboxWorkerEvent::Ended { run, code });
    assert_eq!(view.notice, "run aaaaaaaaaa succeeded");
}

#[test]
fn refused_answer_is_reported_and_the_request_stays() {
    let mut view = InboxView::new(vec![login('a')]);
    type_in(&mut view, "\nd");
    let giving = AnswerSubmission {
        question: login('a'),
        answer: EscalationAnswer::Resolve,
        note: String::new(),
    };
    let why = "ann may not answer with resolve here".to_owned();
    view.on_event(InboxWorkerEvent::Answered(
        Box::new(giving),
        Err(why.clone()),
    ));
    assert_eq!(view.notice, why);
    assert_eq!(
        given(&type_in(&mut view, "d")).map(|one| one.0),
        Some(EscalationAnswer::Resolve)
    );
}

#[test]
fn request_answered_elsewhere_is_reported_and_cannot_be_answered_again() {
    let mut view = InboxView::new(vec![login('a'), repair('b')]);
    type_in(&mut view, "\nx");
    let wish = view.on_event(InboxWorkerEvent::Waiting(vec![repair('b')]));
    let id = "aaaaaaaaaa-e1".to_owned();
    assert_eq!(
        wish,
        Some(InboxAction::Send(InboxWorkerRequest::Resolution(
            id.clone()
        )))
    );
    let text = format!("{id} was skipped by ann at 21:00:00");
    view.on_event(InboxWorkerEvent::Resolution {
        id,
        text: text.clone(),
    });
    let seen = screen(&mut view, SMALL);
    assert!(seen.contains(&text) && !seen.contains("x  abort"), "{seen}");
    assert_eq!(type_in(&mut view, "y"), []);
    assert!(view.opened.is_none());
}

#[test]
fn changed_request_is_shown_again_before_it_can_be_answered() {
    let mut view = InboxView::new(vec![repair('b')]);
    type_in(&mut view, "\nnnot here");
    let mut other = repair('b');
    other.request.details.command = Some("npm install".into());
    other.request.details.hash = "2".into();
    assert_eq!(
        view.on_event(InboxWorkerEvent::Waiting(vec![other.clone()])),
        None
    );
    let seen = screen(&mut view, SMALL);
    assert!(seen.contains("proposed  npm install"), "{seen}");
    assert!(seen.contains("has changed"), "{seen}");
    assert!(seen.contains("not here"), "message is kept: {seen}");
    let wishes = type_in(&mut view, "a");
    let [InboxAction::Send(InboxWorkerRequest::Answer(giving))] = wishes.as_slice() else {
        panic!("{wishes:?}");
    };
    assert_eq!(giving.question, other);
}

#[test]
fn running_preview_shows_progress_and_can_be_canceled() {
    let mut view = InboxView::new(vec![repair('b')]);
    let wishes = type_in(&mut view, "\np");
    let preview = |network| InboxWorkerRequest::Preview {
        question: Box::new(repair('b')),
        network,
    };
    assert_eq!(wishes, [InboxAction::Send(preview(false))]);
    let seen = screen(&mut view, SMALL);
    assert!(seen.contains("without network; Esc cancels"), "{seen}");
    let stopped = Some(InboxAction::Send(InboxWorkerRequest::StopPreview));
    assert_eq!(view.on_key(KeyPress::Escape), stopped);
    let id = "bbbbbbbbbb-e1".to_owned();
    let lines: Vec<_> = (1..=40).map(|line| format!("line {line}")).collect();
    let previewed = |id| InboxWorkerEvent::PreviewDone {
        id,
        lines: lines.clone(),
    };
    view.on_event(previewed(id.clone()));
    assert!(
        !screen(&mut view, SMALL).contains("line 1"),
        "canceled preview"
    );
    assert_eq!(type_in(&mut view, "P"), [InboxAction::Send(preview(true))]);
    assert!(screen(&mut view, SMALL).contains("with network; Esc cancels"));
    view.on_event(previewed(id));
    assert!(screen(&mut view, SMALL).contains("↓ 21 more lines"));
    view.on_key(KeyPress::End);
    assert!(screen(&mut view, SMALL).contains("line 40"));
    view.on_key(KeyPress::Up);
    assert!(!screen(&mut view, SMALL).contains("line 40"));
    // The key that closes the preview gives no answer.
    assert_eq!(type_in(&mut view, "a"), []);
    assert!(screen(&mut view, SMALL).contains("a  approve"));
}

#[test]
fn selection_stays_when_requests_come_and_go() {
    let mut view = InboxView::new(vec![login('a'), repair('b'), login('c')]);
    type_in(&mut view, "j");
    view.on_event(InboxWorkerEvent::Waiting(vec![
        repair('b'),
        login('c'),
        login('d'),
    ]));
    assert_eq!(
        view.open_escalations[view.selected].run.as_str(),
        "bbbbbbbbbb"
    );
    view.on_event(InboxWorkerEvent::Waiting(Vec::new()));
    assert_eq!(type_in(&mut view, "j\n"), []);
    assert!(screen(&mut view, SMALL).contains("no pending requests"));
}

#[test]
fn store_error_is_shown_until_the_store_is_readable() {
    let mut view = InboxView::new(vec![login('a')]);
    view.on_event(InboxWorkerEvent::StoreError("the store is busy".into()));
    assert!(screen(&mut view, SMALL).contains("list may be outdated: the store is busy"));
    view.on_event(InboxWorkerEvent::Waiting(vec![login('a')]));
    assert!(!screen(&mut view, SMALL).contains("busy"));
}

#[test]
fn terminal_escapes_from_agents_are_neutralized() {
    let evil = "\u{1b}]0;evil\u{7}\u{1b}[2J\u{202e}日本\n";
    let mut hostile = login('a');
    hostile.project = format!("/srv/{evil}");
    hostile.request.reason = evil.into();
    hostile.request.details.activity = evil.into();
    hostile.request.details.evidence = evil.into();
    hostile.request.details.options[0].effect = evil.into();
    hostile.request.details.prior_attempts[0].failure_reason = evil.into();
    hostile.request.details.command = Some(evil.into());
    let mut view = InboxView::new(vec![hostile]);
    for keys in ["", "\n"] {
        type_in(&mut view, keys);
        let lines = render::screen(&view, SMALL, NOW).concat();
        assert!(!lines.contains("\u{1b}]") && !lines.contains("[2J\u{202e}"));
        assert!(!lines.contains("\u{1b}[2J") && !lines.contains('\u{7}'));
        screen(&mut view, SMALL);
    }
}

#[test]
fn no_line_exceeds_the_width_at_any_size() {
    for (columns, rows) in [(20, 5), (40, 10), (80, 24), (200, 60), (8, 3)] {
        let size = TerminalSize { columns, rows };
        let many = "abcdefghijklmnopqrstuvwxyz".chars().map(login).collect();
        let mut view = InboxView::new(many);
        for keys in ["", "GG", "\n", "x", "y"] {
            type_in(&mut view, keys);
            screen(&mut view, size);
        }
    }
}
