//! Logins of browsers: one-time codes that a link carries, and the sessions that they are exchanged for.
//!
//! A cookie alone is not enough to change anything. Browsers send the cookies of this machine to every server on it,
//! whatever its port, and agents run servers. So a login also gets a key, which only pages of this very origin can keep.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use unstuck_core::Timestamp;

use super::secret::{Hash, NoChance, drawn};
use crate::model::Scope;

/// How long a code can be exchanged.
pub const CODE_LASTS: Duration = Duration::from_secs(10 * 60);
/// How long a login lasts.
pub const LOGIN_LASTS: Duration = Duration::from_secs(12 * 60 * 60);
/// So many of each are kept; the oldest go first.
const MOST: usize = 1000;

/// Codes and logins, in memory: they end with the server.
#[derive(Debug, Default)]
pub(crate) struct Logins(Mutex<Kept>);

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
        let mut kept = self.kept(now);
        make_room(&mut kept.logins, |one| one.granted.until);
        kept.logins.insert(Hash::of(&cookie).text(), open);
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
        self.kept(now).logins.remove(&Hash::of(cookie).text());
    }

    /// What is kept, without what is over. Both are looked up by their hashes, so time tells nothing about secrets.
    fn kept(&self, now: Timestamp) -> MutexGuard<'_, Kept> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.codes.retain(|_, one| one.until > now);
        kept.logins.retain(|_, one| one.granted.until > now);
        kept
    }
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
}
