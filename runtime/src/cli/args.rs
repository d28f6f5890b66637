//! The command line.

use std::path::PathBuf;

use clap::{ArgGroup, Parser, Subcommand, ValueEnum};

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
}

#[derive(Debug, clap::Args)]
pub(super) struct ChatArgs {
    #[command(flatten)]
    pub model: ModelArgs,
    /// Render the template without thinking
    #[arg(long)]
    pub no_thinking: bool,
    #[command(flatten)]
    pub sampling: SamplingArgs,
}

#[derive(Debug, clap::Args)]
pub(super) struct LogitsArgs {
    #[command(flatten)]
    pub model: ModelArgs,
    /// Tokens such as 1,2,3, or a safetensors file that holds `ids`
    #[arg(long, value_name = "LIST|FILE")]
    pub ids: String,
    /// Take the rows `batch_ids` of the file
    #[arg(long)]
    pub rows: bool,
    /// Lengths of the appends to the caches, which add up to the tokens; a 1 is a decode
    #[arg(long, value_name = "LIST")]
    pub chunks: Option<String>,
    /// The file to write
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
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
    pub quantize: Option<i32>,
    /// Sequences at once
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    pub rows: u16,
    /// Tokens of the prompt
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..=1 << 24))]
    pub prompt: u32,
    /// Tokens decoded
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..=1 << 24))]
    pub decode: u32,
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
