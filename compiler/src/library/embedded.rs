//! Specs embedded by the build script.

include!(concat!(env!("OUT_DIR"), "/embedded.rs"));
