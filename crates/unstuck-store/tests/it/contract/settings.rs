//! Settings made over REST or in the dashboard.

use futures_util::future::join_all;
use serde_json::{Value, json};
use unstuck_store::{
    EventPayloadRedactor, ExpectedVersion, SettingUpdate, Store, StoreError, StoreOptions,
    StoredSetting,
};

use super::Place;
use crate::samples::later;

fn change(key: &str, value: Option<Value>, expected: ExpectedVersion) -> SettingUpdate {
    SettingUpdate {
        key: key.to_owned(),
        value,
        expected,
        at: later(1),
        by: "dashboard".to_owned(),
    }
}

async fn put(store: &Store, key: &str, value: Option<Value>) -> StoredSetting {
    let change = change(key, value, ExpectedVersion::Anything);
    store.put_setting(change).await.unwrap()
}

pub(super) async fn value_is_set_changed_and_deleted(place: &Place) {
    let store = place.open().await;
    assert_eq!(store.setting("policy").await.unwrap(), None);
    let first = put(&store, "policy", Some(json!({"maxRetries": 3}))).await;
    assert_eq!(
        (first.version, first.at, &*first.by),
        (1, later(1), "dashboard")
    );
    assert_eq!(store.setting("policy").await.unwrap(), Some(first.clone()));
    assert_eq!(
        put(&store, "policy", Some(json!({"maxRetries": 3}))).await,
        first
    );
    assert_eq!(put(&store, "policy", Some(json!(5))).await.version, 2);
    let gone = put(&store, "policy", None).await;
    assert_eq!((gone.version, gone.value), (3, Value::Null));
    assert_eq!(store.setting("policy").await.unwrap(), None);
    assert_eq!(put(&store, "policy", None).await.version, 3);
    let again = put(&store, "policy", Some(json!(1))).await;
    assert_eq!(again.version, 4, "a version is never used again");

    put(&store, "project:/a:policy", Some(json!("a"))).await;
    put(&store, "project:/b:policy", Some(json!("b"))).await;
    put(&store, "project:/b:budget", None).await;
    let listed = store.settings("project:").await.unwrap();
    let keys: Vec<_> = listed.iter().map(|setting| &*setting.key).collect();
    assert_eq!(keys, ["project:/a:policy", "project:/b:policy"]);
    assert_eq!(store.settings("").await.unwrap().len(), 3);
}

/// S4-26: concurrent changes do not overwrite each other.
pub(super) async fn concurrent_change_is_not_overwritten(place: &Place) {
    let store = place.open().await;
    let present = put(&store, "policy", Some(json!(1))).await;
    for (key, expected, is_there) in [
        ("policy", ExpectedVersion::Version(2), true),
        ("policy", ExpectedVersion::Nothing, true),
        ("other", ExpectedVersion::Version(1), false),
    ] {
        let refused = store
            .put_setting(change(key, Some(json!(2)), expected))
            .await;
        let Err(StoreError::SettingChanged { current: told, .. }) = refused else {
            panic!("{refused:?}");
        };
        let there = is_there.then(|| Box::new(present.clone()));
        assert_eq!(told, there, "{key} {expected:?}");
    }
    let right = change("policy", Some(json!(2)), ExpectedVersion::Version(1));
    assert_eq!(store.put_setting(right).await.unwrap().version, 2);
    let new = change("other", Some(json!(2)), ExpectedVersion::Nothing);
    assert_eq!(store.put_setting(new).await.unwrap().version, 1);
    let away = change("policy", None, ExpectedVersion::Version(2));
    assert_eq!(store.put_setting(away).await.unwrap().version, 3);
    let back = change("policy", Some(json!(3)), ExpectedVersion::Nothing);
    assert_eq!(store.put_setting(back).await.unwrap().version, 4);
}

pub(super) async fn concurrent_changes_have_one_winner(place: &Place) {
    let stores = [place.open().await, place.open().await];
    put(&stores[0], "policy", Some(json!("old"))).await;
    let changes = (0..20).map(|number| {
        let change = change("policy", Some(json!(number)), ExpectedVersion::Version(1));
        stores[number % 2].put_setting(change)
    });
    let done = join_all(changes).await;
    let won: Vec<_> = done.into_iter().filter_map(Result::ok).collect();
    assert_eq!(won.len(), 1);
    let present = stores[1].setting("policy").await.unwrap();
    assert_eq!(present.as_ref(), won.first());
}

pub(super) async fn every_change_is_recorded(place: &Place) {
    let store = place.open().await;
    put(&store, "policy", Some(json!(1))).await;
    put(&store, "policy", Some(json!(1))).await;
    put(&store, "policy", Some(json!(2))).await;
    put(&store, "policy", None).await;
    let wrong = change("policy", Some(json!(9)), ExpectedVersion::Version(1));
    assert!(store.put_setting(wrong).await.is_err());
    let changes = store.setting_changes("policy", 9).await.unwrap();
    let told: Vec<_> = changes
        .iter()
        .map(|one| (one.version, one.before.clone(), one.after.clone()))
        .collect();
    assert_eq!(
        told,
        [
            (3, Some(json!(2)), None),
            (2, Some(json!(1)), Some(json!(2))),
            (1, None, Some(json!(1)))
        ]
    );
    assert_eq!((changes[0].at, &*changes[0].by), (later(1), "dashboard"));
    assert_eq!(store.setting_changes("policy", 1).await.unwrap().len(), 1);
    assert_eq!(store.setting_changes("other", 9).await.unwrap(), []);
}

pub(super) async fn values_are_redacted(place: &Place) {
    let redact = EventPayloadRedactor::new(|value| {
        let text = value.to_string().replace("hunter2", "[REDACTED]");
        *value = serde_json::from_str(&text).unwrap();
    });
    let options = StoreOptions {
        redact: Some(redact),
        ..StoreOptions::default()
    };
    let store = Store::open(&place.location(), options).await.unwrap();
    let kept = put(&store, "hook", Some(json!({"url": "https://hunter2"}))).await;
    assert_eq!(kept.value, json!({"url": "https://[REDACTED]"}));
    store.close().await.unwrap();
    let bytes = String::from_utf8_lossy(&place.bytes()).into_owned();
    assert!(!bytes.contains("hunter2"));
}
