//! `lockstep serve`: jobs, runs and models for a team, over HTTP.

use super::runs::store::store_place;
use crate::args::ServeArgs;
use anyhow::{Context, bail};
use lockstep_fs::CacheDir;
use lockstep_server::{Settings, serve};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

pub(crate) fn run(args: &ServeArgs) -> anyhow::Result<ExitCode> {
    let settings = settings(args)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("cannot start threads")?;
    runtime.block_on(serve(settings, ready, stopped()))?;
    Ok(ExitCode::SUCCESS)
}

fn settings(args: &ServeArgs) -> anyhow::Result<Settings> {
    let store = store_place(&args.store)?;
    let folder = match (&args.folder, store.local()) {
        (Some(folder), _) => folder.clone(),
        (None, Some(store)) => store.join(".server"),
        (None, None) => bail!(
            "{store} is not on this machine, so --folder must name a folder here for the server's own files: jobs, \
             packages, tokens"
        ),
    };
    Ok(Settings {
        listen: SocketAddr::new(args.host, args.port),
        store,
        cache: CacheDir::locate()?,
        folder: absolute(folder)?,
        program: std::env::current_exe().context("cannot find this program's own file")?,
    })
}

fn absolute(path: PathBuf) -> anyhow::Result<PathBuf> {
    std::path::absolute(&path).with_context(|| format!("cannot find {}", path.display()))
}

fn ready(address: SocketAddr) {
    eprintln!("Lockstep serves http://{address}");
}

/// Ctrl-C and its likes. Jobs go on: they have processes of their own.
async fn stopped() {
    use tokio::signal::unix::{SignalKind, signal};
    let interrupt = signal(SignalKind::interrupt());
    let end = signal(SignalKind::terminate());
    let (Ok(mut interrupt), Ok(mut end)) = (interrupt, end) else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => (),
        _ = end.recv() => (),
    }
}
