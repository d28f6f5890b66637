//! `embed`: a JSON array a text, of length 1.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that fails says where")]

mod common;

use std::path::Path;

use common::*;

/// The lines of an output as vectors, each of length 1.
fn vectors(out: &str) -> Vec<Vec<f32>> {
    let vectors: Vec<Vec<f32>> =
        out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for vector in &vectors {
        let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
        assert!((length - 1.0).abs() < 1e-5, "length {length}");
    }
    vectors
}

fn close(ours: &[f32], expected: &[f32], allowed: f32) {
    assert_eq!(ours.len(), expected.len());
    let off = ours.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(off <= allowed, "{off:e} off");
}

#[test]
fn an_encoder_embeds_arguments_and_lines() {
    let Some(model) = model_file("all-MiniLM-L6-v2") else { return };
    let model = arg(&model);
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/minilm");
    let (_, known) = array(&fixtures.join("expected.safetensors"), "embeddings");
    let known: Vec<&[f32]> = known.chunks(384).collect();
    let text = std::fs::read_to_string(fixtures.join("expected.json")).unwrap();
    let text: serde_json::Value = serde_json::from_str(&text).unwrap();
    let sentences = text["sentences"].as_array().unwrap().iter();
    let sentences: Vec<&str> = sentences.map(|s| s["text"].as_str().unwrap()).collect();

    let two = run(&["embed", "--model", model, "--text", sentences[0], "--text", sentences[1]]);
    assert_eq!((two.code, two.err.as_str()), (Some(0), ""));
    let two = vectors(&two.out);
    assert_eq!(two.len(), 2);
    close(&two[0], known[0], 1e-5);
    close(&two[1], known[1], 1e-5);

    // A line each, an empty one too.
    let lines = sentences.join("\n");
    let all = run_with(&lines, &["embed", "--model", model]);
    assert_eq!((all.code, all.err.as_str()), (Some(0), ""));
    let all = vectors(&all.out);
    assert_eq!(all.len(), sentences.len());
    for (ours, known) in all.iter().zip(known) {
        close(ours, known, 1e-5);
    }
    let blank = run_with("\n", &["embed", "--model", model]);
    assert_eq!(vectors(&blank.out).len(), 1);
}

#[test]
fn a_text_past_the_last_position_is_cut_aloud() {
    let Some(model) = model_file("all-MiniLM-L6-v2") else { return };
    let model = arg(&model);
    // A token each, between two special ones; there are 512 positions.
    let words = |n: usize| vec!["hello"; n].join(" ");
    let long = run_with(&words(600), &["embed", "--model", model]);
    assert_eq!(long.code, Some(0));
    let told = "warning: a text of 602 tokens was cut to 512: ";
    assert_eq!(long.err, format!("{told}{:?}...\n", &words(600)[..40]));
    let fitting = run_with(&words(510), &["embed", "--model", model]);
    assert_eq!((fitting.code, fitting.err.as_str()), (Some(0), ""));
    assert_eq!(long.out, fitting.out);
    assert_eq!(vectors(&long.out).len(), 1);
}

#[test]
fn a_generator_embeds_by_its_terminator() {
    let folder = copy("qwen3");
    let model = arg(folder.path());
    let refused = failure(folder.path(), &["embed", "--model", model, "--text", "t1"]);
    let told = "error: the tokenizer has no \"<|endoftext|>\", with which a text has to end\n";
    assert_eq!(refused, told);
    let path = folder.path().join("tokenizer.json");
    let text = std::fs::read_to_string(&path).unwrap();
    write(folder.path(), "tokenizer.json", &text.replace("\"t159\"", "\"<|endoftext|>\""));

    let run = run(&["embed", "--model", model, "--text", "t1 t2 t3", "--text", "t7"]);
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
    let found = vectors(&run.out);
    // A text that ends with it already gets no other.
    let ended = good(&["embed", "--model", model, "--text", "t1 t2 t3 <|endoftext|>"]);
    assert_eq!(vectors(&ended)[0], found[0]);

    // The head makes of the vector what it makes of the last hidden state, but for the length.
    let weights = folder.path().join("model.safetensors");
    let (shape, head) = array(&weights, "model.embed_tokens.weight");
    for (vector, ids) in found.iter().zip(["1,2,3,159", "7,159"]) {
        let out = folder.path().join("logits.safetensors");
        good(&["logits", "--model", model, "--ids", ids, "--out", arg(&out)]);
        let (_, logits) = array(&out, "logits");
        let last = &logits[logits.len() - shape[0]..];
        let of_vector: Vec<f32> = head
            .chunks(shape[1])
            .map(|row| row.iter().zip(vector).map(|(a, b)| a * b).sum())
            .collect();
        let square = |x: &[f32]| x.iter().map(|x| x * x).sum::<f32>();
        let scale = (square(last) / square(&of_vector)).sqrt();
        let scaled: Vec<f32> = of_vector.iter().map(|x| x * scale).collect();
        close(&scaled, last, 1e-4);
    }
}
