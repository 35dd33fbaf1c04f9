//! The stylesheet, the script and the logo, embedded in the program.
//!
//! Their names contain a hash of their content, so that browsers cache them forever and a new program serves new ones.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

/// Cache lifetime of files whose name changes with their content.
const IMMUTABLE_CACHE_CONTROL: HeaderValue =
    HeaderValue::from_static("public, max-age=31536000, immutable");

/// An embedded file.
struct StaticAsset {
    /// Name, with the hash of its content.
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

/// Returns the path of the stylesheet.
pub(crate) fn stylesheet_path() -> String {
    STYLESHEET.path()
}

/// Returns the path of the script.
pub(crate) fn script_path() -> String {
    SCRIPT.path()
}

/// Returns the path of the logo.
pub(crate) fn logo_path() -> String {
    LOGO.path()
}

/// Serves an embedded file.
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
    fn asset_name_changes_with_its_content() {
        let name = |content| StaticAsset::new("css", "text/css", content).name;
        assert_ne!(name("a"), name("b"));
        assert_eq!(stylesheet_path(), stylesheet_path());
    }

    #[test]
    fn assets_load_nothing_from_other_origins() {
        for content in [STYLESHEET.content, SCRIPT.content] {
            assert!(
                !content.contains("http://")
                    && !content.contains("https://")
                    && !content.contains("url(")
            );
        }
    }

    #[test]
    fn script_never_evaluates_text() {
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
        // Only markup rendered by this server is inserted as HTML.
        assert_eq!(script.matches("innerHTML").count(), 2);
    }
}
