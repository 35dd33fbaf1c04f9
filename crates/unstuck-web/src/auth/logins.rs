//! Browser logins: one-time codes carried by links, and the login sessions they are exchanged for.
//!
//! A cookie alone cannot change anything: browsers send the cookies of this machine to every server on it, whatever its
//! port, and agents run servers. So a login also gets a key that only pages of the same origin can keep.
#![expect(
    clippy::disallowed_methods,
    reason = "the logins are in the state directory, out of the agents' reach"
)]

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
use crate::model::PermissionScope;

/// Lifetime of a login code.
pub const CODE_LIFETIME: Duration = Duration::from_secs(10 * 60);
/// Lifetime of a login.
pub const LOGIN_LIFETIME: Duration = Duration::from_secs(12 * 60 * 60);
/// Maximum number of codes and of logins; the oldest are dropped first.
const MAX_LOGINS: usize = 1000;
/// File size in bytes above which the file is compacted when a server starts.
const COMPACT_ABOVE_BYTES: usize = 256 * 1024;

/// The login codes, which end with the server, and the logins, which survive it: their hashes are stored in a file that
/// only its owner can read, with one line for each start and end of a login.
#[derive(Debug, Default)]
pub(crate) struct LoginStore {
    tables: Mutex<LoginTables>,
    /// `None` if logins end with the server.
    file: Option<PathBuf>,
}

#[derive(Debug, Default)]
struct LoginTables {
    codes: HashMap<String, ScopeGrant>,
    logins: HashMap<String, ActiveLogin>,
}

#[derive(Debug, Clone, Copy)]
struct ScopeGrant {
    scope: PermissionScope,
    until: Timestamp,
}

#[derive(Debug, Clone)]
struct ActiveLogin {
    grant: ScopeGrant,
    key: SecretHash,
    token: Option<String>,
}

/// A line of the file: the start or end of a login.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum LoginRecord {
    Began {
        cookie: String,
        key: String,
        scope: PermissionScope,
        until: Timestamp,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token: Option<String>,
    },
    Ended {
        cookie: String,
        ended: Timestamp,
    },
}

/// The permissions granted by a login cookie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LoginPermissions {
    pub(crate) scope: PermissionScope,
    /// Id of the token that was used to log in; the login ends when it is revoked. `None` for a login by link.
    pub(crate) token: Option<String>,
}

/// A new login.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewLogin {
    /// Value of the cookie.
    pub(crate) cookie: String,
    /// CSRF key, kept only by pages.
    pub(crate) key: String,
    pub(crate) scope: PermissionScope,
}

impl LoginStore {
    /// Opens the file, which need not exist, and loads the active logins.
    pub(crate) fn open_file(path: PathBuf, now: Timestamp) -> Self {
        // A file that others can write grants no access.
        let text = match fs::metadata(&path) {
            Ok(metadata) if metadata.permissions().mode() & 0o077 == 0 => {
                fs::read_to_string(&path).unwrap_or_default()
            }
            _ => String::new(),
        };
        let logins = parse_logins(&text, now);
        if text.len() > COMPACT_ABOVE_BYTES {
            // Drop expired logins; if that fails, the file is only larger than necessary.
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

    /// Creates a login code for a link.
    pub(crate) fn create_code(
        &self,
        scope: PermissionScope,
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

    /// Exchanges a code for a login, once.
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

    /// Creates a login; if it was made with a token, it ends when the token is revoked.
    pub(crate) fn create_login(
        &self,
        scope: PermissionScope,
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

    /// Returns the permissions of a cookie, if it is valid.
    pub(crate) fn check_cookie(&self, cookie: &str, now: Timestamp) -> Option<LoginPermissions> {
        let kept = self.lock_unexpired(now);
        let open = kept.logins.get(&SecretHash::of_secret(cookie).to_hex())?;
        Some(LoginPermissions {
            scope: open.grant.scope,
            token: open.token.clone(),
        })
    }

    /// Returns true if the key belongs to the cookie.
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

    /// Appends a line to the file; a login that cannot be stored ends with the server.
    fn append_record(&self, line: &LoginRecord) {
        let Some(path) = &self.file else {
            return;
        };
        let mut open = OpenOptions::new();
        let file = open.append(true).create(true).mode(0o600).open(path);
        if let (Ok(mut file), Ok(text)) = (file, serde_json::to_string(line)) {
            // A single write, so that lines of two servers do not interleave.
            let _ = file.write_all(format!("{text}\n").as_bytes());
        }
    }

    /// Locks the tables after dropping expired entries. Lookups use hashes, so timing reveals nothing about secrets.
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

/// Parses the active logins; invalid lines are skipped.
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

/// Rewrites the file.
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
    fn login_code_works_once_within_ten_minutes() {
        let logins = LoginStore::default();
        let code = logins.create_code(PermissionScope::Answer, NOW).unwrap();
        let opened = logins.exchange_code(&code, NOW).unwrap().unwrap();
        assert_eq!(opened.scope, PermissionScope::Answer);
        assert_eq!(logins.exchange_code(&code, NOW).unwrap(), None);
        let late = logins.create_code(PermissionScope::Answer, NOW).unwrap();
        assert_eq!(
            logins
                .exchange_code(&late, NOW.after(CODE_LIFETIME))
                .unwrap(),
            None
        );
    }

    #[test]
    fn login_expires_and_can_be_ended() {
        let logins = LoginStore::default();
        let code = logins.create_code(PermissionScope::Read, NOW).unwrap();
        let opened = logins.exchange_code(&code, NOW).unwrap().unwrap();
        let allowed = logins.check_cookie(&opened.cookie, NOW).unwrap();
        assert_eq!(
            (allowed.scope, allowed.token),
            (PermissionScope::Read, None)
        );
        assert!(logins.is_valid_key(&opened.cookie, &opened.key, NOW));
        assert!(!logins.is_valid_key(&opened.cookie, "another", NOW));
        assert_eq!(
            logins.check_cookie(&opened.cookie, NOW.after(LOGIN_LIFETIME)),
            None
        );
        let code = logins.create_code(PermissionScope::Read, NOW).unwrap();
        let again = logins.exchange_code(&code, NOW).unwrap().unwrap();
        logins.logout(&again.cookie, NOW);
        assert_eq!(logins.check_cookie(&again.cookie, NOW), None);
    }

    /// W10: a restarted server recognizes active logins without storing any of their secrets.
    #[test]
    fn login_and_logout_survive_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("logins.jsonl");
        let first = LoginStore::open_file(path.clone(), NOW);
        let stays = first
            .create_login(PermissionScope::Answer, None, NOW)
            .unwrap();
        let token = Some("ab12".to_owned());
        let ends = first
            .create_login(PermissionScope::Admin, token.clone(), NOW)
            .unwrap();
        let file = fs::read_to_string(&path).unwrap();
        assert!(!file.contains(&stays.cookie) && !file.contains(&stays.key));
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );

        let second = LoginStore::open_file(path.clone(), NOW);
        let allowed = second.check_cookie(&stays.cookie, NOW).unwrap();
        assert_eq!(
            (allowed.scope, allowed.token),
            (PermissionScope::Answer, None)
        );
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
