//! Storages against an oracle that keeps every key and value and masks by position.

mod oracle;
mod persistence;
mod properties;
mod scenario;
mod turbo;
