//! Logins of browsers: one-time codes that a link carries, and the sessions that they are exchanged for.
//!
//! A cookie alone is not enough to change anything. Browsers send the cookies of this machine to every server on it,
//! whatever its port, and agents run servers. So a login also gets a key, which only pages of this very origin can keep.

use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use unstuck_core::Timestamp;

use super::secret::{Hash, NoChance, drawn};
use crate::model::Scope;

/// How long a code can be exchanged.
pub const CODE_LASTS: Duration = Duration::from_secs(10 * 60);
/// How long a login lasts.
pub const LOGIN_LASTS: Duration = Duration::from_secs(12 * 60 * 60);
/// So many of each are kept; the oldest go first.
const MOST: usize = 1000;
/// A file of so many bytes is written anew when a server starts.
const LARGE: usize = 256 * 1024;

/// Codes, which end with the server, and logins, which do not: their hashes are kept in a file that only its owner can
/// read, one line for each that began and for each that ended.
#[derive(Debug, Default)]
pub(crate) struct Logins {
    kept: Mutex<Kept>,
    /// None where they end with the server.
    file: Option<PathBuf>,
}

#[derive(Debug, Default)]
struct Kept {
    codes: HashMap<String, Granted>,
    logins: HashMap<String, Open>,
}

#[derive(Debug, Clone, Copy)]
struct Granted {
    scope: Scope,
    until: Timestamp,
}

#[derive(Debug, Clone)]
struct Open {
    granted: Granted,
    key: Hash,
    token: Option<String>,
}

/// A line of the file: a login that began, or one that ended.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Line {
    Began {
        cookie: String,
        key: String,
        scope: Scope,
        until: Timestamp,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token: Option<String>,
    },
    Ended {
        cookie: String,
        ended: Timestamp,
    },
}

/// What a cookie allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Allowed {
    pub(crate) scope: Scope,
    /// The id of the token that it came from, without which it counts no more; none where it came by a link.
    pub(crate) token: Option<String>,
}

/// Who has logged in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Opened {
    /// What the cookie says.
    pub(crate) cookie: String,
    /// What only pages keep.
    pub(crate) key: String,
    pub(crate) scope: Scope,
}

impl Logins {
    /// The logins of this file, which need not exist, as far as they have not ended.
    pub(crate) fn open_file(path: PathBuf, now: Timestamp) -> Self {
        // A file that others could have written lets nobody in.
        let text = match fs::metadata(&path) {
            Ok(metadata) if metadata.permissions().mode() & 0o077 == 0 => {
                fs::read_to_string(&path).unwrap_or_default()
            }
            _ => String::new(),
        };
        let logins = fold(&text, now);
        if text.len() > LARGE {
            // What has ended is dropped; if that fails, the file is only larger than it need be.
            let _ = rewrite(&path, &logins);
        }
        let kept = Kept {
            codes: HashMap::new(),
            logins,
        };
        Self {
            kept: Mutex::new(kept),
            file: Some(path),
        }
    }

    /// A code for a link.
    pub(crate) fn code(&self, scope: Scope, now: Timestamp) -> Result<String, NoChance> {
        let code = drawn()?;
        let granted = Granted {
            scope,
            until: now.after(CODE_LASTS),
        };
        let mut kept = self.kept(now);
        make_room(&mut kept.codes, |one| one.until);
        kept.codes.insert(Hash::of(&code).text(), granted);
        Ok(code)
    }

    /// Exchanges a code, once.
    pub(crate) fn login(&self, code: &str, now: Timestamp) -> Result<Option<Opened>, NoChance> {
        let granted = self.kept(now).codes.remove(&Hash::of(code).text());
        let granted = granted.map(|granted| self.open(granted.scope, None, now));
        granted.transpose()
    }

    /// Lets somebody in, for as long as their token counts where they have brought one.
    pub(crate) fn open(
        &self,
        scope: Scope,
        token: Option<String>,
        now: Timestamp,
    ) -> Result<Opened, NoChance> {
        let (cookie, key) = (drawn()?, drawn()?);
        let open = Open {
            granted: Granted {
                scope,
                until: now.after(LOGIN_LASTS),
            },
            key: Hash::of(&key),
            token,
        };
        let hash = Hash::of(&cookie).text();
        self.write(&line(&hash, &open));
        let mut kept = self.kept(now);
        make_room(&mut kept.logins, |one| one.granted.until);
        kept.logins.insert(hash, open);
        Ok(Opened { cookie, key, scope })
    }

    /// What a cookie allows.
    pub(crate) fn check(&self, cookie: &str, now: Timestamp) -> Option<Allowed> {
        let kept = self.kept(now);
        let open = kept.logins.get(&Hash::of(cookie).text())?;
        Some(Allowed {
            scope: open.granted.scope,
            token: open.token.clone(),
        })
    }

    /// Whether a key belongs to a cookie.
    pub(crate) fn is_key(&self, cookie: &str, key: &str, now: Timestamp) -> bool {
        let kept = self.kept(now);
        let open = kept.logins.get(&Hash::of(cookie).text());
        open.is_some_and(|open| open.key.is(&Hash::of(key)))
    }

    /// Ends a login.
    pub(crate) fn logout(&self, cookie: &str, now: Timestamp) {
        let cookie = Hash::of(cookie).text();
        if self.kept(now).logins.remove(&cookie).is_some() {
            self.write(&Line::Ended { cookie, ended: now });
        }
    }

    /// Keeps a line; a login that cannot be kept ends with the server.
    fn write(&self, line: &Line) {
        let Some(path) = &self.file else {
            return;
        };
        let mut open = OpenOptions::new();
        let file = open.append(true).create(true).mode(0o600).open(path);
        if let (Ok(mut file), Ok(text)) = (file, serde_json::to_string(line)) {
            // One write: lines of two servers do not mix.
            let _ = file.write_all(format!("{text}\n").as_bytes());
        }
    }

    /// What is kept, without what is over. Both are looked up by their hashes, so time tells nothing about secrets.
    fn kept(&self, now: Timestamp) -> MutexGuard<'_, Kept> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.codes.retain(|_, one| one.until > now);
        kept.logins.retain(|_, one| one.granted.until > now);
        kept
    }
}

fn line(cookie: &str, open: &Open) -> Line {
    Line::Began {
        cookie: cookie.to_owned(),
        key: open.key.text(),
        scope: open.granted.scope,
        until: open.granted.until,
        token: open.token.clone(),
    }
}

/// The logins that have not ended; a line that is none is passed over.
fn fold(text: &str, now: Timestamp) -> HashMap<String, Open> {
    let mut logins = HashMap::new();
    for line in text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
    {
        match line {
            Line::Began {
                cookie,
                key,
                scope,
                until,
                token,
            } => {
                let granted = Granted { scope, until };
                let open = Hash::read(&key).map(|key| Open {
                    granted,
                    key,
                    token,
                });
                logins.extend(open.filter(|_| until > now).map(|open| (cookie, open)));
            }
            Line::Ended { cookie, .. } => {
                logins.remove(&cookie);
            }
        }
    }
    logins
}

/// Writes the file anew.
fn rewrite(path: &Path, logins: &HashMap<String, Open>) -> io::Result<()> {
    let new = path.with_extension("new");
    let mut open = OpenOptions::new();
    let mut file = open
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&new)?;
    for (cookie, open) in logins {
        let text = serde_json::to_string(&line(cookie, open))?;
        writeln!(file, "{text}")?;
    }
    file.sync_all()?;
    fs::rename(new, path)
}

fn make_room<T>(all: &mut HashMap<String, T>, until: impl Fn(&T) -> Timestamp) {
    if all.len() < MOST {
        return;
    }
    let oldest = all.iter().min_by_key(|(_, one)| until(one));
    if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
        all.remove(&oldest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_seconds(1_794_777_000);

    #[test]
    fn a_code_is_good_once_and_for_ten_minutes() {
        let logins = Logins::default();
        let code = logins.code(Scope::Answer, NOW).unwrap();
        let opened = logins.login(&code, NOW).unwrap().unwrap();
        assert_eq!(opened.scope, Scope::Answer);
        assert_eq!(logins.login(&code, NOW).unwrap(), None);
        let late = logins.code(Scope::Answer, NOW).unwrap();
        assert_eq!(logins.login(&late, NOW.after(CODE_LASTS)).unwrap(), None);
    }

    #[test]
    fn a_login_ends_by_itself_and_by_hand() {
        let logins = Logins::default();
        let code = logins.code(Scope::Read, NOW).unwrap();
        let opened = logins.login(&code, NOW).unwrap().unwrap();
        let allowed = logins.check(&opened.cookie, NOW).unwrap();
        assert_eq!((allowed.scope, allowed.token), (Scope::Read, None));
        assert!(logins.is_key(&opened.cookie, &opened.key, NOW));
        assert!(!logins.is_key(&opened.cookie, "another", NOW));
        assert_eq!(logins.check(&opened.cookie, NOW.after(LOGIN_LASTS)), None);
        let code = logins.code(Scope::Read, NOW).unwrap();
        let again = logins.login(&code, NOW).unwrap().unwrap();
        logins.logout(&again.cookie, NOW);
        assert_eq!(logins.check(&again.cookie, NOW), None);
    }

    /// W10: a server that starts again knows who has logged in, and knows no secret of theirs.
    #[test]
    fn a_login_survives_a_restart_and_its_end_does_too() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("logins.jsonl");
        let first = Logins::open_file(path.clone(), NOW);
        let stays = first.open(Scope::Answer, None, NOW).unwrap();
        let token = Some("ab12".to_owned());
        let ends = first.open(Scope::Admin, token.clone(), NOW).unwrap();
        let file = fs::read_to_string(&path).unwrap();
        assert!(!file.contains(&stays.cookie) && !file.contains(&stays.key));
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );

        let second = Logins::open_file(path.clone(), NOW);
        let allowed = second.check(&stays.cookie, NOW).unwrap();
        assert_eq!((allowed.scope, allowed.token), (Scope::Answer, None));
        assert!(second.is_key(&stays.cookie, &stays.key, NOW));
        assert_eq!(second.check(&ends.cookie, NOW).unwrap().token, token);
        second.logout(&ends.cookie, NOW);

        let third = Logins::open_file(path.clone(), NOW);
        assert!(third.check(&stays.cookie, NOW).is_some());
        assert_eq!(third.check(&ends.cookie, NOW), None);
        let late = Logins::open_file(path.clone(), NOW.after(LOGIN_LASTS));
        assert_eq!(late.check(&stays.cookie, NOW), None);

        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let open = Logins::open_file(path, NOW);
        assert_eq!(
            open.check(&stays.cookie, NOW),
            None,
            "others could have written it"
        );
    }
}
