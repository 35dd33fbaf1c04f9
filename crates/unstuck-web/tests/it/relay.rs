//! A connection between a browser and the server that can be cut.

use std::net::SocketAddr;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// A TCP relay; dropping it cuts the connection permanently.
pub(crate) struct Relay {
    pub(crate) address: SocketAddr,
    whole: watch::Sender<bool>,
    serving: JoinHandle<()>,
}

impl Relay {
    /// Starts a relay to a server.
    pub(crate) async fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (whole, watched) = watch::channel(true);
        let serving = tokio::spawn(async move {
            loop {
                let (near, _) = listener.accept().await.unwrap();
                tokio::spawn(carry(near, server, watched.clone()));
            }
        });
        Self {
            address,
            whole,
            serving,
        }
    }

    /// Cuts the connection: open streams break and new ones fail.
    pub(crate) fn cut(&self) {
        self.whole.send_replace(false);
    }

    /// Restores the connection.
    pub(crate) fn mend(&self) {
        self.whole.send_replace(true);
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn carry(mut near: TcpStream, server: SocketAddr, mut whole: watch::Receiver<bool>) {
    if !*whole.borrow() {
        return;
    }
    let mut far = TcpStream::connect(server).await.unwrap();
    tokio::select! {
        _ = copy_bidirectional(&mut near, &mut far) => {}
        _ = whole.wait_for(|whole| !whole) => {}
    }
}
