//! Streamed pieces equal the whole text, and stop strings are never shown in part.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that fails says where")]

mod common;

use proptest::prelude::*;
use serde_json::{Value, json};
use specc_text::{Detokenizer, StopStrings, Tokenizer};

fn stream(tokenizer: &Tokenizer, ids: &[u32], skip_special: bool) -> Vec<String> {
    let mut detokenizer = Detokenizer::new(tokenizer, skip_special);
    let mut pieces: Vec<String> = ids.iter().map(|id| detokenizer.push(*id).unwrap()).collect();
    pieces.push(detokenizer.finish().unwrap());
    pieces
}

fn check(tokenizer: &Tokenizer, ids: &[u32]) -> Result<(), TestCaseError> {
    for skip_special in [false, true] {
        let whole = tokenizer.decode(ids, skip_special).unwrap();
        let pieces = stream(tokenizer, ids, skip_special);
        prop_assert_eq!(pieces.concat(), whole, "{:?}", pieces);
    }
    Ok(())
}

/// Variants of the byte-fallback tokenizer with other decoders.
fn with_decoder(decoder: Value) -> Tokenizer {
    let mut json = common::byte_fallback_json();
    json["decoder"] = decoder;
    Tokenizer::from_json(&json, None).unwrap()
}

fn decoders() -> Vec<Value> {
    vec![
        json!({"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
            {"type": "ByteFallback"}, {"type": "Fuse"}]}),
        json!({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": false}),
        json!({"type": "WordPiece", "prefix": "##", "cleanup": true}),
        json!({"type": "BPEDecoder", "suffix": "i"}),
        json!({"type": "Sequence", "decoders": [
            {"type": "ByteFallback"}, {"type": "Fuse"},
            {"type": "Replace", "pattern": {"String": "▁▁"}, "content": " "}]}),
        Value::Null,
    ]
}

/// Texts in which characters take several tokens.
const TEXTS: [&str; 6] = [
    "the thing: 👩‍👩‍👧‍👦 🇫🇷 done",
    "e\u{301}a\u{301} combining, שלום עולם, مرحبا",
    " leading and trailing  ",
    "日本語のテキスト",
    "hi\u{fffd}\u{fffd}hi",
    "",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_ids_byte_level(ids in prop::collection::vec(0u32..270, 0..40)) {
        check(&common::byte_level(), &ids)?;
    }

    #[test]
    fn any_ids_byte_fallback(ids in prop::collection::vec(
        prop_oneof![0u32..275, 259u32..272, 160u32..260], 0..40)) {
        check(&common::byte_fallback(), &ids)?;
    }

    #[test]
    fn any_ids_other_decoders(ids in prop::collection::vec(
        prop_oneof![0u32..275, 259u32..272, 160u32..260], 0..24)) {
        for decoder in decoders() {
            check(&with_decoder(decoder), &ids)?;
        }
    }

    #[test]
    fn any_text_both(text in "\\PC*") {
        for tokenizer in [common::byte_level(), common::byte_fallback()] {
            let ids = tokenizer.encode(&text, false).unwrap();
            check(&tokenizer, &ids)?;
        }
    }

    #[test]
    fn stops_in_any_split(
        text in "[abc]{0,24}",
        stops in prop::collection::vec("[abc]{1,4}", 0..4),
        cuts in prop::collection::vec(0usize..25, 0..12),
    ) {
        let mut whole = StopStrings::new(stops.clone());
        let first = whole.push(&text);
        let expected_text = first.text + &if whole.stopped() { String::new() } else { whole.finish() };

        let mut filter = StopStrings::new(stops.clone());
        let (mut shown, mut found) = (String::new(), None);
        let mut cuts: Vec<usize> = cuts.into_iter().map(|c| c.min(text.len())).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        for pair in cuts.windows(2) {
            let piece = filter.push(&text[pair[0]..pair[1]]);
            shown += &piece.text;
            found = found.or(piece.stop);
            // What is shown so far never has to be taken back.
            prop_assert!(expected_text.starts_with(&shown));
        }
        if found.is_none() {
            shown += &filter.finish();
        }
        prop_assert_eq!(&shown, &expected_text);
        prop_assert_eq!(&found, &first.stop);
        for stop in &stops {
            prop_assert!(!shown.contains(stop.as_str()), "{} in {}", stop, shown);
        }
        if let Some(stop) = found {
            let end = shown.len() + stop.len();
            prop_assert_eq!(&text[shown.len()..end], stop);
        }
    }
}

#[test]
fn characters_come_out_whole() {
    for tokenizer in [common::byte_level(), common::byte_fallback()] {
        for text in TEXTS {
            let ids = tokenizer.encode(text, false).unwrap();
            let pieces = stream(&tokenizer, &ids, false);
            assert_eq!(pieces.concat(), text);
            let incomplete = pieces.iter().any(|p| p.contains('\u{fffd}'));
            assert_eq!(incomplete, text.contains('\u{fffd}'), "{pieces:?}");
        }
    }
}

#[test]
fn an_incomplete_character_is_held_and_then_replaced() {
    let tokenizer = common::byte_level();
    // Token 264 is `a` with the first byte of `€`; the first 256 ids are the bytes.
    let ids = [264, 0x82, 0xac];
    assert_eq!(stream(&tokenizer, &ids, false), ["a", "", "€", ""]);
    assert_eq!(stream(&tokenizer, &ids[..2], false), ["a", "", "\u{fffd}"]);
}

#[test]
fn one_bad_byte_spoils_its_run_with_byte_fallback() {
    let tokenizer = common::byte_fallback();
    let byte = |b: u32| b + 3;
    let ids = [byte(0xe2), byte(0x82), byte(0xac), byte(0xe2), 260];
    let pieces = stream(&tokenizer, &ids, false);
    assert_eq!(pieces, ["", "", "", "", "\u{fffd}\u{fffd}\u{fffd}\u{fffd}a", ""]);
    assert_eq!(stream(&tokenizer, &ids[..3], false), ["", "", "", "€"]);
}

#[test]
fn the_blank_before_the_first_word_is_dropped_once() {
    let tokenizer = common::byte_fallback();
    let ids = tokenizer.encode("hi hi", false).unwrap();
    assert_eq!(stream(&tokenizer, &ids, false), ["hi", " hi", ""]);
}
