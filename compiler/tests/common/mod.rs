//! What several tests need.

#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "each test takes a part of it"
)]

use std::sync::{LazyLock, Mutex, PoisonError};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

/// What each thread works on, and since when.
static WORK: Mutex<Vec<(ThreadId, Instant, String)>> = Mutex::new(Vec::new());

/// Ends a run that hangs; how long anything takes decides nothing.
static WATCHDOG: LazyLock<()> = LazyLock::new(|| {
    std::thread::spawn(|| {
        loop {
            std::thread::sleep(Duration::from_secs(1));
            for (_, since, input) in work().iter() {
                if since.elapsed() > Duration::from_secs(60) {
                    eprintln!("this hangs, {} bytes: {}", input.len(), start(input));
                    std::process::abort();
                }
            }
        }
    });
});

fn work() -> std::sync::MutexGuard<'static, Vec<(ThreadId, Instant, String)>> {
    WORK.lock().unwrap_or_else(PoisonError::into_inner)
}

fn start(input: &str) -> String {
    input.chars().take(200).collect()
}

/// Work on one input, under the eyes of a watchdog until it is dropped.
pub struct Watched;

impl Watched {
    /// Starts now.
    pub fn new(input: &str) -> Self {
        LazyLock::force(&WATCHDOG);
        work().push((std::thread::current().id(), Instant::now(), input.to_owned()));
        Self
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let own = std::thread::current().id();
        let mut all = work();
        if let Some(at) = all.iter().rposition(|(thread, ..)| *thread == own) {
            let (_, since, input) = all.remove(at);
            let seconds = since.elapsed().as_secs_f64();
            if seconds > 1.0 {
                println!("{} bytes took {seconds:.2} s: {}", input.len(), start(&input));
            }
        }
    }
}

/// Seconds of a piece of work, to be shown.
pub struct Clock(Instant);

impl Clock {
    /// Starts now.
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// Seconds since the start.
    pub fn seconds(&self) -> f64 {
        self.0.elapsed().as_secs_f64()
    }
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
