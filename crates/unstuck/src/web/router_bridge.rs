//! Bridge from the gateway's listener to the API and the pages.

use std::fmt;
use std::sync::OnceLock;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use hyper::body::Incoming;
use hyper::{Request, Response};
use tower_service::Service;
use unstuck_gateway::{
    BodyError, ConnectionPeer, NonLlmHandlerBody, NonLlmRequestHandler, NonLlmResponseFuture,
};

/// Forwards to the API and the pages once they are set: their address is known only after the gateway listens.
#[derive(Default)]
pub(crate) struct RouterBridge(OnceLock<Router>);

impl RouterBridge {
    /// Sets the router.
    pub(crate) fn set_router(&self, router: Router) {
        // Set only once.
        let _ = self.0.set(router);
    }
}

impl fmt::Debug for RouterBridge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Door")
    }
}

impl NonLlmRequestHandler for RouterBridge {
    fn handle(&self, request: Request<Incoming>, from: ConnectionPeer) -> NonLlmResponseFuture {
        let router = self.0.get().cloned();
        Box::pin(async move {
            let Some(mut router) = router else {
                return starting_up();
            };
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(ConnectInfo(from.address));
            request.extensions_mut().insert(from.owner);
            let response = match router.call(request).await {
                Ok(response) => response,
                Err(never) => match never {},
            };
            response.map(into_page)
        })
    }
}

fn into_page(body: Body) -> NonLlmHandlerBody {
    use http_body_util::BodyExt;
    Box::pin(body.map_err(BodyError::from))
}

/// Response to requests that arrive while the server is starting.
fn starting_up() -> Response<NonLlmHandlerBody> {
    let mut response = Response::new(into_page(Body::from("starting up; retry shortly\n")));
    *response.status_mut() = hyper::StatusCode::SERVICE_UNAVAILABLE;
    response
}
