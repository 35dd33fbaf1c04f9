//! The gateway against a forwarder that only forwards, and against nginx, in front of the same upstream.

mod counts;
mod forwarder;
mod storm;

pub(crate) use forwarder::bare;

use std::time::Duration;

use anyhow::Result;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use crate::load::{Client, Wanted, most, paced, request};
use crate::measure::{ROUNDS, Samples};
use crate::processes::{Listening, Stage};
use crate::table::{Table, Target};

const CONNECTIONS: usize = 64;
const BURST: Duration = Duration::from_secs(2);
const STREAMS: usize = 1_000;

/// An upstream that answers at once: small answers, or streams of 50 pieces.
const FAST: &str = "record = false\n[pace]\nchunks = 50\nchunk_bytes = 40\n[[step]]\nwhen = { stream = true }\nanswer = {}\ntimes = \"always\"\n[[step]]\nanswer = {}\ntimes = \"always\"\npace = {}\n";
/// One whose streams take ten seconds.
const SLOW: &str = "record = false\n[pace]\nchunks = 100\nchunk_bytes = 40\nbetween = \"100ms\"\n[[step]]\nanswer = {}\ntimes = \"always\"\n";

pub(crate) fn measure(table: &mut Table) -> Result<()> {
    table.section("12. The gateway, no failures, everything recorded")?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let stage = Stage::new()?;
    let upstream = stage.upstream(FAST)?;
    let gateway = stage.gateway(&[upstream.address], &[])?;
    let bare = stage.forwarder(upstream.address)?;
    let nginx = stage.nginx(upstream.address)?;
    table.row(
        "memory, idle",
        &[gateway.memory()].into_iter().collect(),
        "MB",
        Target::AtMost(30.0),
    )?;
    let sides = Sides {
        upstream: &upstream,
        gateway: &gateway,
        bare: &bare,
        nginx: nginx.as_ref(),
    };
    sides.rates(&runtime, table)?;
    sides.latency(&runtime, table)?;
    sides.streams(&runtime, table)?;
    many_streams(&runtime, &stage, table)?;
    storm::measure(&runtime, &stage, table)
}

/// Who is asked in each round.
struct Sides<'a> {
    upstream: &'a Listening,
    gateway: &'a Listening,
    bare: &'a Listening,
    nginx: Option<&'a Listening>,
}

/// Where the forwarders get what the gateway has under its prefix.
const PLAIN: &str = "/v1/chat/completions";
const PREFIXED: &str = "/openai/v1/chat/completions";

impl Sides<'_> {
    fn rates(&self, runtime: &Runtime, table: &mut Table) -> Result<()> {
        let (mut ours, mut bare) = (Samples::default(), Samples::default());
        for _ in 0..ROUNDS {
            let rate = |side: &Listening, path| {
                runtime.block_on(most(
                    side.address,
                    CONNECTIONS,
                    &request(path, Wanted::Whole),
                    BURST,
                ))
            };
            bare.push(rate(self.bare, PLAIN)?);
            ours.push(rate(self.gateway, PREFIXED)?);
        }
        table.row(
            "bare forwarder, 64 connections",
            &bare,
            "requests/s",
            Target::Open,
        )?;
        table.row("gateway", &ours, "requests/s", Target::Open)?;
        table.row(
            "gateway ÷ bare forwarder",
            &ours.over(&bare),
            "×",
            Target::AtLeast(0.7),
        )
    }

    fn latency(&self, runtime: &Runtime, table: &mut Table) -> Result<()> {
        let (mut direct, mut bare, mut ours, mut cpu) = (
            Samples::default(),
            Samples::default(),
            Samples::default(),
            Samples::default(),
        );
        for _ in 0..ROUNDS {
            let p50 = |side: &Listening, path| -> Result<f64> {
                let times =
                    runtime.block_on(paced(side.address, &request(path, Wanted::Whole), 20, 60))?;
                Ok(times.into_iter().collect::<Samples>().median() * 1e3)
            };
            direct.push(p50(self.upstream, PLAIN)?);
            bare.push(p50(self.bare, PLAIN)?);
            let before = self.gateway.cpu()?;
            ours.push(p50(self.gateway, PREFIXED)?);
            cpu.push((self.gateway.cpu()? - before) * 1e3 / 60.0);
        }
        let (added, bare) = (ours.minus(&direct), bare.minus(&direct));
        table.row(
            "bare forwarder adds at 20 requests/s, p50",
            &bare,
            "ms",
            Target::Open,
        )?;
        table.row("gateway adds", &added, "ms", Target::Open)?;
        table.row(
            "gateway ÷ bare forwarder",
            &added.over(&bare),
            "×",
            Target::AtMost(1.5),
        )?;
        table.row("processor time a request", &cpu, "ms", Target::AtMost(0.5))
    }

    fn streams(&self, runtime: &Runtime, table: &mut Table) -> Result<()> {
        let rate = |side: &Listening, path| {
            runtime.block_on(most(
                side.address,
                CONNECTIONS,
                &request(path, Wanted::Stream),
                BURST,
            ))
        };
        let (mut ours, mut bare, mut nginx) =
            (Samples::default(), Samples::default(), Samples::default());
        for _ in 0..ROUNDS {
            bare.push(rate(self.bare, PLAIN)?);
            ours.push(rate(self.gateway, PREFIXED)?);
            if let Some(side) = self.nginx {
                nginx.push(rate(side, PLAIN)?);
            }
        }
        table.row(
            "bare forwarder, streams of 50 pieces",
            &bare,
            "streams/s",
            Target::Open,
        )?;
        table.row("gateway", &ours, "streams/s", Target::Open)?;
        match self.nginx {
            Some(_) => {
                table.row("nginx", &nginx, "streams/s", Target::Open)?;
                table.row(
                    "gateway ÷ nginx",
                    &ours.over(&nginx),
                    "×",
                    Target::AtLeast(0.7),
                )
            }
            None => table.note("nginx is not installed: apt-get install nginx-light"),
        }
    }
}

/// The memory of a gateway with a thousand streams under way.
fn many_streams(runtime: &Runtime, stage: &Stage, table: &mut Table) -> Result<()> {
    let upstream = stage.upstream(SLOW)?;
    let gateway = stage.gateway(&[upstream.address], &[])?;
    let address = gateway.address;
    let memory = runtime.block_on(async {
        let mut clients = JoinSet::new();
        for _ in 0..STREAMS {
            clients.spawn(async move {
                let mut client = Client::new(address);
                client.ask(&request(PREFIXED, Wanted::Stream)).await
            });
        }
        counts::under_way(upstream.address, STREAMS as u64).await?;
        let memory = gateway.memory();
        let mut whole = 0;
        while let Some(done) = clients.join_next().await {
            whole += usize::from(done?.is_ok_and(|got| got.status == 200));
        }
        anyhow::ensure!(whole == STREAMS, "only {whole} streams came to their end");
        Ok(memory)
    })?;
    table.row(
        "memory with 1000 streams under way",
        &[memory].into_iter().collect(),
        "MB",
        Target::AtMost(200.0),
    )
}
