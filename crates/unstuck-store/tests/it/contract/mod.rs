//! The contract of every backend. Each function gets a place with an empty store.

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
pub(crate) mod questions;
mod settings;
mod upstreams;

use std::path::PathBuf;

use tempfile::TempDir;
use unstuck_store::{Store, StoreLocation, StoreOptions};

/// A place with one store that several connections can open.
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

    /// Returns all bytes on disk.
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
        events_are_numbered_and_round_trip
        run_start_is_first_and_unique
        invalid_append_fails_alone
        unknown_events_are_kept_verbatim
        events_are_redacted_before_writing
        closed_store_returns_an_error
    }
    leases {
        run_has_one_owner_until_release
        lease_without_renewal_expires
        lease_of_a_dead_owner_is_replaced_exactly_once
        lost_lease_cannot_write
        lease_is_valid_only_for_its_run
        concurrent_claims_have_one_winner
    }
    upstreams {
        one_process_probes_an_upstream_per_minute
        upstream_recovery_is_visible_to_all_processes
        released_calls_of_all_processes_are_counted_together
        wrong_clock_does_not_block_probes_for_long
    }
    queries {
        run_summary_is_the_projection_of_its_events
        runs_are_listed_newest_first_and_filtered
        run_without_supervisor_is_crashed
        resumed_run_is_listed_as_running
        events_are_filtered
        log_can_be_followed_from_an_offset
        newest_events_come_first_on_request
        export_is_the_whole_log_line_by_line
    }
    pages {
        run_pages_are_stable
        event_pages_are_stable
        projects_are_summarized
    }
    questions {
        open_escalations_are_listed_newest_first
        escalations_are_listed_in_pages
        first_answer_wins
        concurrent_answers_have_one_winner
        answer_is_bound_to_the_shown_request
        resumed_or_ended_run_has_no_open_escalations
        budget_escalation_needs_its_own_answer
    }
    counting {
        successful_strategies_are_learned
        statistics_are_grouped_and_filtered
        recoveries_are_grouped_by_level_strategy_and_day
    }
    failures {
        failures_are_grouped_and_filtered
        aggregates_and_list_cover_the_same_hours
        daily_counts_match_hourly_counts
        role_failure_has_the_prompt_pattern
        unsupervised_failed_call_is_counted
        failure_pages_are_stable
        failure_analytics_survive_pruning
        secrets_are_in_no_message_and_no_prompt
    }
    following {
        new_events_are_delivered_at_once_and_in_order
        following_continues_from_an_offset
        slow_follower_misses_nothing
        many_followers_are_supported
        following_ends_when_the_store_is_closed
    }
    maintenance {
        only_old_finished_runs_are_pruned
        log_offsets_are_never_reused
        vacuumed_store_is_smaller_with_equal_content
        check_reports_the_contents
    }
    calls {
        calls_round_trip
        spending_is_grouped_and_filtered
        run_cost_is_counted_once
        unknown_price_is_unknown_until_the_agent_reports_the_cost
        model_is_taken_from_calls
        client_session_cost_is_the_sum_of_its_calls
        pruned_run_loses_its_calls_but_keeps_their_cost
        names_are_truncated_and_redacted
        calls_of_many_runs_are_written_together
    }
    settings {
        value_is_set_changed_and_deleted
        concurrent_change_is_not_overwritten
        concurrent_changes_have_one_winner
        every_change_is_recorded
        values_are_redacted
    }
    outbox {
        message_is_written_with_its_event_and_named_after_it
        rejected_append_sends_nothing
        claimed_messages_are_exclusive
        failed_message_is_retried_until_given_up
        first_message_is_sent_at_once_and_the_rest_as_a_group
        delivered_messages_are_pruned_with_old_runs
        messages_are_redacted
    }
}
