//! The sheet, the script and the sign, embedded in the program.
//!
//! Their names hold a hash of their content, so that a browser keeps them for ever and a new program brings new ones.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

/// How long a browser may keep what its name never means anything else for.
const IMMUTABLE_CACHE_CONTROL: HeaderValue =
    HeaderValue::from_static("public, max-age=31536000, immutable");

/// One file.
struct StaticAsset {
    /// What it is called, with the hash of its content.
    name: String,
    media_type: HeaderValue,
    content: &'static str,
}

static STYLESHEET: LazyLock<StaticAsset> = LazyLock::new(|| {
    StaticAsset::new(
        "css",
        "text/css; charset=utf-8",
        include_str!("../../assets/unstuck.css"),
    )
});
static SCRIPT: LazyLock<StaticAsset> = LazyLock::new(|| {
    StaticAsset::new(
        "js",
        "text/javascript; charset=utf-8",
        include_str!("../../assets/unstuck.js"),
    )
});
static LOGO: LazyLock<StaticAsset> = LazyLock::new(|| {
    StaticAsset::new(
        "svg",
        "image/svg+xml",
        include_str!("../../assets/unstuck.svg"),
    )
});

impl StaticAsset {
    fn new(ending: &str, media_type: &'static str, content: &'static str) -> Self {
        let hash = HEXLOWER.encode(&Sha256::digest(content)[..6]);
        Self {
            name: format!("unstuck-{hash}.{ending}"),
            media_type: HeaderValue::from_static(media_type),
            content,
        }
    }

    fn path(&self) -> String {
        format!("/assets/{}", self.name)
    }
}

/// Where the sheet is.
pub(crate) fn stylesheet_path() -> String {
    STYLESHEET.path()
}

/// Where the script is.
pub(crate) fn script_path() -> String {
    SCRIPT.path()
}

/// Where the sign is.
pub(crate) fn logo_path() -> String {
    LOGO.path()
}

/// Hands out one of them.
pub(crate) async fn serve(Path(name): Path<String>) -> Response {
    let all: [&StaticAsset; 3] = [&STYLESHEET, &SCRIPT, &LOGO];
    let Some(asset) = all.into_iter().find(|asset| asset.name == name) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let headers = [
        (header::CONTENT_TYPE, asset.media_type.clone()),
        (header::CACHE_CONTROL, IMMUTABLE_CACHE_CONTROL),
    ];
    (headers, asset.content).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_change_with_what_is_in_them() {
        let name = |content| StaticAsset::new("css", "text/css", content).name;
        assert_ne!(name("a"), name("b"));
        assert_eq!(stylesheet_path(), stylesheet_path());
    }

    #[test]
    fn nothing_is_fetched_from_elsewhere() {
        for content in [STYLESHEET.content, SCRIPT.content] {
            assert!(
                !content.contains("http://")
                    && !content.contains("https://")
                    && !content.contains("url(")
            );
        }
    }

    #[test]
    fn the_script_runs_no_text() {
        let script = SCRIPT.content;
        for word in [
            "eval(",
            "new Function",
            "document.write",
            "insertAdjacentHTML",
            "javascript:",
        ] {
            assert!(!script.contains(word), "{word}");
        }
        // Only what this server has rendered itself is set as markup.
        assert_eq!(script.matches("innerHTML").count(), 2);
    }
}
