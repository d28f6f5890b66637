use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;
use specc_checkpoint::config::QuantizationConfig;
use specc_checkpoint::map::{DropRule, Rule, Step, WeightMap, plan};
use specc_checkpoint::tensors::TensorIndex;

use crate::support::write_index;

const SHARDS: usize = 50;
const EXPERTS: usize = 220;
const LAYERS: usize = 150;
const SIZE: usize = 1 << 20;

/// Sparse shards of 100 GB together with an index; returns how many tensors there are.
fn write_folder(dir: &Path) -> usize {
    let mut shards: Vec<BTreeMap<String, serde_json::Value>> = vec![BTreeMap::new(); SHARDS];
    let mut map = BTreeMap::new();
    for layer in 0..LAYERS {
        let shard = layer * SHARDS / LAYERS;
        for expert in 0..EXPERTS {
            for part in ["gate_proj", "up_proj", "down_proj"] {
                let name = format!("model.layers.{layer}.mlp.experts.{expert}.{part}.weight");
                let at = shards[shard].len() * SIZE;
                let offsets = [at, at + SIZE];
                let entry = json!({"dtype": "BF16", "shape": [1024, 512], "data_offsets": offsets});
                map.insert(name.clone(), format!("model-{shard}.safetensors"));
                shards[shard].insert(name, entry);
            }
        }
    }
    for (at, header) in shards.iter().enumerate() {
        let text = serde_json::to_vec(header).unwrap();
        let mut file = File::create(dir.join(format!("model-{at}.safetensors"))).unwrap();
        file.write_all(&(text.len() as u64).to_le_bytes()).unwrap();
        file.write_all(&text).unwrap();
        file.set_len((8 + text.len() + header.len() * SIZE) as u64).unwrap();
    }
    write_index(dir, &json!(map));
    map.len()
}

#[test]
fn a_hundred_gigabytes_in_fifty_shards_are_planned_in_moments() {
    let dir = tempfile::tempdir().unwrap();
    let count = write_folder(dir.path());
    let before = memory();
    let start = Instant::now();
    let index = TensorIndex::open(dir.path()).unwrap();
    let opened = start.elapsed();
    assert_eq!((index.tensors().len(), count), (99_000, 99_000));
    assert!(index.total_bytes() > 100_000_000_000);
    let mut map = WeightMap { prefixes: vec!["language_model.".into()], ..WeightMap::default() };
    let experts = "model.layers.{i}.mlp.experts.{e}.{n:word}.weight";
    map.rules.push(
        Rule::new(experts, "model.layers.{i}.mlp.switch_mlp.{n}.weight")
            .unwrap()
            .step(Step::Stack { capture: "e".into() })
            .when(|p, _| Ok(!p.any("*.mlp.switch_mlp.*")?)),
    );
    for at in 0..40 {
        map.drops.push(DropRule::new(&format!("*.unused_{at}.{{n:word}}")).unwrap());
        map.rules.push(Rule::new(&format!("{{p:any}}.old_{at}.weight"), "{p:any}.new").unwrap());
    }
    let plan = plan(&index, &map, &QuantizationConfig::default()).unwrap();
    let planned = start.elapsed() - opened;
    assert_eq!(plan.iter().count(), LAYERS * 3);
    let used = memory().saturating_sub(before);
    println!("opened in {opened:?}, planned in {planned:?}, {} MB", used >> 20);
    // Ten times what an optimised build needs on an idle machine, since tests share it.
    let limit = Duration::from_secs(if cfg!(debug_assertions) { 30 } else { 8 });
    assert!(opened < limit && planned < limit, "{opened:?} {planned:?}");
    assert!(used < 150 << 20, "{used} bytes");
}

/// Resident bytes of this process, 0 where the system does not tell.
fn memory() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split(' ').nth(1).and_then(|p| p.parse::<usize>().ok());
    pages.unwrap_or(0) * 4096
}
