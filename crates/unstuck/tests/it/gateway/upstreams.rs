//! Connections of `unstuck serve` to its upstreams: certificates and proxies, configured by environment variables.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use unstuck_faults::FaultServer;

use super::{Serving, api, asked};
use crate::Place;
use crate::output_snapshot::assert_output;

/// A host name known only to the proxy, and its certificate.
const ELSEWHERE: &str = "[tls]\ncertificate = \"wrong_host\"\n[[step]]\nanswer = { text = \"Done.\" }\ntimes = \"always\"\n";
const PLAIN: &str = "[[step]]\nanswer = { text = \"Done.\" }\ntimes = \"always\"\n";

/// The first line sent to a proxy, and its credentials.
type Noted = Mutex<Vec<(String, Option<String>)>>;

/// A proxy that always connects to one server, and keeps the first line and the credentials it received.
struct Proxy {
    address: SocketAddr,
    seen: Arc<Noted>,
}

impl Proxy {
    fn before(server: &FaultServer) -> Self {
        let target = server.address();
        Self::start(move |client, seen| lead(client, target, seen))
    }

    fn start(serve: impl Fn(TcpStream, &Noted) -> Option<()> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::default());
        let kept = Arc::clone(&seen);
        let serve = Arc::new(serve);
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let (seen, serve) = (Arc::clone(&kept), Arc::clone(&serve));
                std::thread::spawn(move || serve(client, &seen));
            }
        });
        Self { address, seen }
    }

    fn seen(&self) -> Vec<(String, Option<String>)> {
        self.seen.lock().unwrap().clone()
    }
}

fn lead(client: TcpStream, target: SocketAddr, seen: &Noted) -> Option<()> {
    let mut reader = BufReader::new(client.try_clone().ok()?);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        match line.trim_end() {
            "" => break,
            text => lines.push(text.to_owned()),
        }
    }
    let first = lines.first()?.clone();
    let word = lines.iter().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("proxy-authorization")
            .then(|| value.to_owned())
    });
    seen.lock().unwrap().push((first.clone(), word));
    let mut upstream = TcpStream::connect(target).ok()?;
    let mut client = client;
    if first.starts_with("CONNECT ") {
        client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").ok()?
    } else {
        // The same request with only the path of the URL.
        let path = first.split(' ').nth(1)?.splitn(4, '/').nth(3)?;
        let mut head = format!("POST /{path} HTTP/1.1\r\n");
        for line in &lines[1..] {
            head.push_str(line);
            head.push_str("\r\n");
        }
        head.push_str("\r\n");
        upstream.write_all(head.as_bytes()).ok()?;
    }
    upstream.write_all(reader.buffer()).ok()?;
    both_ways(client, upstream)
}

fn both_ways(mut client: TcpStream, mut upstream: TcpStream) -> Option<()> {
    let (mut from, mut to) = (client.try_clone().ok()?, upstream.try_clone().ok()?);
    std::thread::spawn(move || std::io::copy(&mut from, &mut to));
    std::io::copy(&mut upstream, &mut client).ok()?;
    Some(())
}

/// Returns the URL of an API under its host name.
fn under(scheme: &str, api: &FaultServer) -> String {
    format!(
        "anthropic={scheme}://elsewhere.example:{}",
        api.address().port()
    )
}

fn certificate(place: &Place, api: &FaultServer) -> String {
    let path = place.write("company.pem", api.certificate().unwrap());
    path.display().to_string()
}

/// Sends one request, and returns the result and the output of the gateway.
fn once(place: &Place, upstream: &str, env: &[(&str, &str)]) -> (crate::Ended, String) {
    let args = ["--retries", "0", "--upstream", upstream];
    let serving = Serving::start_with(place, &args, env);
    let answer = serving.ask(place);
    (answer, serving.stop().2)
}

#[track_caller]
fn done((answer, said): &(crate::Ended, String)) {
    assert!(answer.stdout.contains("Done."), "{}{said}", answer.stdout);
}

/// Behind a company's proxy: a tunnel to the API, whose certificate the company has signed.
#[test]
fn https_uses_a_tunnel_and_the_configured_certificates() {
    let (place, api) = (Place::new(), api(ELSEWHERE));
    let proxy = Proxy::before(&api);
    let url = format!("http://me:secret%21@{}", proxy.address);
    let pem = certificate(&place, &api);
    for name in ["SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"] {
        done(&once(
            &place,
            &under("https", &api),
            &[("HTTPS_PROXY", &url), (name, &pem)],
        ));
    }
    let line = format!(
        "CONNECT elsewhere.example:{} HTTP/1.1",
        api.address().port()
    );
    // The name and the password, as they are sent.
    let word = Some("Basic bWU6c2VjcmV0IQ==".to_owned());
    assert_eq!(proxy.seen(), [(line.clone(), word.clone()), (line, word)]);
    // A request over HTTP/2 has no host header: it was negotiated in the handshake.
    assert_eq!(api.requests()[0].header("host"), None);
}

#[test]
fn http_goes_to_the_proxy_with_its_absolute_url() {
    let (place, api) = (Place::new(), api(PLAIN));
    let proxy = Proxy::before(&api);
    let url = format!("http://me:pw@{}", proxy.address);
    done(&once(&place, &under("http", &api), &[("http_proxy", &url)]));
    let (line, word) = proxy.seen().remove(0);
    let port = api.address().port();
    assert_eq!(
        line,
        format!("POST http://elsewhere.example:{port}/v1/messages HTTP/1.1")
    );
    assert_eq!(word.as_deref(), Some("Basic bWU6cHc="));
}

#[test]
fn socks_proxy_is_supported() {
    let (place, api) = (Place::new(), api(ELSEWHERE));
    let target = api.address();
    let proxy = Proxy::start(move |mut client, seen| {
        let mut greeting = [0; 2];
        client.read_exact(&mut greeting).ok()?;
        client
            .read_exact(&mut vec![0; usize::from(greeting[1])])
            .ok()?;
        client.write_all(&[5, 0]).ok()?;
        let mut wanted = [0; 5];
        client.read_exact(&mut wanted).ok()?;
        let mut name = vec![0; usize::from(wanted[4]) + 2];
        client.read_exact(&mut name).ok()?;
        name.truncate(usize::from(wanted[4]));
        let name = String::from_utf8(name).ok()?;
        seen.lock().unwrap().push((name, None));
        client.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).ok()?;
        both_ways(client, TcpStream::connect(target).ok()?)
    });
    let url = format!("socks5h://{}", proxy.address);
    let pem = certificate(&place, &api);
    let env = [("ALL_PROXY", url.as_str()), ("SSL_CERT_FILE", &pem)];
    done(&once(&place, &under("https", &api), &env));
    assert_eq!(proxy.seen()[0].0, "elsewhere.example");
}

/// This machine is never reached through a proxy, nor are the hosts in `NO_PROXY`.
#[test]
fn local_and_excluded_hosts_are_reached_directly() {
    let (place, api) = (Place::new(), api(PLAIN));
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap();
    let proxy = format!("http://{}", nobody.local_addr().unwrap());
    drop(nobody);
    let here = format!("anthropic={}", api.url());
    done(&once(&place, &here, &[("HTTP_PROXY", &proxy)]));
    // An unknown name is resolved here, and not sent to the proxy.
    let env = [
        ("HTTP_PROXY", proxy.as_str()),
        ("NO_PROXY", "other.example, .example"),
    ];
    let (answer, _) = once(&place, &under("http", &api), &env);
    assert_ne!(answer.code, 0);
    assert!(!answer.stdout.contains("the proxy"), "{}", answer.stdout);
    let (answer, _) = once(&place, &under("http", &api), &env[..1]);
    assert!(answer.stdout.contains("the proxy"), "{}", answer.stdout);
}

/// A rejection by a proxy is reported with the next step.
#[test]
fn proxy_authentication_failure_is_reported() {
    let (place, api) = (Place::new(), api(ELSEWHERE));
    let proxy = Proxy::start(|mut client, _| {
        let mut head = [0; 1024];
        let _ = client.read(&mut head).ok()?;
        client
            .write_all(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
            .ok()
    });
    let url = format!("http://{}", proxy.address);
    let (answer, _) = once(&place, &under("https", &api), &[("HTTPS_PROXY", &url)]);
    for part in ["proxy authorization required", "NAME:PASSWORD@HOST"] {
        assert!(answer.stdout.contains(part), "{part} in {}", answer.stdout);
    }
    assert_eq!(asked(&api), 0);
}

#[test]
fn invalid_variables_are_reported_before_serving() {
    let place = Place::new();
    let empty = place.write("empty.pem", "nothing\n").display().to_string();
    let mut told = String::new();
    for (name, value) in [
        ("SSL_CERT_FILE", "/no/such.pem"),
        ("SSL_CERT_FILE", &empty),
        ("NODE_EXTRA_CA_CERTS", "/no/such.pem"),
        ("HTTPS_PROXY", "https://me:hunter2@proxy:3128"),
        ("ALL_PROXY", "ftp://proxy"),
    ] {
        let mut command = place.command(&["serve", "--listen", "127.0.0.1:0"]);
        let ended = super::ended(command.env(name, value));
        assert_eq!(ended.code, 2, "{name}={value}: {}", ended.stderr);
        told += &ended.stderr;
    }
    assert!(!told.contains("hunter2"), "{told}");
    assert_output!(place, told);
}
