use std::path::Path;

use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use specc_checkpoint::config::{ConfigFile, QuantizationConfig, RopeConfig};
use specc_checkpoint::map::{Pattern, Rule, Step, Template, plan};
use specc_checkpoint::tensors::Header;

use crate::support::{file, floats, rules};

/// JSON that looks like a header, with numbers of every size.
fn header_like() -> impl Strategy<Value = String> {
    let number = prop_oneof![0u64..64, any::<u64>(), Just(1u64 << 32), Just(1u64 << 63)];
    let dtype = prop_oneof![Just("F32"), Just("BF16"), Just("U8"), Just("F8_E8M0"), Just("Q")];
    let entry =
        (dtype, vec(number.clone(), 0..4), number.clone(), number).prop_map(|(d, s, a, b)| {
            format!(r#"{{"dtype": "{d}", "shape": {s:?}, "data_offsets": [{a}, {b}]}}"#)
        });
    vec(("[a-c]", entry), 0..5).prop_map(|entries| {
        let entries: Vec<String> =
            entries.into_iter().map(|(name, entry)| format!("\"{name}\": {entry}")).collect();
        format!("{{{}}}", entries.join(","))
    })
}

proptest! {
    #[test]
    fn arbitrary_bytes_are_a_header_or_an_error(bytes in vec(any::<u8>(), 0..300)) {
        let _ = Header::from_reader(Path::new("x"), &mut &*bytes, bytes.len() as u64);
    }

    #[test]
    fn a_length_that_lies_allocates_nothing(length in any::<u64>(), size in any::<u64>()) {
        let bytes = length.to_le_bytes();
        let result = Header::from_reader(Path::new("x"), &mut &bytes[..], size);
        prop_assert!(result.is_err() || length == 0);
    }

    #[test]
    fn accepted_entries_lie_apart_within_the_file(text in header_like(), data in 0usize..80) {
        let bytes = file(&text, data);
        let read = Header::from_reader(Path::new("x"), &mut &*bytes, bytes.len() as u64);
        if let Ok(header) = read {
            let mut ranges: Vec<_> = header.entries.iter().map(|e| e.bytes.clone()).collect();
            ranges.retain(|r| !r.is_empty());
            ranges.sort_by_key(|r| r.start);
            prop_assert!(ranges.windows(2).all(|w| w[0].end <= w[1].start));
            for entry in &header.entries {
                let size: usize = entry.shape.iter().product();
                prop_assert_eq!((size * entry.dtype.bytes()) as u64, entry.bytes.end - entry.bytes.start);
                prop_assert!(entry.bytes.end <= bytes.len() as u64);
            }
        }
    }

    #[test]
    fn arbitrary_json_is_a_config_or_an_error(text in "\\PC{0,60}", key in "[a-z.]{0,8}") {
        let wrapped = format!("{{\"rope_scaling\": {{\"type\": {text}}}, \"quantization\": {text}}}");
        for text in [text, wrapped] {
            if let Ok(config) = ConfigFile::parse(Path::new("c"), text.as_bytes()) {
                let reader = config.under(&["text_config", ""]);
                let _ = (reader.int(key.as_str()), RopeConfig::read(&reader), config.unread());
                let _ = QuantizationConfig::read(&reader);
            }
        }
    }

    #[test]
    fn arbitrary_patterns_neither_panic_nor_take_other_text(
        pattern in "([ab.*]|\\{i\\}|\\{n:word\\}|\\{p:any\\}|\\{c:a\\|ab\\}){1,7}",
        name in "[ab1.é]{0,16}",
    ) {
        let parsed = Pattern::parse(&pattern).unwrap();
        if let Some(captures) = parsed.matches(&name) {
            // What was taken, put back, is the name.
            prop_assert_eq!(Template::parse(&pattern).unwrap().fill(&captures), Some(name));
        }
    }

    #[test]
    fn renaming_and_stacking_lose_nothing(
        layers in btree_set(0u32..40, 1..6),
        experts in 1usize..12,
        others in btree_set("[a-d]{1,3}", 0..5),
    ) {
        let mut names: Vec<String> = others.iter().map(|o| format!("other.{o}")).collect();
        for layer in &layers {
            names.extend((0..experts).map(|e| format!("old.{layer}.e.{e}.w")));
        }
        let index = floats(names.iter().map(|n| (n.as_str(), vec![2, 3])));
        let map = rules([
            Rule::new("old.{i}.*", "new.{i}.*").unwrap(),
            Rule::new("new.{i}.e.{e}.w", "new.{i}.w").unwrap().step(Step::Stack { capture: "e".into() }),
            Rule::new("new.{i}.w", "old.{i}.w").unwrap(),
        ]);
        let plan = plan(&index, &map, &QuantizationConfig::default()).unwrap();
        prop_assert_eq!(plan.iter().count(), layers.len() + others.len());
        let mut sources: Vec<&str> = plan.iter().flat_map(|(_, d)| plan.sources(&d.node)).collect();
        sources.sort();
        names.sort();
        prop_assert_eq!(sources, names);
        for layer in &layers {
            let stacked = plan.get(&format!("old.{layer}.w")).unwrap();
            let wanted: Vec<String> = (0..experts).map(|e| format!("old.{layer}.e.{e}.w")).collect();
            prop_assert_eq!(plan.sources(&stacked.node), wanted);
            prop_assert_eq!(&stacked.node.shape, &vec![experts, 2, 3]);
        }
    }
}
