//! What the tests of the whole share: parity cases, how results are compared, and the table they make.

pub mod case;
pub mod compare;
pub mod engine;
pub mod graphs;
pub mod lines;
pub mod oracles;
pub mod report;
