//! Storages against an oracle that keeps every key and value and masks by position.

mod both_ways;
mod broken;
mod composed;
mod conversion;
mod forged;
mod masks;
mod memory;
mod oracle;
mod persistence;
mod properties;
mod recurrent;
mod scenario;
#[rustfmt::skip]
mod sinks;
mod turbo;
mod ways;
