//! A family whose layers keep the first positions and the last ones: see `specs/cache/sinks.toml`.

include!(concat!(env!("OUT_DIR"), "/families.rs"));
