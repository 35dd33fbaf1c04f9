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

use super::random_token::{RandomnessError, SecretHash, generate_secret};
use crate::model::Scope;

/// How long a code can be exchanged.
pub const CODE_LIFETIME: Duration = Duration::from_secs(10 * 60);
/// How long a login lasts.
pub const LOGIN_LIFETIME: Duration = Duration::from_secs(12 * 60 * 60);
/// So many of each are kept; the oldest go first.
const MAX_LOGINS: usize = 1000;
/// A file of so many bytes is written anew when a server starts.
const COMPACT_ABOVE_BYTES: usize = 256 * 1024;

/// Codes, which end with the server, and logins, which do not: their hashes are kept in a file that only its owner can
/// read, one line for each that began and for each that ended.
#[derive(Debug, Default)]
pub(crate) struct LoginStore {
    tables: Mutex<LoginTables>,
    /// None where they end with the server.
    file: Option<PathBuf>,
}

#[derive(Debug, Default)]
struct LoginTables {
    codes: HashMap<String, ScopeGrant>,
    logins: HashMap<String, ActiveLogin>,
}

#[derive(Debug, Clone, Copy)]
struct ScopeGrant {
    scope: Scope,
    until: Timestamp,
}

#[derive(Debug, Clone)]
struct ActiveLogin {
    grant: ScopeGrant,
    key: SecretHash,
    token: Option<String>,
}

/// A line of the file: a login that began, or one that ended.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum LoginRecord {
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
pub(crate) struct LoginAccess {
    pub(crate) scope: Scope,
    /// The id of the token that it came from, without which it counts no more; none where it came by a link.
    pub(crate) token: Option<String>,
}

/// Who has logged in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewLogin {
    /// What the cookie says.
    pub(crate) cookie: String,
    /// What only pages keep.
    pub(crate) key: String,
    pub(crate) scope: Scope,
}

impl LoginStore {
    /// The logins of this file, which need not exist, as far as they have not ended.
    pub(crate) fn open_file(path: PathBuf, now: Timestamp) -> Self {
        // A file that others could have written lets nobody in.
        let text = match fs::metadata(&path) {
            Ok(metadata) if metadata.permissions().mode() & 0o077 == 0 => {
                fs::read_to_string(&path).unwrap_or_default()
            }
            _ => String::new(),
        };
        let logins = parse_logins(&text, now);
        if text.len() > COMPACT_ABOVE_BYTES {
            // What has ended is dropped; if that fails, the file is only larger than it need be.
            let _ = rewrite_file(&path, &logins);
        }
        let kept = LoginTables {
            codes: HashMap::new(),
            logins,
        };
        Self {
            tables: Mutex::new(kept),
            file: Some(path),
        }
    }

    /// A code for a link.
    pub(crate) fn create_code(
        &self,
        scope: Scope,
        now: Timestamp,
    ) -> Result<String, RandomnessError> {
        let code = generate_secret()?;
        let granted = ScopeGrant {
            scope,
            until: now.after(CODE_LIFETIME),
        };
        let mut kept = self.lock_unexpired(now);
        evict_oldest(&mut kept.codes, |one| one.until);
        kept.codes
            .insert(SecretHash::of_secret(&code).to_hex(), granted);
        Ok(code)
    }

    /// Exchanges a code, once.
    pub(crate) fn exchange_code(
        &self,
        code: &str,
        now: Timestamp,
    ) -> Result<Option<NewLogin>, RandomnessError> {
        let granted = self
            .lock_unexpired(now)
            .codes
            .remove(&SecretHash::of_secret(code).to_hex());
        let granted = granted.map(|granted| self.create_login(granted.scope, None, now));
        granted.transpose()
    }

    /// Lets somebody in, for as long as their token counts where they have brought one.
    pub(crate) fn create_login(
        &self,
        scope: Scope,
        token: Option<String>,
        now: Timestamp,
    ) -> Result<NewLogin, RandomnessError> {
        let (cookie, key) = (generate_secret()?, generate_secret()?);
        let open = ActiveLogin {
            grant: ScopeGrant {
                scope,
                until: now.after(LOGIN_LIFETIME),
            },
            key: SecretHash::of_secret(&key),
            token,
        };
        let hash = SecretHash::of_secret(&cookie).to_hex();
        self.append_record(&began_record(&hash, &open));
        let mut kept = self.lock_unexpired(now);
        evict_oldest(&mut kept.logins, |one| one.grant.until);
        kept.logins.insert(hash, open);
        Ok(NewLogin { cookie, key, scope })
    }

    /// What a cookie allows.
    pub(crate) fn check_cookie(&self, cookie: &str, now: Timestamp) -> Option<LoginAccess> {
        let kept = self.lock_unexpired(now);
        let open = kept.logins.get(&SecretHash::of_secret(cookie).to_hex())?;
        Some(LoginAccess {
            scope: open.grant.scope,
            token: open.token.clone(),
        })
    }

    /// Whether a key belongs to a cookie.
    pub(crate) fn is_valid_key(&self, cookie: &str, key: &str, now: Timestamp) -> bool {
        let kept = self.lock_unexpired(now);
        let open = kept.logins.get(&SecretHash::of_secret(cookie).to_hex());
        open.is_some_and(|open| open.key.matches(&SecretHash::of_secret(key)))
    }

    /// Ends a login.
    pub(crate) fn logout(&self, cookie: &str, now: Timestamp) {
        let cookie = SecretHash::of_secret(cookie).to_hex();
        if self.lock_unexpired(now).logins.remove(&cookie).is_some() {
            self.append_record(&LoginRecord::Ended { cookie, ended: now });
        }
    }

    /// Keeps a line; a login that cannot be kept ends with the server.
    fn append_record(&self, line: &LoginRecord) {
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
    fn lock_unexpired(&self, now: Timestamp) -> MutexGuard<'_, LoginTables> {
        let mut kept = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        kept.codes.retain(|_, one| one.until > now);
        kept.logins.retain(|_, one| one.grant.until > now);
        kept
    }
}

fn began_record(cookie: &str, open: &ActiveLogin) -> LoginRecord {
    LoginRecord::Began {
        cookie: cookie.to_owned(),
        key: open.key.to_hex(),
        scope: open.grant.scope,
        until: open.grant.until,
        token: open.token.clone(),
    }
}

/// The logins that have not ended; a line that is none is passed over.
fn parse_logins(text: &str, now: Timestamp) -> HashMap<String, ActiveLogin> {
    let mut logins = HashMap::new();
    for line in text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
    {
        match line {
            LoginRecord::Began {
                cookie,
                key,
                scope,
                until,
                token,
            } => {
                let granted = ScopeGrant { scope, until };
                let open = SecretHash::parse_hex(&key).map(|key| ActiveLogin {
                    grant: granted,
                    key,
                    token,
                });
                logins.extend(open.filter(|_| until > now).map(|open| (cookie, open)));
            }
            LoginRecord::Ended { cookie, .. } => {
                logins.remove(&cookie);
            }
        }
    }
    logins
}

/// Writes the file anew.
fn rewrite_file(path: &Path, logins: &HashMap<String, ActiveLogin>) -> io::Result<()> {
    let new = path.with_extension("new");
    let mut open = OpenOptions::new();
    let mut file = open
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&new)?;
    for (cookie, open) in logins {
        let text = serde_json::to_string(&began_record(cookie, open))?;
        writeln!(file, "{text}")?;
    }
    file.sync_all()?;
    fs::rename(new, path)
}

fn evict_oldest<T>(all: &mut HashMap<String, T>, until: impl Fn(&T) -> Timestamp) {
    if all.len() < MAX_LOGINS {
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
        let logins = LoginStore::default();
        let code = logins.create_code(Scope::Answer, NOW).unwrap();
        let opened = logins.exchange_code(&code, NOW).unwrap().unwrap();
        assert_eq!(opened.scope, Scope::Answer);
        assert_eq!(logins.exchange_code(&code, NOW).unwrap(), None);
        let late = logins.create_code(Scope::Answer, NOW).unwrap();
        assert_eq!(
            logins
                .exchange_code(&late, NOW.after(CODE_LIFETIME))
                .unwrap(),
            None
        );
    }

    #[test]
    fn a_login_ends_by_itself_and_by_hand() {
        let logins = LoginStore::default();
        let code = logins.create_code(Scope::Read, NOW).unwrap();
        let opened = logins.exchange_code(&code, NOW).unwrap().unwrap();
        let allowed = logins.check_cookie(&opened.cookie, NOW).unwrap();
        assert_eq!((allowed.scope, allowed.token), (Scope::Read, None));
        assert!(logins.is_valid_key(&opened.cookie, &opened.key, NOW));
        assert!(!logins.is_valid_key(&opened.cookie, "another", NOW));
        assert_eq!(
            logins.check_cookie(&opened.cookie, NOW.after(LOGIN_LIFETIME)),
            None
        );
        let code = logins.create_code(Scope::Read, NOW).unwrap();
        let again = logins.exchange_code(&code, NOW).unwrap().unwrap();
        logins.logout(&again.cookie, NOW);
        assert_eq!(logins.check_cookie(&again.cookie, NOW), None);
    }

    /// W10: a server that starts again knows who has logged in, and knows no secret of theirs.
    #[test]
    fn a_login_survives_a_restart_and_its_end_does_too() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("logins.jsonl");
        let first = LoginStore::open_file(path.clone(), NOW);
        let stays = first.create_login(Scope::Answer, None, NOW).unwrap();
        let token = Some("ab12".to_owned());
        let ends = first
            .create_login(Scope::Admin, token.clone(), NOW)
            .unwrap();
        let file = fs::read_to_string(&path).unwrap();
        assert!(!file.contains(&stays.cookie) && !file.contains(&stays.key));
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );

        let second = LoginStore::open_file(path.clone(), NOW);
        let allowed = second.check_cookie(&stays.cookie, NOW).unwrap();
        assert_eq!((allowed.scope, allowed.token), (Scope::Answer, None));
        assert!(second.is_valid_key(&stays.cookie, &stays.key, NOW));
        assert_eq!(second.check_cookie(&ends.cookie, NOW).unwrap().token, token);
        second.logout(&ends.cookie, NOW);

        let third = LoginStore::open_file(path.clone(), NOW);
        assert!(third.check_cookie(&stays.cookie, NOW).is_some());
        assert_eq!(third.check_cookie(&ends.cookie, NOW), None);
        let late = LoginStore::open_file(path.clone(), NOW.after(LOGIN_LIFETIME));
        assert_eq!(late.check_cookie(&stays.cookie, NOW), None);

        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let open = LoginStore::open_file(path, NOW);
        assert_eq!(
            open.check_cookie(&stays.cookie, NOW),
            None,
            "others could have written it"
        );
    }
}
