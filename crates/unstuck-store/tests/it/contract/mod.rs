//! What every backend keeps, written once. Each function gets a place with an empty store.

mod appending;

use std::path::PathBuf;

use tempfile::TempDir;
use unstuck_store::{Location, Options, Store};

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

    pub(crate) fn location(&self) -> Location {
        Location::file(self.file())
    }

    pub(crate) async fn open(&self) -> Store {
        Store::open(&self.location(), Options::default())
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
}
