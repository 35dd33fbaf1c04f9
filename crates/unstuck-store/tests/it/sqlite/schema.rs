//! The recorded schema of a new store.

use unstuck_testkit::golden::assert_golden;

use super::bare;
use crate::contract::{Place, wait};

#[test]
fn new_store_has_the_recorded_schema() {
    let place = Place::new();
    drop(wait(place.open()));
    let connection = bare(&place);
    let number = |name: &str| -> i64 {
        let read = |row: &rusqlite::Row<'_>| row.get(0);
        connection.pragma_query_value(None, name, read).unwrap()
    };
    let mut made = format!(
        "-- application_id {:#x}, user_version {}\n",
        number("application_id"),
        number("user_version")
    );
    let mut query = connection
        .prepare(
            "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY type, name",
        )
        .unwrap();
    let read = |row: &rusqlite::Row<'_>| {
        Ok(format!(
            "\n-- {} {}\n{};\n",
            row.get::<_, String>(0)?,
            row.get::<_, String>(1)?,
            row.get::<_, String>(2)?
        ))
    };
    for part in query.query_map([], read).unwrap() {
        made.push_str(&part.unwrap());
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/schema.sql");
    assert_golden(path.as_ref(), &made);
}
