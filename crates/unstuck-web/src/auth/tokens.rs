//! Tokens: who may do what, kept as hashes in a file that only its owner can read.
//!
//! Each line is a token that was made, or one that was taken back. Lines are only ever added, so that two processes
//! cannot lose each other's.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use unstuck_core::Timestamp;

use super::logins::CODE_LIFETIME;
use super::random_token::{RandomnessError, SecretHash, generate_secret};
use crate::model::Scope;

/// What every token begins with, so that it is known for what it is.
const TOKEN_PREFIX: &str = "unstuck_";
/// How many letters of the hash make an id.
const ID_LENGTH: usize = 8;

/// Why the tokens could not be used.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The file cannot be read or written.
    #[error("cannot {operation} the tokens in {path}: {source}")]
    File {
        /// What was tried.
        operation: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Others can read or change the file.
    #[error("{path} can be read or written by others: chmod 600 it, and make new tokens")]
    InsecurePermissions {
        /// The file.
        path: PathBuf,
    },
    /// There is no such token.
    #[error("there is no token `{id}`")]
    NotFound {
        /// What was asked for.
        id: String,
    },
    /// No secret could be made.
    #[error(transparent)]
    Randomness(#[from] RandomnessError),
}

/// A token, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    /// Its id.
    pub id: String,
    /// What it allows.
    pub scope: Scope,
    /// The SHA-256 of the secret.
    pub hash: String,
    /// When it was made.
    pub created: Timestamp,
    /// What it is called.
    pub name: String,
    /// Until when it is good to log a browser in, once, and for nothing else; none where it is a token like others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub login_until: Option<Timestamp>,
}

/// A token that was taken back.
#[derive(Debug, Serialize, Deserialize)]
struct TokenRevocation {
    id: String,
    #[serde(rename = "revoked")]
    revoked_at: Timestamp,
}

/// The tokens of a file.
///
/// ```
/// use unstuck_core::Timestamp;
/// use unstuck_web::guard::{Scope, TokenStore};
///
/// # let folder = tempfile::tempdir()?;
/// # let state = folder.path();
/// let tokens = TokenStore::open(state.join("tokens.jsonl"));
/// let (token, secret) = tokens.create("laptop", Scope::AnswerKind, Timestamp::from_seconds(1_794_777_000))?;
/// assert_eq!(tokens.check(&secret)?.map(|found| found.scope), Some(Scope::AnswerKind));
/// tokens.revoke(&token.id, Timestamp::from_seconds(1_794_777_060))?;
/// assert_eq!(tokens.check(&secret)?, None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct TokenStore {
    path: PathBuf,
    cache: Mutex<TokenCache>,
}

/// What was last read, and of which file.
#[derive(Debug, Default)]
struct TokenCache {
    version: Option<FileVersion>,
    tokens: Vec<(SecretHash, Token)>,
}

/// By what a change of the file is seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileVersion {
    inode: u64,
    length: u64,
    seconds: i64,
    nanos: i64,
}

impl TokenStore {
    /// The tokens in this file, which need not exist.
    pub fn open(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            cache: Mutex::default(),
        }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes a token; the secret is told once and never again.
    pub fn create(
        &self,
        name: &str,
        scope: Scope,
        now: Timestamp,
    ) -> Result<(Token, String), TokenError> {
        let secret = format!("{TOKEN_PREFIX}{}", generate_secret()?);
        let token = new_token(name, scope, &secret, now);
        self.append_record(&token)?;
        Ok((token, secret))
    }

    /// Makes a code that logs a browser in at a server which runs already, once and soon.
    pub fn create_login_code(&self, scope: Scope, now: Timestamp) -> Result<String, TokenError> {
        let code = generate_secret()?;
        self.append_record(&Token {
            login_until: Some(now.after(CODE_LIFETIME)),
            ..new_token("login", scope, &code, now)
        })?;
        Ok(code)
    }

    /// Exchanges such a code, once.
    pub(crate) fn exchange_login_code(
        &self,
        code: &str,
        now: Timestamp,
    ) -> Result<Option<Scope>, TokenError> {
        let mut read = self.reload_if_changed()?;
        let asked = SecretHash::of_secret(code);
        let is_good = |token: &Token| token.login_until.is_some_and(|until| until > now);
        let place = read
            .tokens
            .iter()
            .position(|(hash, token)| hash.matches(&asked) && is_good(token));
        let Some(place) = place else {
            return Ok(None);
        };
        // Nobody else gets in with it while this is written down, or afterwards.
        let (_, token) = read.tokens.remove(place);
        self.append_record(&TokenRevocation {
            id: token.id,
            revoked_at: now,
        })?;
        Ok(Some(token.scope))
    }

    /// All tokens that count, the oldest first.
    pub fn list(&self) -> Result<Vec<Token>, TokenError> {
        let read = self.reload_if_changed()?;
        let all = read.tokens.iter().map(|(_, token)| token);
        let all = all.filter(|token| token.login_until.is_none());
        Ok(all.cloned().collect())
    }

    /// Takes a token back.
    pub fn revoke(&self, id: &str, now: Timestamp) -> Result<Token, TokenError> {
        let found = self.list()?.into_iter().find(|token| token.id == id);
        let token = found.ok_or_else(|| TokenError::NotFound { id: id.to_owned() })?;
        self.append_record(&TokenRevocation {
            id: token.id.clone(),
            revoked_at: now,
        })?;
        Ok(token)
    }

    /// The token with this id, if it still counts.
    pub(crate) fn find_valid(&self, id: &str) -> Result<Option<Token>, TokenError> {
        let read = self.reload_if_changed()?;
        let mut all = read.tokens.iter().map(|(_, token)| token);
        Ok(all.find(|token| token.id == id).cloned())
    }

    /// The token with this secret, if there is one.
    pub fn check(&self, secret: &str) -> Result<Option<Token>, TokenError> {
        let (asked, read) = (SecretHash::of_secret(secret), self.reload_if_changed()?);
        // All are looked at, whichever it is.
        let mut found = None;
        for (hash, token) in &read.tokens {
            if hash.matches(&asked) && token.login_until.is_none() {
                found = Some(token);
            }
        }
        Ok(found.cloned())
    }

    fn append_record(&self, line: &impl Serialize) -> Result<(), TokenError> {
        let failed = |source| self.file_error("write", source);
        if let Some(folder) = self.path.parent() {
            let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
            made.map_err(failed)?;
        }
        let opened = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&self.path);
        let mut file = opened.map_err(failed)?;
        self.is_private(&file.metadata().map_err(failed)?)?;
        let mut text = serde_json::to_string(line).map_err(|error| failed(error.into()))?;
        text.push('\n');
        // One write: lines of two processes do not mix.
        file.write_all(text.as_bytes()).map_err(failed)?;
        file.sync_all().map_err(failed)
    }

    /// What the file says now; it is read again only if it has changed.
    fn reload_if_changed(&self) -> Result<MutexGuard<'_, TokenCache>, TokenError> {
        let mut read = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let metadata = match fs::metadata(&self.path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                *read = TokenCache::default();
                return Ok(read);
            }
            Err(error) => return Err(self.file_error("read", error)),
        };
        self.is_private(&metadata)?;
        let stamp = FileVersion {
            inode: metadata.ino(),
            length: metadata.len(),
            seconds: metadata.mtime(),
            nanos: metadata.mtime_nsec(),
        };
        if read.version != Some(stamp) {
            let text = fs::read_to_string(&self.path);
            let text = text.map_err(|error| self.file_error("read", error))?;
            *read = TokenCache {
                version: Some(stamp),
                tokens: parse_tokens(&text),
            };
        }
        Ok(read)
    }

    fn is_private(&self, metadata: &fs::Metadata) -> Result<(), TokenError> {
        match metadata.permissions().mode() & 0o077 {
            0 => Ok(()),
            _ => Err(TokenError::InsecurePermissions {
                path: self.path.clone(),
            }),
        }
    }

    fn file_error(&self, doing: &'static str, source: io::Error) -> TokenError {
        TokenError::File {
            operation: doing,
            path: self.path.clone(),
            source,
        }
    }
}

fn new_token(name: &str, scope: Scope, secret: &str, now: Timestamp) -> Token {
    let hash = SecretHash::of_secret(secret).to_hex();
    Token {
        id: hash.chars().take(ID_LENGTH).collect(),
        scope,
        hash,
        created: now,
        name: name.to_owned(),
        login_until: None,
    }
}

/// The tokens that count; a line that is neither a token nor takes one back is passed over.
fn parse_tokens(text: &str) -> Vec<(SecretHash, Token)> {
    let mut tokens: Vec<(SecretHash, Token)> = Vec::new();
    for line in text.lines() {
        if let Ok(token) = serde_json::from_str::<Token>(line) {
            tokens.extend(SecretHash::parse_hex(&token.hash).map(|hash| (hash, token)));
        } else if let Ok(revoked) = serde_json::from_str::<TokenRevocation>(line) {
            tokens.retain(|(_, token)| token.id != revoked.id);
        }
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_seconds(1_794_777_000);

    fn tokens() -> (tempfile::TempDir, TokenStore) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state/tokens.jsonl");
        (folder, TokenStore::open(path))
    }

    #[test]
    fn a_token_counts_until_it_is_taken_back_and_its_secret_is_not_in_the_file() {
        let (_folder, tokens) = tokens();
        assert_eq!(tokens.check("unstuck_x").unwrap(), None);
        let (token, secret) = tokens.create("laptop", Scope::Admin, NOW).unwrap();
        let (_, other) = tokens.create("phone", Scope::Read, NOW).unwrap();
        assert_eq!(tokens.check(&secret).unwrap(), Some(token.clone()));
        assert_eq!(tokens.list().unwrap().len(), 2);
        let file = fs::read_to_string(tokens.path()).unwrap();
        assert!(!file.contains(&secret) && file.contains(&token.hash));
        tokens.revoke(&token.id, NOW).unwrap();
        assert_eq!(tokens.check(&secret).unwrap(), None);
        assert!(tokens.check(&other).unwrap().is_some());
        assert!(matches!(
            tokens.revoke(&token.id, NOW),
            Err(TokenError::NotFound { .. })
        ));
    }

    #[test]
    fn a_token_of_another_process_counts_at_once() {
        let (_folder, tokens) = tokens();
        let elsewhere = TokenStore::open(tokens.path());
        let (_, secret) = elsewhere.create("laptop", Scope::Read, NOW).unwrap();
        assert!(tokens.check(&secret).unwrap().is_some());
    }

    #[test]
    fn a_code_of_the_file_logs_in_once_and_soon_and_does_nothing_else() {
        let (_folder, tokens) = tokens();
        let elsewhere = TokenStore::open(tokens.path());
        let code = elsewhere.create_login_code(Scope::Answer, NOW).unwrap();
        assert_eq!(tokens.check(&code).unwrap(), None);
        assert!(tokens.list().unwrap().is_empty());
        assert_eq!(
            tokens.exchange_login_code(&code, NOW).unwrap(),
            Some(Scope::Answer)
        );
        assert_eq!(tokens.exchange_login_code(&code, NOW).unwrap(), None);
        let late = elsewhere.create_login_code(Scope::Answer, NOW).unwrap();
        assert_eq!(
            tokens
                .exchange_login_code(&late, NOW.after(CODE_LIFETIME))
                .unwrap(),
            None
        );
        let (_, secret) = elsewhere.create("laptop", Scope::Admin, NOW).unwrap();
        assert_eq!(tokens.exchange_login_code(&secret, NOW).unwrap(), None);
    }

    #[test]
    fn a_file_that_others_can_read_is_refused() {
        let (_folder, tokens) = tokens();
        let (_, secret) = tokens.create("laptop", Scope::Read, NOW).unwrap();
        assert_eq!(fs::metadata(tokens.path()).unwrap().mode() & 0o777, 0o600);
        fs::set_permissions(tokens.path(), fs::Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(
            tokens.check(&secret),
            Err(TokenError::InsecurePermissions { .. })
        ));
    }
}
