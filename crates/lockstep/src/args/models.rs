//! The arguments of `lockstep models`.

use super::StoreArgs;
use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum ModelsCommand {
    /// List the models of a store
    List {
        #[command(flatten)]
        store: StoreArgs,
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
    /// Show a model with all its versions, or one version with where it comes from
    Show {
        /// NAME, NAME@VERSION or NAME@ALIAS
        model: String,
        #[command(flatten)]
        store: StoreArgs,
        /// Print a JSON object
        #[arg(long)]
        json: bool,
    },
    /// Make a version of what a run learned
    Register(RegisterArgs),
    /// Point an alias to a version: by default `champion`
    Promote(PromoteArgs),
    /// Point an alias to a version, or take an alias away
    Alias(AliasArgs),
    /// Remove a version of a model, or all of them
    Rm {
        /// NAME@VERSION, or NAME for all versions
        model: String,
        #[command(flatten)]
        store: StoreArgs,
        /// Do not ask
        #[arg(short, long)]
        yes: bool,
    },
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lockstep models register digits ab27
  lockstep models register digits ab27 --alias champion --note 'more data'
  lockstep predict --model digits@champion --data photos/ --out classes.csv

The files are copied: the version stays as it is, whatever becomes of the run. `run.register = \"digits\"` in a job file \
does the same when a run has succeeded.")]
pub(crate) struct RegisterArgs {
    /// The model's name; one that is new is made
    pub(crate) name: String,
    /// The run: its name, a part of it that no other has, its folder, or its job's name or `latest` for the newest
    pub(crate) run: String,
    /// Point this alias to the new version
    #[arg(long)]
    pub(crate) alias: Option<String>,
    /// Say something about the version
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    pub(crate) note: String,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PromoteArgs {
    /// NAME@VERSION, NAME@ALIAS, or NAME for the newest version
    pub(crate) model: String,
    /// The alias
    #[arg(long = "as", value_name = "ALIAS", default_value = "champion")]
    pub(crate) alias: String,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lockstep models alias digits@3 staging
  lockstep models alias digits staging --remove")]
pub(crate) struct AliasArgs {
    /// NAME@VERSION, NAME@ALIAS, or NAME for the newest version
    pub(crate) model: String,
    /// The alias
    pub(crate) alias: String,
    /// Take the alias away
    #[arg(long)]
    pub(crate) remove: bool,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}
