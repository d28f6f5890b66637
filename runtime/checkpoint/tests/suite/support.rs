//! Small folders and maps for the tests.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};
use specc_checkpoint::config::{ConfigFile, QuantizationConfig};
use specc_checkpoint::map::{Node, Op, Plan, Rule, WeightMap, plan};
use specc_checkpoint::tensors::{Dtype, TensorIndex};

/// A configuration from JSON text, named config.json.
pub fn config(text: &str) -> ConfigFile {
    ConfigFile::parse(Path::new("m/config.json"), text.as_bytes()).unwrap()
}

/// The bytes of a safetensors file with this header text and `data` bytes of zeros.
pub fn file(header: &str, data: usize) -> Vec<u8> {
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(header.as_bytes());
    bytes.resize(bytes.len() + data, 0);
    bytes
}

/// Writes a safetensors file of float32 tensors, filled with their own numbers.
pub fn write(path: &Path, tensors: &[(&str, &[usize])]) {
    let mut header = BTreeMap::new();
    let mut at = 0;
    for (name, shape) in tensors {
        let bytes = 4 * shape.iter().product::<usize>();
        let entry = json!({"dtype": "F32", "shape": shape, "data_offsets": [at, at + bytes]});
        header.insert(*name, entry);
        at += bytes;
    }
    std::fs::write(path, file(&serde_json::to_string(&header).unwrap(), at)).unwrap();
}

pub fn write_index(folder: &Path, map: &Value) {
    let text = json!({"metadata": {}, "weight_map": map}).to_string();
    std::fs::write(folder.join("model.safetensors.index.json"), text).unwrap();
}

/// An index of float32 tensors.
pub fn floats<'a>(tensors: impl IntoIterator<Item = (&'a str, Vec<usize>)>) -> TensorIndex {
    let typed = tensors.into_iter().map(|(name, shape)| (name.to_owned(), Dtype::F32, shape));
    TensorIndex::from_tensors(typed)
}

/// A map of rules alone.
pub fn rules(rules: impl IntoIterator<Item = Rule>) -> WeightMap {
    WeightMap { rules: rules.into_iter().collect(), ..WeightMap::default() }
}

/// The plan of an unquantised checkpoint as text, or its errors.
pub fn planned(index: &TensorIndex, map: &WeightMap) -> String {
    match plan(index, map, &QuantizationConfig::default()) {
        Ok(plan) => show(&plan),
        Err(errors) => errors.to_string(),
    }
}

/// One line for each tensor: name, type, shape, computation.
pub fn show(plan: &Plan) -> String {
    let mut out = String::new();
    for (name, tensor) in plan.iter() {
        let node = &tensor.node;
        let how = expression(plan, node);
        writeln!(out, "{name} {} {:?} = {how}", node.dtype, node.shape).unwrap();
    }
    out
}

fn expression(plan: &Plan, node: &Node) -> String {
    let operands: Vec<String> = node.operands().iter().map(|n| expression(plan, n)).collect();
    let of = operands.join(", ");
    match &node.op {
        Op::Source(_) => plan.sources(node).join(""),
        Op::Stack(_) => format!("stack({of})"),
        Op::Concat { axis, .. } => format!("concat[{axis}]({of})"),
        Op::Transpose { axes, .. } => format!("transpose{axes:?}({of})"),
        Op::Reshape(_) => format!("reshape{:?}({of})", node.shape),
        Op::Slice { axis, start, stop, step, .. } => {
            format!("slice[{axis}, {start}:{stop}:{step}]({of})")
        }
        Op::ViewAs(_) => format!("view({of})"),
        Op::Cast(_) => format!("cast({of})"),
        Op::Add { value, .. } => format!("add[{value}]({of})"),
        Op::Scale { value, .. } => format!("scale[{value}]({of})"),
        Op::Dequantise { params, .. } => format!("dequantise[{params}]({of})"),
        Op::Quantise { params, part, .. } => format!("quantise[{params}].{part:?}({of})"),
        Op::ScaleBlocks { block, .. } => format!("scale_blocks{block:?}({of})"),
    }
}
