//! The way from the address of the gateway to the API and the pages.

use std::fmt;
use std::sync::OnceLock;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use hyper::body::Incoming;
use hyper::{Request, Response};
use tower_service::Service;
use unstuck_gateway::{Answering, Elsewhere, Page, PageError, Peer};

/// Leads to the API and the pages once there are some: where they are reached is known only when the gateway listens.
#[derive(Default)]
pub(crate) struct Door(OnceLock<Router>);

impl Door {
    /// Opens it.
    pub(crate) fn open(&self, router: Router) {
        // It is opened once.
        let _ = self.0.set(router);
    }
}

impl fmt::Debug for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Door")
    }
}

impl Elsewhere for Door {
    fn answer(&self, request: Request<Incoming>, from: Peer) -> Answering {
        let router = self.0.get().cloned();
        Box::pin(async move {
            let Some(mut router) = router else {
                return not_yet();
            };
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(ConnectInfo(from.address));
            request.extensions_mut().insert(from.owner);
            let response = match router.call(request).await {
                Ok(response) => response,
                Err(never) => match never {},
            };
            response.map(page)
        })
    }
}

fn page(body: Body) -> Page {
    use http_body_util::BodyExt;
    Box::pin(body.map_err(PageError::from))
}

/// Who asks in the moment in which the server starts.
fn not_yet() -> Response<Page> {
    let mut response = Response::new(page(Body::from("unstuck starts; ask again\n")));
    *response.status_mut() = hyper::StatusCode::SERVICE_UNAVAILABLE;
    response
}
