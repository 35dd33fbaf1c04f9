//! Measures outages: an upstream that loses most of its capacity for a minute, and one that fails occasionally.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Result;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use super::upstream_counts::fetch_counts;
use super::{GATEWAY_PATH, PLAIN_PATH};
use crate::load_client::{Client, ClientResult, ResponseMode, request};
use crate::measure::{Samples, now};
use crate::process_fixture::ProcessFixture;
use crate::table::{FigureTable, FigureTarget};

const CLIENTS: u64 = 500;
/// Lengths in seconds of the time before, during and after the brownout.
const LEAD_SECONDS: u64 = 10;
const BROWNOUT_SECONDS: u64 = 60;
const TAIL_SECONDS: u64 = 15;
/// Normal capacity in requests per second; the load is below it.
const CAPACITY: f64 = 500.0;
const OFFERED: f64 = 400.0;
const BROWNOUT_SHARE: f64 = 0.3;

const BROWNOUT: &str = "record = false\n[capacity]\nper_second = 500\nconcurrent = 100\nqueue = 200\nservice = { median = \"50ms\", p99 = \"200ms\" }\nrejection_cost = 0.1\n[[phase]]\nfrom = \"10s\"\nfor = \"60s\"\nshare = 0.3\n[[step]]\nanswer = {}\ntimes = \"always\"\n";

/// Faults that are transient and fail at once: timeouts for silence are a setting.
const FLAKY: &str = "record = false\n[mix]\nseed = 7\nfailures = 0.2\n\
    [[mix.fault]]\nweight = 2\nrate_limit = { retry_after = 1 }\n[[mix.fault]]\nweight = 2\noverloaded = {}\n\
    [[mix.fault]]\nweight = 2\nserver_error = {}\n[[mix.fault]]\nweight = 1\nstatus = { code = 502 }\n\
    [[mix.fault]]\nweight = 1\nstatus = { code = 504 }\n[[mix.fault]]\nweight = 1\nreset = { by = \"before_headers\" }\n\
    [[mix.fault]]\nweight = 1\nclose = {}\n[[mix.fault]]\nweight = 1\ncut = {}\n[[mix.fault]]\nweight = 1\nmalformed = {}\n";

pub(super) fn measure(
    runtime: &Runtime,
    stage: &ProcessFixture,
    table: &mut FigureTable,
) -> Result<()> {
    table.section("13. Brownout: 70% of the capacity lost for 60 s, 500 clients")?;
    let upstream = stage.start_upstream(BROWNOUT)?;
    let plain = runtime.block_on(run_brownout(
        upstream.address,
        upstream.address,
        PLAIN_PATH,
        ClientRetries::Thrice,
    ))?;
    plain.show("clients with 3 retries", FigureTarget::None, table)?;
    let upstream = stage.start_upstream(BROWNOUT)?;
    let gateway = stage.start_gateway(&[upstream.address], &[])?;
    let ours = runtime.block_on(run_brownout(
        gateway.address,
        upstream.address,
        GATEWAY_PATH,
        ClientRetries::Never,
    ))?;
    ours.show("through the gateway", FigureTarget::AtMost(1.2), table)?;
    let one = |value: f64| [value].into_iter().collect::<Samples>();
    table.row(
        "goodput ÷ remaining capacity, worst 5 s",
        &one(ours.worst),
        "×",
        FigureTarget::AtLeast(0.9),
    )?;
    table.row(
        "recovery time after the brownout",
        &one(ours.normal_after),
        "s",
        FigureTarget::AtMost(5.0),
    )?;
    table.section("14. One in five calls fails temporarily")?;
    let upstream = stage.start_upstream(FLAKY)?;
    let gateway = stage.start_gateway(&[upstream.address], &[])?;
    runtime.block_on(measure_flaky(gateway.address, table))
}

/// The retry behavior of clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ClientRetries {
    Never,
    Thrice,
}

/// The result of a brownout.
struct Brownout {
    /// Requests at the upstream per intended request.
    load: f64,
    /// Minimum throughput within five seconds of the brownout, as a share of the possible one.
    worst: f64,
    /// Seconds after its end until the throughput equals the load again.
    normal_after: f64,
}

impl Brownout {
    fn show(&self, who: &str, target: FigureTarget, table: &mut FigureTable) -> Result<()> {
        let what = format!("upstream requests ÷ intended, {who}");
        table.row(&what, &[self.load].into_iter().collect(), "×", target)
    }
}

async fn run_brownout(
    address: SocketAddr,
    upstream: SocketAddr,
    path: &'static str,
    retrying: ClientRetries,
) -> Result<Brownout> {
    let begin = now();
    let total = LEAD_SECONDS + BROWNOUT_SECONDS + TAIL_SECONDS;
    let good: Arc<Vec<AtomicU64>> = Arc::new((0..total + 60).map(|_| AtomicU64::new(0)).collect());
    let meant = Arc::new(AtomicU64::new(0));
    let mut clients = JoinSet::new();
    for number in 0..CLIENTS {
        let (good, meant) = (Arc::clone(&good), Arc::clone(&meant));
        clients.spawn(async move {
            let every = Duration::from_secs_f64(CLIENTS as f64 / OFFERED);
            let mut ticks = tokio::time::interval_at(
                tokio::time::Instant::now() + every.mul_f64(number as f64 / CLIENTS as f64),
                every,
            );
            ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
            let mut client = Client::new(address);
            let bytes = request(path, ResponseMode::Whole);
            while begin.elapsed() < Duration::from_secs(total) {
                ticks.tick().await;
                let second = begin.elapsed().as_secs();
                if (LEAD_SECONDS..LEAD_SECONDS + BROWNOUT_SECONDS).contains(&second) {
                    meant.fetch_add(1, Ordering::Relaxed);
                }
                if ask_with_retries(&mut client, &bytes, retrying).await {
                    let second = begin.elapsed().as_secs() as usize;
                    if let Some(count) = good.get(second) {
                        count.fetch_add(1, Ordering::Relaxed);
                    }
                }
            }
        });
    }
    let at_start = requests_at(upstream, LEAD_SECONDS, begin).await?;
    let at_end = requests_at(upstream, LEAD_SECONDS + BROWNOUT_SECONDS, begin).await?;
    while clients.join_next().await.is_some() {}
    let good: Vec<f64> = good
        .iter()
        .map(|count| count.load(Ordering::Relaxed) as f64)
        .collect();
    let meant = meant.load(Ordering::Relaxed) as f64;
    let (from, to) = (
        (LEAD_SECONDS + 2) as usize,
        (LEAD_SECONDS + BROWNOUT_SECONDS) as usize,
    );
    let windows = good[from..to]
        .windows(5)
        .map(|five| five.iter().sum::<f64>() / 5.0);
    let worst = windows.fold(f64::INFINITY, f64::min) / (CAPACITY * BROWNOUT_SHARE);
    let after = good[to..(total as usize)]
        .iter()
        .position(|count| *count >= 0.95 * OFFERED);
    Ok(Brownout {
        load: (at_end - at_start) / meant,
        worst,
        normal_after: after.map_or(f64::INFINITY, |seconds| seconds as f64),
    })
}

async fn ask_with_retries(client: &mut Client, bytes: &[u8], retrying: ClientRetries) -> bool {
    let tries = match retrying {
        ClientRetries::Never => 1,
        ClientRetries::Thrice => 4,
    };
    for number in 0..tries {
        if number > 0 {
            tokio::time::sleep(Duration::from_millis(500 << number)).await;
        }
        if client.ask(bytes).await.is_ok_and(|got| got.status == 200) {
            return true;
        }
    }
    false
}

/// Returns the number of requests that the upstream received in a second.
async fn requests_at(upstream: SocketAddr, second: u64, begin: std::time::Instant) -> Result<f64> {
    let left = Duration::from_secs(second).saturating_sub(begin.elapsed());
    tokio::time::sleep(left).await;
    Ok(fetch_counts(upstream).await?.requests as f64)
}

/// Measures calls of which one in five fails temporarily.
async fn measure_flaky(address: SocketAddr, table: &mut FigureTable) -> Result<()> {
    const CALLS: u64 = 2_000;
    const AT_ONCE: u64 = 50;
    let mut clients = JoinSet::new();
    for _ in 0..AT_ONCE {
        clients.spawn(async move {
            let mut client = Client::new(address);
            let bytes = request(GATEWAY_PATH, ResponseMode::Whole);
            let mut got: Vec<Option<ClientResult>> = Vec::new();
            for _ in 0..CALLS / AT_ONCE {
                got.push(client.ask(&bytes).await.ok());
            }
            got
        });
    }
    let mut recovered = Vec::new();
    let mut good = 0_u64;
    while let Some(done) = clients.join_next().await {
        for got in done?.into_iter().flatten().filter(|got| got.status == 200) {
            good += 1;
            if got.attempts > 1 {
                recovered.push(got.total_seconds);
            }
        }
    }
    recovered.sort_by(f64::total_cmp);
    let one = |value: f64| [value].into_iter().collect::<Samples>();
    let at = |share: f64| {
        recovered
            .get((recovered.len() as f64 * share) as usize)
            .copied()
            .unwrap_or(f64::NAN)
    };
    table.row(
        "calls that succeeded",
        &one(good as f64 * 100.0 / CALLS as f64),
        "%",
        FigureTarget::AtLeast(99.0),
    )?;
    table.row(
        "time to recovery, median",
        &one(at(0.5)),
        "s",
        FigureTarget::AtMost(2.0),
    )?;
    table.row(
        "time to recovery, p99",
        &one(at(0.99)),
        "s",
        FigureTarget::AtMost(30.0),
    )
}
