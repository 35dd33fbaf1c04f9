//! What every backend keeps, written once. Each function gets a place with an empty store.

mod appending;
mod calls;
mod counting;
mod failures;
mod following;
mod leases;
mod maintenance;
mod outbox;
mod pages;
mod queries;
mod questions;
mod settings;
mod upstreams;

use std::path::PathBuf;

use tempfile::TempDir;
use unstuck_store::{Store, StoreLocation, StoreOptions};

/// A place with one store, which several connections can open.
pub(crate) struct Place {
    folder: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.folder.path().join("state").join("unstuck.db")
    }

    /// All that is on disk.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let folder = self.file().with_file_name("");
        let files = std::fs::read_dir(folder).unwrap();
        let read = |file: std::io::Result<std::fs::DirEntry>| std::fs::read(file.unwrap().path());
        files.flat_map(|file| read(file).unwrap()).collect()
    }

    pub(crate) fn location(&self) -> StoreLocation {
        StoreLocation::file(self.file())
    }

    pub(crate) async fn open(&self) -> Store {
        Store::open(&self.location(), StoreOptions::default())
            .await
            .unwrap()
    }
}

pub(crate) fn wait<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}

macro_rules! contract {
    ($($subject:ident { $($test:ident)+ })+) => {
        mod sqlite {
            $(mod $subject {
                $(#[test]
                fn $test() {
                    let place = crate::contract::Place::new();
                    crate::contract::wait(crate::contract::$subject::$test(&place));
                })+
            })+
        }
    };
}

contract! {
    appending {
        events_are_numbered_and_read_back_as_they_were_written
        a_run_begins_once_and_first
        an_invalid_append_fails_alone
        what_is_unknown_is_kept_word_for_word
        secrets_are_taken_out_before_anything_is_written
        a_closed_store_says_so
    }
    leases {
        a_run_is_driven_by_one_until_they_let_go
        a_lease_that_is_not_renewed_expires
        a_dead_owners_lease_is_taken_over_at_once_and_only_once
        who_lost_a_run_can_write_nothing_more_to_it
        a_lease_is_good_for_its_own_run_only
        of_many_who_claim_at_once_one_gets_it
    }
    upstreams {
        one_of_all_processes_probes_an_upstream_in_a_minute
        a_recovery_is_seen_by_all_processes
        a_clock_that_was_wrong_keeps_nobody_waiting_for_long
    }
    queries {
        a_run_at_a_glance_is_the_fold_of_its_events
        runs_are_listed_newest_first_and_filtered
        a_run_without_a_supervisor_is_crashed
        a_resumed_run_is_listed_as_running_again
        events_are_found_by_what_they_are_about
        the_log_can_be_followed_from_where_one_was
        the_newest_events_come_first_if_wanted
        the_export_is_the_whole_log_line_by_line
    }
    pages {
        runs_come_in_pages_that_stay_where_they_are
        events_come_in_pages_that_stay_where_they_are
        projects_are_told_at_a_glance
    }
    questions {
        what_waits_is_listed_the_newest_first
        many_questions_are_listed_in_parts
        the_first_answer_counts
        of_many_answers_at_once_one_counts
        an_answer_binds_to_what_was_shown
        what_went_on_or_ended_asks_no_more
        a_question_about_a_budget_waits_for_its_own_answer
    }
    counting {
        strategies_that_helped_are_learned
        statistics_are_told_by_what_is_asked
        recoveries_are_told_by_level_strategy_and_day
    }
    failures {
        failures_are_told_by_what_is_asked
        the_same_hours_are_told_together_and_one_by_one
        whole_days_and_their_hours_tell_the_same
        a_role_is_told_by_its_prompt
        a_call_that_was_given_up_counts_where_nobody_drives
        failures_come_in_pages_that_stay_where_they_are
        what_failures_say_outlives_their_runs
        secrets_are_in_no_message_and_no_prompt
    }
    following {
        what_is_written_is_told_at_once_and_in_order
        it_goes_on_where_one_was
        whoever_is_far_behind_misses_nothing
        any_number_can_follow
        it_ends_when_the_store_is_closed
    }
    maintenance {
        only_what_is_done_and_old_is_pruned
        places_in_the_log_are_never_used_again
        a_vacuumed_store_is_smaller_and_the_same
        a_check_tells_what_there_is
    }
    calls {
        calls_are_read_back_as_they_were_written
        what_was_spent_is_told_by_what_is_asked
        what_a_run_cost_is_counted_once
        an_unknown_price_is_unknown_until_the_agent_tells
        the_model_in_use_is_told_by_calls
        a_clients_session_costs_what_its_calls_cost
        calls_go_with_their_run_and_what_they_cost_stays
        names_are_cut_and_secrets_taken_out
        calls_of_many_runs_are_written_together
    }
    settings {
        a_value_is_set_changed_and_taken_away
        what_was_changed_meanwhile_is_not_overwritten
        of_many_who_change_it_at_once_one_does
        every_change_is_kept
        secrets_are_taken_out_of_values
    }
    outbox {
        a_message_is_written_with_its_event_and_named_after_it
        a_refused_append_sends_nothing
        what_one_process_sends_no_other_does
        what_failed_is_due_again_until_it_is_given_up
        the_first_goes_at_once_and_the_rest_of_the_window_together
        delivered_messages_go_with_what_is_old
        secrets_are_taken_out_of_messages
    }
}
