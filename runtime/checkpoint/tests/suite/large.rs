use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use specc_checkpoint::config::QuantizationConfig;
use specc_checkpoint::map::{DropRule, Rule, Step, WeightMap, plan};
use specc_checkpoint::tensors::TensorIndex;

const SHARDS: usize = 50;
const LAYERS: usize = 150;
const EXPERTS: usize = 220;
const SIZE: usize = 1 << 20;

/// Sparse shards of 100 GB together, with an index.
fn write_folder(dir: &Path) {
    let mut index = String::from("{\"weight_map\": {");
    for shard in 0..SHARDS {
        let mut header = String::from("{\"__metadata__\": {}");
        let mut at = 0;
        for layer in (0..LAYERS).filter(|l| l % SHARDS == shard) {
            for expert in 0..EXPERTS {
                for part in ["gate_proj", "up_proj", "down_proj"] {
                    let name = format!("model.layers.{layer}.mlp.experts.{expert}.{part}.weight");
                    let offsets = format!("[{at}, {}]", at + SIZE);
                    let shape = r#""dtype": "BF16", "shape": [1024, 512]"#;
                    let entry = format!("{{{shape}, \"data_offsets\": {offsets}}}");
                    write!(header, ", \"{name}\": {entry}").unwrap();
                    let comma = if index.ends_with('{') { "" } else { ", " };
                    write!(index, "{comma}\"{name}\": \"model-{shard}.safetensors\"").unwrap();
                    at += SIZE;
                }
            }
        }
        header.push('}');
        let mut file = File::create(dir.join(format!("model-{shard}.safetensors"))).unwrap();
        file.write_all(&(header.len() as u64).to_le_bytes()).unwrap();
        file.write_all(header.as_bytes()).unwrap();
        file.set_len((8 + header.len() + at) as u64).unwrap();
    }
    index.push_str("}}");
    fs::write(dir.join("model.safetensors.index.json"), index).unwrap();
}

fn weight_map() -> WeightMap {
    let mut map = WeightMap { prefixes: vec!["language_model.".into()], ..WeightMap::default() };
    for at in 0..40 {
        map.drops.push(DropRule::new(&format!("*.unused_{at}.{{n:word}}")).unwrap());
        map.rules.push(Rule::new(&format!("{{p:any}}.old_{at}.weight"), "{p:any}.new").unwrap());
    }
    let experts = "model.layers.{i}.mlp.experts.{e}.{n:word}.weight";
    map.rules.push(
        Rule::new(experts, "model.layers.{i}.mlp.switch_mlp.{n}.weight")
            .unwrap()
            .step(Step::Stack { capture: "e".into() })
            .when(|p, _| Ok(!p.any("*.mlp.switch_mlp.*")?)),
    );
    map
}

#[test]
fn a_hundred_gigabytes_in_fifty_shards_are_planned_in_moments() {
    let dir = tempfile::tempdir().unwrap();
    write_folder(dir.path());
    // Starts the count of the peak anew, where the system can.
    let _ = fs::write("/proc/self/clear_refs", "5");
    let before = peak();
    let start = Instant::now();
    let index = TensorIndex::open(dir.path()).unwrap();
    let opened = start.elapsed();
    let used = peak().zip(before).map(|(after, before)| after.saturating_sub(before));
    assert_eq!(index.tensors().len(), 99_000);
    assert!(index.total_bytes() > 100_000_000_000);
    let start = Instant::now();
    let plan = plan(&index, &weight_map(), &QuantizationConfig::default()).unwrap();
    let planned = start.elapsed();
    assert_eq!(plan.iter().count(), LAYERS * 3);
    // How long it takes depends on what else the machine does.
    println!(
        "opened in {opened:.2?} with {:?} MiB, planned in {planned:.2?}",
        used.map(|u| u >> 20)
    );
    match used {
        Some(used) => assert!(used < 150 << 20, "{used} bytes"),
        None => println!("the system does not tell how much memory is used"),
    }
}

/// Peak resident bytes of this process, where the system tells.
fn peak() -> Option<usize> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    let kib: usize = line.trim().split(' ').next()?.parse().ok()?;
    Some(kib << 10)
}
