//! Delivery over HTTP: one request, no redirects, and a bounded read of the response.

use std::error::Error;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue, RETRY_AFTER, USER_AGENT};
use hyper::{Request, Response, StatusCode, Uri};
use hyper_rustls::HttpsConnectorBuilder;
use hyper_rustls::builderstates::WantsSchemes;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use unstuck_core::Timestamp;

use super::address_filter::{FilteringConnector, PrivateAddressError};
use super::{DeliveryRetryAdvice, DeliveryTargetReply, NotificationSendError};
use crate::format::render;
use crate::message::NotificationMessage;
use crate::sanitize_text::sanitize;
use crate::signature::sign;
use crate::target::WebhookTarget;

/// The maximum number of response bytes to read.
const MAX_READ: usize = 4096;
/// The maximum number of response bytes to show.
const MAX_SHOWN: usize = 200;

type EnvironmentFn = dyn Fn(&str) -> Option<String> + Send + Sync;

/// Builds the request; errors never contain secrets.
pub(super) fn request(
    address: &WebhookTarget,
    message: &NotificationMessage,
    environment: &EnvironmentFn,
    now: Timestamp,
) -> Result<Request<Full<Bytes>>, NotificationSendError> {
    let named = |name: &str| {
        let missing = || NotificationSendError::temporary(format!("{name} is not set"));
        environment(name).ok_or_else(missing)
    };
    let url = match (&address.url, &address.url_env) {
        (Some(url), _) => url.clone(),
        (None, Some(name)) => named(name)?,
        (None, None) => return Err(NotificationSendError::permanent("no URL configured")),
    };
    let uri =
        parse_url(url.trim()).ok_or_else(|| NotificationSendError::permanent("invalid URL"))?;
    let rendered = render(&address.format, message);
    let rendered = rendered.map_err(|fault| NotificationSendError::permanent(fault.to_string()))?;
    let seconds = now.millis() / 1000;
    let mut request = Request::post(uri)
        .header(CONTENT_TYPE, &rendered.content_type)
        .header(USER_AGENT, concat!("unstuck/", env!("CARGO_PKG_VERSION")))
        .header("webhook-id", &message.id)
        .header("webhook-timestamp", seconds);
    for (name, value) in &rendered.headers {
        request = request.header(*name, value);
    }
    if let Some(name) = &address.secret_env {
        let signed = sign(
            &named(name)?,
            &message.id,
            seconds,
            rendered.body.as_bytes(),
        );
        let signed =
            signed.map_err(|why| NotificationSendError::temporary(format!("{name} {why}")))?;
        request = request.header("webhook-signature", signed);
    }
    if let Some(name) = &address.token_env {
        let token = HeaderValue::from_str(&format!("Bearer {}", named(name)?.trim()));
        let mut token = token
            .map_err(|_| NotificationSendError::temporary(format!("invalid token in {name}")))?;
        token.set_sensitive(true);
        request = request.header(AUTHORIZATION, token);
    }
    let request = request.body(Full::from(rendered.body));
    request
        .map_err(|_| NotificationSendError::permanent("cannot send the message: malformed header"))
}

fn parse_url(url: &str) -> Option<Uri> {
    let uri: Uri = url.parse().ok()?;
    let is_known = matches!(uri.scheme_str(), Some("http" | "https"));
    (is_known && uri.host().is_some_and(|host| !host.is_empty())).then_some(uri)
}

/// Sends the request and waits for the response.
pub(super) async fn post(
    request: Request<Full<Bytes>>,
    address: &WebhookTarget,
) -> Result<DeliveryTargetReply, NotificationSendError> {
    let allow_private = address.allow_private;
    let connector = tls_connector(request.uri())
        .https_or_http()
        .enable_http1()
        .wrap_connector(FilteringConnector { allow_private });
    let client = Client::builder(TokioExecutor::new())
        .pool_max_idle_per_host(0)
        .build::<_, Full<Bytes>>(connector);
    let asked = async {
        let response = client
            .request(request)
            .await
            .map_err(|error| transport_error(&error))?;
        Ok(read_response(response).await)
    };
    let timeout = Duration::from_millis(address.timeout_ms);
    match tokio::time::timeout(timeout, asked).await {
        Err(_) => {
            let seconds = timeout.as_secs_f32();
            Err(NotificationSendError::temporary(format!(
                "no response within {seconds} s"
            )))
        }
        Ok(answered) => answered.and_then(to_result),
    }
}

/// Returns the TLS connector with the system's root certificates, or the built-in ones if there are none.
fn tls_connector(uri: &Uri) -> HttpsConnectorBuilder<WantsSchemes> {
    let usual = || HttpsConnectorBuilder::new().with_webpki_roots();
    match uri.scheme_str() {
        Some("https") => {
            let own = HttpsConnectorBuilder::new().with_native_roots();
            own.unwrap_or_else(|_| usual())
        }
        // Plain HTTP needs no certificates: read none.
        _ => usual(),
    }
}

/// The response of the receiver.
struct HttpResponse {
    status: StatusCode,
    retry_after: Option<Duration>,
    excerpt: String,
}

async fn read_response<B>(response: Response<B>) -> HttpResponse
where
    B: hyper::body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let status = response.status();
    let after = response.headers().get(RETRY_AFTER);
    let after = after.and_then(|value| value.to_str().ok()?.trim().parse().ok());
    let body = Limited::new(response.into_body(), MAX_READ).collect().await;
    let said = body.map(|body| String::from_utf8_lossy(&body.to_bytes()).into_owned());
    HttpResponse {
        status,
        retry_after: after.map(Duration::from_secs),
        excerpt: sanitize(&said.unwrap_or_default(), MAX_SHOWN),
    }
}

fn to_result(came: HttpResponse) -> Result<DeliveryTargetReply, NotificationSendError> {
    let HttpResponse {
        status,
        retry_after,
        excerpt: said,
    } = came;
    let passes = [
        StatusCode::REQUEST_TIMEOUT,
        StatusCode::TOO_EARLY,
        StatusCode::TOO_MANY_REQUESTS,
    ];
    if status.is_success() {
        return Ok(DeliveryTargetReply {
            status: status.to_string(),
            excerpt: said,
        });
    }
    let why = if status.is_redirection() {
        format!("server returned {status}; redirects are not followed, configure the new URL")
    } else {
        format!("server returned {status}")
    };
    let again = if status.is_client_error() && !passes.contains(&status) {
        DeliveryRetryAdvice::Never
    } else {
        DeliveryRetryAdvice::After(retry_after)
    };
    Err(NotificationSendError {
        reason: why,
        excerpt: said,
        retryable: again,
    })
}

/// Returns the error for a request without a response.
fn transport_error(error: &(dyn Error + 'static)) -> NotificationSendError {
    let mut chain = vec![error];
    while let Some(source) = chain.last().and_then(|error| inner_source(*error)) {
        chain.push(source);
    }
    if let Some(refused) = chain
        .iter()
        .find_map(|error| error.downcast_ref::<PrivateAddressError>())
    {
        let hint = "to allow it, set `allow_private = true` in [webhooks] of your own configuration, which agents cannot write";
        return NotificationSendError::permanent(format!("{refused}; {hint}"));
    }
    // The outer errors only say that something failed.
    let told: Vec<_> = chain.iter().skip(1).map(ToString::to_string).collect();
    let mut told = if told.is_empty() {
        vec![error.to_string()]
    } else {
        told
    };
    told.dedup();
    NotificationSendError::temporary(sanitize(&told.join(": "), MAX_SHOWN))
}

/// Returns the cause of an error; I/O errors hide the error they wrap.
fn inner_source<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e (dyn Error + 'static)> {
    let io = error.downcast_ref::<std::io::Error>();
    match io.and_then(std::io::Error::get_ref) {
        Some(inner) => Some(inner),
        None => error.source(),
    }
}
