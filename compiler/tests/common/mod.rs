//! What several tests need.

#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "each test takes a part of it"
)]

use std::time::Instant;

/// Measures the time that this thread computes, since others share the machine; the time that
/// passes where the system does not tell.
pub struct Clock {
    busy: Option<f64>,
    started: Instant,
}

impl Clock {
    /// Starts now.
    pub fn start() -> Self {
        Self { busy: busy(), started: Instant::now() }
    }

    /// Seconds since the start.
    pub fn seconds(&self) -> f64 {
        match (self.busy, busy()) {
            (Some(before), Some(now)) => now - before,
            _ => self.started.elapsed().as_secs_f64(),
        }
    }

    /// No input may take a second.
    pub fn check(&self, input: &str) {
        let seconds = self.seconds();
        let shown: String = input.chars().take(200).collect();
        assert!(seconds < 1.0, "{} bytes took {seconds:.2} s: {shown}", input.len());
    }
}

fn busy() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(stat.split(' ').next()?.parse::<f64>().ok()? / 1e9)
}

/// A safetensors file of bfloat16 tensors; the numbers are a hole in the file, read as zeros.
/// Returns the bytes before it.
pub fn write_tensors(path: &std::path::Path, tensors: &[(String, Vec<usize>)]) -> u64 {
    use std::io::Write as _;

    let mut header = serde_json::Map::new();
    let mut at = 0usize;
    for (name, shape) in tensors {
        let end = at + 2 * shape.iter().product::<usize>();
        let entry =
            serde_json::json!({ "dtype": "BF16", "shape": shape, "data_offsets": [at, end] });
        assert!(header.insert(name.clone(), entry).is_none(), "{name} twice");
        at = end;
    }
    let header = serde_json::Value::Object(header).to_string();
    let mut file = std::fs::File::create(path).unwrap();
    file.write_all(&(header.len() as u64).to_le_bytes()).unwrap();
    file.write_all(header.as_bytes()).unwrap();
    file.set_len((8 + header.len() + at) as u64).unwrap();
    (8 + header.len()) as u64
}

/// `a.{0..1}.b [2, 3]` as the tensors it stands for.
pub fn expanded(line: &str) -> Vec<(String, Vec<usize>)> {
    let (pattern, shape) = line.split_once(" [").expect("a name and a shape");
    let shape: Vec<usize> =
        shape.trim_end_matches(']').split(", ").map(|size| size.parse().expect("a size")).collect();
    let mut names = vec![pattern.to_owned()];
    while let Some(start) = names[0].find('{') {
        let end = names[0].find('}').unwrap();
        let (from, to) = names[0][start + 1..end].split_once("..").unwrap();
        let (from, to): (usize, usize) = (from.parse().unwrap(), to.parse().unwrap());
        names = names
            .iter()
            .flat_map(|name| {
                // Every name has its range at the same place until the numbers differ in length.
                let start = name.find('{').unwrap();
                let end = name.find('}').unwrap();
                (from..=to)
                    .map(|at| format!("{}{at}{}", &name[..start], &name[end + 1..]))
                    .collect::<Vec<_>>()
            })
            .collect();
    }
    names.into_iter().map(|name| (name, shape.clone())).collect()
}
