//! The command line.

use std::path::PathBuf;

use anyhow::bail;
use clap::{ArgGroup, Parser, Subcommand, ValueEnum};

use crate::composition::{CompositionRequest, KvOverride, KvRequest, PagingRequest, TurboBits};
use crate::generate::denoise::{CanvasSampler, DenoisingOptions, Stopping};

/// Runs model families on MLX.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true)]
pub(super) struct Args {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Continue a prompt or answer a message.
    Generate(GenerateArgs),
    /// Talk with a model in the terminal.
    Chat(ChatArgs),
    /// Write the logits of every position to a safetensors file.
    Logits(LogitsArgs),
    /// Make a model folder of a GGUF file.
    ImportGguf(ImportArgs),
    /// Show what a model folder holds.
    Info(InfoArgs),
    /// Print the prompt that a chat template makes.
    Render(RenderArgs),
    /// Turn texts into vectors.
    Embed(EmbedArgs),
    /// Measure reading a prompt and decoding.
    Bench(BenchArgs),
    /// Run traces of another program's denoising with the draws they hold.
    #[command(hide = true)]
    Replay(ReplayArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct ModelArgs {
    /// The model folder
    #[arg(long, value_name = "DIR")]
    pub model: PathBuf,
    /// Keep quantised weights so where the device would rather have float32
    #[arg(long)]
    pub keep_quantized: bool,
}

/// How keys and values are kept; all of it stands in the composition record.
#[derive(Debug, clap::Args)]
pub(super) struct CompositionArgs {
    /// Store keys and values in fewer bits: off, config (the model's kv_config.json), 2, 3, 4, 5, 6, 8,
    /// or turbo[:k8v3]
    #[arg(long, value_name = "SCHEME", default_value = "off", value_parser = scheme)]
    pub kv_quant: KvQuant,
    /// Numbers that share a scale: 32, 64 or 128
    #[arg(long, value_name = "N")]
    pub kv_group: Option<u32>,
    /// Convert after the append that reaches so many tokens, instead of from the first one on
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub quantized_kv_start: Option<i64>,
    /// Read them in tiles or whole; always: in tiles under any mask
    #[arg(long, value_name = "on|off|always", value_parser = fused)]
    pub fused_sdpa: Option<Fused>,
    /// Keep them in pages of so many tokens
    #[arg(long, value_name = "BLOCK", num_args = 0..=1, default_missing_value = "256", allow_negative_numbers = true)]
    pub paged_kv: Option<i64>,
    /// Read pages without gathering them first
    #[arg(long)]
    pub paged_direct: bool,
    /// Cut layers that keep all tokens down to the last so many
    #[arg(long, value_name = "WINDOW", allow_negative_numbers = true)]
    pub max_kv: Option<i64>,
    /// Read prompts in parts of so many tokens
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub prefill_chunk: Option<i64>,
}

/// How keys and values are kept, and files of them.
#[derive(Debug, clap::Args)]
pub(super) struct CacheArgs {
    #[command(flatten)]
    pub composition: CompositionArgs,
    /// Write the caches and their tokens to this file at the end
    #[arg(long, value_name = "FILE")]
    pub save_cache: Option<PathBuf>,
    /// Begin with the caches of this file; the prompt follows their tokens
    #[arg(long, value_name = "FILE")]
    pub load_cache: Option<PathBuf>,
}

/// A scheme by its word.
#[derive(Debug, Clone, Copy)]
pub(super) enum KvQuant {
    Scheme(KvOverride),
    Turbo(TurboBits),
}

fn scheme(text: &str) -> Result<KvQuant, String> {
    Ok(match text {
        "off" => KvQuant::Scheme(KvOverride::Off),
        "config" => KvQuant::Scheme(KvOverride::Config),
        turbo if turbo.starts_with("turbo") => {
            KvQuant::Turbo(TurboBits::parse(turbo).map_err(|e| e.to_string())?)
        }
        bits => match bits.parse() {
            Ok(bits) if matches!(bits, 2..=6 | 8) => KvQuant::Scheme(KvOverride::Bits(bits)),
            _ => return Err("expected off, config, 2, 3, 4, 5, 6, 8 or turbo[:kXvY]".into()),
        },
    })
}

/// When quantised keys and values are read in tiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fused {
    On,
    Off,
    Always,
}

fn fused(text: &str) -> Result<Fused, String> {
    match text {
        "on" => Ok(Fused::On),
        "off" => Ok(Fused::Off),
        "always" => Ok(Fused::Always),
        _ => Err("expected on, off or always".into()),
    }
}

impl CacheArgs {
    /// See [`CompositionArgs::request`].
    pub fn request(&self) -> anyhow::Result<CompositionRequest> {
        self.composition.request()
    }
}

impl CompositionArgs {
    /// The request for a composition.
    ///
    /// # Errors
    /// A flag about the scheme has nothing to act on.
    pub fn request(&self) -> anyhow::Result<CompositionRequest> {
        let off = matches!(self.kv_quant, KvQuant::Scheme(KvOverride::Off));
        if off && self.quantized_kv_start.is_some() {
            bail!("--quantized-kv-start goes with a scheme of --kv-quant; found off");
        }
        if (off || matches!(self.kv_quant, KvQuant::Turbo(_))) && self.fused_sdpa.is_some() {
            let found = if off { "off" } else { "turbo" };
            bail!("--fused-sdpa goes with --kv-quant config or a number of bits; found {found}");
        }
        let (scheme, turbo) = match self.kv_quant {
            KvQuant::Scheme(scheme) => (scheme, None),
            KvQuant::Turbo(bits) => (KvOverride::Off, Some(bits)),
        };
        Ok(CompositionRequest {
            kv: KvRequest {
                scheme,
                group_size: self.kv_group,
                turbo,
                quantized_kv_start: self.quantized_kv_start,
                // Bits alone mean all tokens; a start means the reference's order.
                immediate: matches!(scheme, KvOverride::Bits(_)),
                fused_sdpa: self.fused_sdpa.map(|fused| fused != Fused::Off),
                tiled: self.fused_sdpa == Some(Fused::Always),
                need_config: true,
            },
            paged_kv: (self.paged_kv.is_some() || self.paged_direct).then_some(PagingRequest {
                block_size: self.paged_kv,
                direct: Some(self.paged_direct),
            }),
            max_kv: self.max_kv,
            prefill_chunk_tokens: self.prefill_chunk,
            ..CompositionRequest::default()
        })
    }
}

#[derive(Debug, clap::Args)]
pub(super) struct SamplingArgs {
    /// The most tokens to generate
    #[arg(long, value_name = "N", default_value_t = 256)]
    pub max_tokens: usize,
    /// Temperature; without it the likeliest token is taken
    #[arg(long, value_name = "T", default_value_t = 0.0, allow_negative_numbers = true)]
    pub temp: f32,
    /// Choose among the K likeliest tokens
    #[arg(long, value_name = "K", default_value_t = 0, allow_negative_numbers = true)]
    pub top_k: i32,
    /// Choose among the likeliest tokens that together hold this probability
    #[arg(long, value_name = "P", default_value_t = 0.0, allow_negative_numbers = true)]
    pub top_p: f32,
    /// Choose among tokens at least this likely, relative to the likeliest
    #[arg(long, value_name = "P", default_value_t = 0.0, allow_negative_numbers = true)]
    pub min_p: f32,
    /// The chance of excluding likely tokens but the least of them
    #[arg(long, value_name = "P", default_value_t = 0.0, allow_negative_numbers = true)]
    pub xtc_probability: f32,
    /// What counts as likely for that
    #[arg(long, value_name = "P", default_value_t = 0.1, allow_negative_numbers = true)]
    pub xtc_threshold: f32,
    /// Makes choices reproducible
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Divide the logits of recent tokens by this
    #[arg(long, value_name = "X", default_value_t = 1.0, allow_negative_numbers = true)]
    pub repetition_penalty: f32,
    /// Subtract this from the logits of recent tokens
    #[arg(long, value_name = "X", default_value_t = 0.0, allow_negative_numbers = true)]
    pub presence_penalty: f32,
    /// Subtract this for each time that a token was said recently
    #[arg(long, value_name = "X", default_value_t = 0.0, allow_negative_numbers = true)]
    pub frequency_penalty: f32,
    /// How many of the last tokens count as recent; 0: all
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub penalty_context: usize,
    /// Add a bias to a token's logit; may be repeated
    #[arg(long, value_name = "ID=BIAS", value_parser = bias, allow_hyphen_values = true)]
    pub logit_bias: Vec<(u32, f32)>,
    /// End the answer at this text; may be repeated
    #[arg(long, value_name = "TEXT")]
    pub stop: Vec<String>,
    /// Fail when a logit is not a number
    #[arg(long)]
    pub guard_nan: bool,
}

/// How blocks are denoised; all of it has defaults in the family's document.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Models that denoise blocks of tokens")]
pub(super) struct DenoisingArgs {
    /// What decides which positions of a block stay: each one's probability, or the entropy of all
    #[arg(long, value_enum, value_name = "SAMPLER")]
    pub sampler: Option<SamplerArg>,
    /// Steps of a block
    #[arg(long, value_name = "N")]
    pub steps: Option<u32>,
    /// By confidence, the probability from which on a position stays
    #[arg(long, value_name = "P", allow_negative_numbers = true)]
    pub threshold: Option<f64>,
    /// By entropy, what the positions that stay may add up to
    #[arg(long, value_name = "H", allow_negative_numbers = true)]
    pub entropy_bound: Option<f64>,
    /// End a block early once its likeliest tokens stayed so for N steps and their mean entropy is below H
    #[arg(long, value_name = "N:H", value_parser = stopping)]
    pub stop_when_stable: Option<Stopping>,
    /// Tokens of a block at most
    #[arg(long, value_name = "N")]
    pub max_canvas: Option<u32>,
    /// Tokens of a block at least
    #[arg(long, value_name = "N")]
    pub min_canvas: Option<u32>,
    /// Blocks of the model's full length, however few tokens are wanted
    #[arg(long, conflicts_with_all = ["max_canvas", "min_canvas"])]
    pub full_canvas: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum SamplerArg {
    Confidence,
    Entropy,
}

fn stopping(text: &str) -> Result<Stopping, String> {
    let wrong = || format!("expected N:H such as 2:0.3, found {text:?}");
    let (canvases, entropy) = text.split_once(':').ok_or_else(wrong)?;
    match (canvases.trim().parse(), entropy.trim().parse()) {
        (Ok(canvases), Ok(entropy)) => Ok(Stopping { canvases, entropy }),
        _ => Err(wrong()),
    }
}

impl DenoisingArgs {
    /// The part of a request.
    pub fn options(&self) -> DenoisingOptions {
        DenoisingOptions {
            sampler: self.sampler.map(|sampler| match sampler {
                SamplerArg::Confidence => CanvasSampler::Confidence,
                SamplerArg::Entropy => CanvasSampler::Entropy,
            }),
            steps: self.steps,
            threshold: self.threshold,
            entropy_bound: self.entropy_bound,
            stopping: self.stop_when_stable,
            max_canvas_length: self.max_canvas,
            min_canvas_length: self.min_canvas,
            full_canvas: self.full_canvas,
        }
    }
}

fn bias(text: &str) -> Result<(u32, f32), String> {
    let wrong = || format!("expected ID=BIAS such as 50=-1.5, found {text:?}");
    let (id, bias) = text.split_once('=').ok_or_else(wrong)?;
    match (id.trim().parse(), bias.trim().parse::<f32>()) {
        (Ok(id), Ok(bias)) if !bias.is_nan() => Ok((id, bias)),
        _ => Err(wrong()),
    }
}

#[derive(Debug, clap::Args)]
#[command(group = ArgGroup::new("input").required(true).args(["prompt", "chat", "ids"]))]
pub(super) struct GenerateArgs {
    #[command(flatten)]
    pub model: ModelArgs,
    #[command(flatten)]
    pub cache: CacheArgs,
    /// Continue this text
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub prompt: Option<String>,
    /// Answer this message, through the model's chat template
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub chat: Option<String>,
    /// Continue these tokens, such as 1,2,3; gives ids and no text
    #[arg(long, value_name = "LIST")]
    pub ids: Option<String>,
    /// Go on past end tokens
    #[arg(long)]
    pub ignore_eos: bool,
    /// Render the template without thinking
    #[arg(long)]
    pub no_thinking: bool,
    #[command(flatten)]
    pub sampling: SamplingArgs,
    /// Print one JSON object instead of the text
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub denoising: DenoisingArgs,
    /// Show each block while it resolves, on stderr: revealed tokens, and a mark for each other
    #[arg(long)]
    pub show_canvas: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct ChatArgs {
    #[command(flatten)]
    pub model: ModelArgs,
    #[command(flatten)]
    pub cache: CacheArgs,
    /// Render the template without thinking
    #[arg(long)]
    pub no_thinking: bool,
    #[command(flatten)]
    pub sampling: SamplingArgs,
    #[command(flatten)]
    pub denoising: DenoisingArgs,
}

#[derive(Debug, clap::Args)]
pub(super) struct LogitsArgs {
    #[command(flatten)]
    pub model: ModelArgs,
    #[command(flatten)]
    pub cache: CacheArgs,
    /// Tokens such as 1,2,3, or a safetensors file that holds `ids`
    #[arg(long, value_name = "LIST|FILE")]
    pub ids: String,
    /// Take the rows `batch_ids` of the file
    #[arg(long)]
    pub rows: bool,
    /// Lengths of the appends to the caches, which add up to the tokens; a 1 is a decode
    #[arg(long, value_name = "LIST")]
    pub chunks: Option<String>,
    /// Of a model that denoises: the logits of one pass over the `canvas` of this safetensors file, with
    /// its `soft_embeddings` where it holds them
    #[arg(long, value_name = "FILE", conflicts_with = "rows")]
    pub canvas: Option<PathBuf>,
    /// The file to write
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
}

#[derive(Debug, clap::Args)]
pub(super) struct ReplayArgs {
    /// The model folder
    #[arg(long, value_name = "DIR")]
    pub model: PathBuf,
    /// A JSON file of traces by name
    #[arg(long, value_name = "FILE")]
    pub trace: PathBuf,
    /// Only this one
    #[arg(long, value_name = "TRACE")]
    pub name: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(super) struct ImportArgs {
    /// The GGUF file
    pub file: PathBuf,
    /// The model folder to make
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
}

#[derive(Debug, clap::Args)]
pub(super) struct InfoArgs {
    /// The model folder
    #[arg(long, value_name = "DIR")]
    pub model: PathBuf,
    #[command(flatten)]
    pub cache: CompositionArgs,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, clap::Args)]
#[command(group = ArgGroup::new("source").required(true).args(["model", "template"]))]
pub(super) struct RenderArgs {
    /// The model folder whose template is rendered
    #[arg(long, value_name = "DIR")]
    pub model: Option<PathBuf>,
    /// A Jinja template
    #[arg(long, value_name = "FILE")]
    pub template: Option<PathBuf>,
    /// A JSON file: a list of messages, or an object of variables
    #[arg(long, value_name = "FILE")]
    pub messages: PathBuf,
    /// Set a variable; may be repeated and beats the file
    #[arg(long = "set", value_name = "NAME=JSON", value_parser = variable)]
    pub set: Vec<(String, serde_json::Value)>,
    /// What the clock says, such as 2026-01-15T09:30:05
    #[arg(long, value_name = "TIME")]
    pub now: Option<String>,
    /// Render the template without thinking
    #[arg(long)]
    pub no_thinking: bool,
}

fn variable(text: &str) -> Result<(String, serde_json::Value), String> {
    specc_text::messages::parse_setting(text).map_err(|e| e.to_string())
}

#[derive(Debug, clap::Args)]
pub(super) struct EmbedArgs {
    #[command(flatten)]
    pub model: ModelArgs,
    /// The texts; without them each line of stdin is one
    #[arg(long, value_name = "TEXT", num_args = 1.., allow_hyphen_values = false)]
    pub text: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum DtypeArg {
    #[value(alias = "bfloat16")]
    Bf16,
    #[value(alias = "float16")]
    F16,
    #[value(alias = "float32")]
    F32,
}

#[derive(Debug, clap::Args)]
#[command(group = ArgGroup::new("source").required(true).args(["model", "config"]))]
pub(super) struct BenchArgs {
    /// The model folder
    #[arg(long, value_name = "DIR")]
    pub model: Option<PathBuf>,
    /// Keep quantised weights so where the device would rather have float32
    #[arg(long)]
    pub keep_quantized: bool,
    /// A config.json, whose shapes are filled with random weights
    #[arg(long, value_name = "FILE", requires = "synthetic")]
    pub config: Option<PathBuf>,
    /// Random weights
    #[arg(long, requires = "config")]
    pub synthetic: bool,
    /// The type of the random weights
    #[arg(long, value_enum, requires = "synthetic")]
    pub dtype: Option<DtypeArg>,
    /// Quantise the random weights to so many bits, in groups of 64
    #[arg(long, value_name = "BITS", requires = "synthetic")]
    pub quantize: Option<u32>,
    /// Sequences at once
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    pub rows: u16,
    /// Tokens of the prompt
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..=1 << 24))]
    pub prompt: u32,
    /// Tokens decoded
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..=1 << 24))]
    pub decode: u32,
    /// Positions for which caches that keep all of them have room from the start
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1 << 24))]
    pub allocate: Option<u32>,
    /// Measured runs, after one that warms up
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..))]
    pub repeat: u16,
    /// The name of the workload in the output
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}
