//! JSON serialization of event records: `{"v":1,"run":…,"seq":…,"at":…,"event":…, …}`.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::{Event, EventRecord, RunId, UnknownEvent};
use crate::time::Timestamp;

/// The name of the event whose own fields include `run`.
const CALL_FINISHED: &str = "call_finished";

impl Event {
    /// Returns the event as a JSON object with its name under `event`.
    pub fn to_value(&self) -> Result<Map<String, Value>, serde_json::Error> {
        if let Self::Unknown(unknown) = self {
            return Ok(unknown.fields.clone());
        }
        match serde_json::to_value(self)? {
            Value::Object(fields) => Ok(fields),
            _ => Err(serde::ser::Error::custom("an event is not an object")),
        }
    }

    /// Parses the output of [`to_value`](Self::to_value); unknown events are kept as [`UnknownEvent`].
    pub fn from_value(fields: Map<String, Value>) -> Self {
        let name = fields.get("event").and_then(Value::as_str);
        let name = name.unwrap_or_default().to_owned();
        // Only an event with a known name can be parsed; others need no copy of their fields.
        let known = Self::NAMES.contains(&&*name);
        let read = known.then(|| Self::deserialize(Value::Object(fields.clone())));
        match read {
            Some(Ok(event)) => event,
            _ => Self::Unknown(UnknownEvent { name, fields }),
        }
    }
}

impl Serialize for EventRecord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut line = Map::new();
        line.insert("v".into(), self.version.into());
        line.insert("run".into(), self.run.as_str().into());
        line.insert("seq".into(), self.seq.into());
        line.insert("at".into(), self.at.to_string().into());
        let event = self.event.to_value().map_err(serde::ser::Error::custom)?;
        line.extend(event);
        line.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for EventRecord {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut line = Map::deserialize(deserializer)?;
        let mut take = |key: &'static str| line.shift_remove(key).unwrap_or(Value::Null);
        let (version, run) = (take("v"), take("run"));
        let (seq, at) = (take("seq"), take("at"));
        // A call record names its run itself. Version 1 also stored the time of the request as that of the line.
        if line.get("event").and_then(Value::as_str) == Some(CALL_FINISHED) {
            line.insert("run".into(), run.clone());
            if !line.contains_key("requested_at") {
                line.insert("at".into(), at.clone());
            }
        }
        Ok(Self {
            version: serde_json::from_value(version).map_err(serde::de::Error::custom)?,
            run: serde_json::from_value::<RunId>(run).map_err(serde::de::Error::custom)?,
            seq: serde_json::from_value(seq).map_err(serde::de::Error::custom)?,
            at: serde_json::from_value::<Timestamp>(at).map_err(serde::de::Error::custom)?,
            event: Event::from_value(line),
        })
    }
}
