//! Measures the gateway against a plain forwarder and against nginx, in front of the same upstream.

mod forwarder;
mod outage;
mod upstream_counts;

pub(crate) use forwarder::run_forwarder;

use std::time::Duration;

use anyhow::Result;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use crate::load_client::{Client, ResponseMode, latencies_at_rate, max_rate, request};
use crate::measure::{ROUNDS, Samples};
use crate::process_fixture::{ListeningProcess, ProcessFixture};
use crate::table::{FigureTable, FigureTarget};

const CONNECTIONS: usize = 64;
const BURST: Duration = Duration::from_secs(2);
const STREAMS: usize = 1_000;

/// Script of an upstream that answers at once: small answers, or streams of 50 chunks.
const FAST_SCRIPT: &str = "record = false\n[pace]\nchunks = 50\nchunk_bytes = 40\n[[step]]\nwhen = { stream = true }\nanswer = {}\ntimes = \"always\"\n[[step]]\nanswer = {}\ntimes = \"always\"\npace = {}\n";
/// Script of an upstream whose streams take ten seconds.
const SLOW_SCRIPT: &str = "record = false\n[pace]\nchunks = 100\nchunk_bytes = 40\nbetween = \"100ms\"\n[[step]]\nanswer = {}\ntimes = \"always\"\n";

pub(crate) fn measure(table: &mut FigureTable) -> Result<()> {
    table.section("12. Gateway without failures, everything recorded")?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let stage = ProcessFixture::new()?;
    let upstream = stage.start_upstream(FAST_SCRIPT)?;
    let gateway = stage.start_gateway(&[upstream.address], &[])?;
    let bare = stage.start_forwarder(upstream.address)?;
    let nginx = stage.start_nginx(upstream.address)?;
    table.row(
        "memory when idle",
        &[gateway.memory()].into_iter().collect(),
        "MB",
        FigureTarget::AtMost(30.0),
    )?;
    let sides = Contestants {
        upstream: &upstream,
        gateway: &gateway,
        bare: &bare,
        nginx: nginx.as_ref(),
    };
    sides.measure_rates(&runtime, table)?;
    sides.measure_latency(&runtime, table)?;
    sides.measure_streams(&runtime, table)?;
    measure_stream_memory(&runtime, &stage, table)?;
    outage::measure(&runtime, &stage, table)
}

/// The servers measured in each round.
struct Contestants<'a> {
    upstream: &'a ListeningProcess,
    gateway: &'a ListeningProcess,
    bare: &'a ListeningProcess,
    nginx: Option<&'a ListeningProcess>,
}

/// Path on the forwarders that the gateway has under its prefix.
const PLAIN_PATH: &str = "/v1/chat/completions";
const GATEWAY_PATH: &str = "/openai/v1/chat/completions";

impl Contestants<'_> {
    fn measure_rates(&self, runtime: &Runtime, table: &mut FigureTable) -> Result<()> {
        let (mut ours, mut bare) = (Samples::default(), Samples::default());
        for _ in 0..ROUNDS {
            let rate = |side: &ListeningProcess, path| {
                runtime.block_on(max_rate(
                    side.address,
                    CONNECTIONS,
                    &request(path, ResponseMode::Whole),
                    BURST,
                ))
            };
            bare.push(rate(self.bare, PLAIN_PATH)?);
            ours.push(rate(self.gateway, GATEWAY_PATH)?);
        }
        table.row(
            "bare forwarder, 64 connections",
            &bare,
            "requests/s",
            FigureTarget::None,
        )?;
        table.row("gateway", &ours, "requests/s", FigureTarget::None)?;
        table.row(
            "gateway ÷ bare forwarder",
            &ours.ratio_to(&bare),
            "×",
            FigureTarget::AtLeast(0.7),
        )
    }

    fn measure_latency(&self, runtime: &Runtime, table: &mut FigureTable) -> Result<()> {
        let (mut direct, mut bare, mut ours, mut cpu) = (
            Samples::default(),
            Samples::default(),
            Samples::default(),
            Samples::default(),
        );
        for _ in 0..ROUNDS {
            let p50 = |side: &ListeningProcess, path| -> Result<f64> {
                let times = runtime.block_on(latencies_at_rate(
                    side.address,
                    &request(path, ResponseMode::Whole),
                    20,
                    60,
                ))?;
                Ok(times.into_iter().collect::<Samples>().median() * 1e3)
            };
            direct.push(p50(self.upstream, PLAIN_PATH)?);
            bare.push(p50(self.bare, PLAIN_PATH)?);
            let before = self.gateway.cpu()?;
            ours.push(p50(self.gateway, GATEWAY_PATH)?);
            cpu.push((self.gateway.cpu()? - before) * 1e3 / 60.0);
        }
        let (added, bare) = (ours.minus(&direct), bare.minus(&direct));
        table.row(
            "bare forwarder adds at 20 requests/s, p50",
            &bare,
            "ms",
            FigureTarget::None,
        )?;
        table.row("gateway adds", &added, "ms", FigureTarget::None)?;
        table.row(
            "gateway ÷ bare forwarder",
            &added.ratio_to(&bare),
            "×",
            FigureTarget::AtMost(1.5),
        )?;
        table.row(
            "CPU time per request",
            &cpu,
            "ms",
            FigureTarget::AtMost(0.5),
        )
    }

    fn measure_streams(&self, runtime: &Runtime, table: &mut FigureTable) -> Result<()> {
        let rate = |side: &ListeningProcess, path| {
            runtime.block_on(max_rate(
                side.address,
                CONNECTIONS,
                &request(path, ResponseMode::Stream),
                BURST,
            ))
        };
        let (mut ours, mut bare, mut nginx) =
            (Samples::default(), Samples::default(), Samples::default());
        for _ in 0..ROUNDS {
            bare.push(rate(self.bare, PLAIN_PATH)?);
            ours.push(rate(self.gateway, GATEWAY_PATH)?);
            if let Some(side) = self.nginx {
                nginx.push(rate(side, PLAIN_PATH)?);
            }
        }
        table.row(
            "bare forwarder, streams of 50 chunks",
            &bare,
            "streams/s",
            FigureTarget::None,
        )?;
        table.row("gateway", &ours, "streams/s", FigureTarget::None)?;
        match self.nginx {
            Some(_) => {
                table.row("nginx", &nginx, "streams/s", FigureTarget::None)?;
                table.row(
                    "gateway ÷ nginx",
                    &ours.ratio_to(&nginx),
                    "×",
                    FigureTarget::AtLeast(0.7),
                )
            }
            None => table.note("nginx is not installed: apt-get install nginx-light"),
        }
    }
}

/// Measures the memory of a gateway with a thousand open streams.
fn measure_stream_memory(
    runtime: &Runtime,
    stage: &ProcessFixture,
    table: &mut FigureTable,
) -> Result<()> {
    let upstream = stage.start_upstream(SLOW_SCRIPT)?;
    let gateway = stage.start_gateway(&[upstream.address], &[])?;
    let address = gateway.address;
    let memory = runtime.block_on(async {
        let mut clients = JoinSet::new();
        for _ in 0..STREAMS {
            clients.spawn(async move {
                let mut client = Client::new(address);
                client
                    .ask(&request(GATEWAY_PATH, ResponseMode::Stream))
                    .await
            });
        }
        upstream_counts::wait_for_in_flight(upstream.address, STREAMS as u64).await?;
        let memory = gateway.memory();
        let mut whole = 0;
        while let Some(done) = clients.join_next().await {
            whole += usize::from(done?.is_ok_and(|got| got.status == 200));
        }
        anyhow::ensure!(whole == STREAMS, "only {whole} streams completed");
        Ok(memory)
    })?;
    table.row(
        "memory with 1000 open streams",
        &[memory].into_iter().collect(),
        "MB",
        FigureTarget::AtMost(200.0),
    )
}
