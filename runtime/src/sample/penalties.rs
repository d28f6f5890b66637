//! What changes raw logits before a choice: a bias, and penalties on tokens said before.

use mlx_rs::Array;

use super::bounded;
use crate::array::{from_i32s, scalar};
use crate::{Error, Result, ops};

/// Changes of raw logits, in the order of the fields.
#[derive(Debug, Clone, PartialEq)]
pub struct Penalties {
    /// Added to the logits of these tokens.
    pub logit_bias: Vec<(u32, f32)>,
    /// Logits of tokens said before are divided by this where positive, multiplied where negative;
    /// 1: off.
    pub repetition: f32,
    /// How many of the last tokens count; 0: all.
    pub repetition_context: usize,
    /// Subtracted once from tokens said before; 0: off.
    pub presence: f32,
    /// How many of the last tokens count; 0: all.
    pub presence_context: usize,
    /// Subtracted for each time that a token was said before; 0: off.
    pub frequency: f32,
    /// How many of the last tokens count; 0: all.
    pub frequency_context: usize,
}

impl Default for Penalties {
    fn default() -> Self {
        Self {
            logit_bias: Vec::new(),
            repetition: 1.0,
            repetition_context: 20,
            presence: 0.0,
            presence_context: 20,
            frequency: 0.0,
            frequency_context: 20,
        }
    }
}

impl Penalties {
    /// Checks the settings.
    ///
    /// # Errors
    /// Names the setting that is out of range.
    pub fn check(&self) -> Result<()> {
        bounded("repetition penalty", self.repetition, f32::MIN_POSITIVE, f32::MAX)?;
        bounded("presence penalty", self.presence, f32::MIN, f32::MAX)?;
        bounded("frequency penalty", self.frequency, f32::MIN, f32::MAX)?;
        match self.logit_bias.iter().find(|(_, bias)| bias.is_nan()) {
            Some((id, _)) => Err(Error::input(format!("bias of token {id}"), "a number", "NaN")),
            None => Ok(()),
        }
    }

    /// Whether all of them are off.
    pub fn is_off(&self) -> bool {
        self.logit_bias.is_empty() && self.penalties().is_empty()
    }

    fn penalties(&self) -> Vec<(Penalty, usize)> {
        let mut list = Vec::new();
        if self.repetition != 1.0 {
            list.push((Penalty::Repetition(self.repetition), self.repetition_context));
        }
        if self.presence != 0.0 {
            list.push((Penalty::Presence(self.presence), self.presence_context));
        }
        if self.frequency != 0.0 {
            list.push((Penalty::Frequency(self.frequency), self.frequency_context));
        }
        list
    }
}

#[derive(Debug, Clone, Copy)]
enum Penalty {
    Repetition(f32),
    Presence(f32),
    Frequency(f32),
}

impl Penalty {
    /// Applied to logits whose tokens were said `count` times, at least once.
    fn apply(self, x: &Array, count: &Array) -> Result<Array> {
        match self {
            Penalty::Repetition(p) => {
                let negative = ops::less(x, &scalar(0.0, x.dtype()))?;
                ops::select(&negative, &ops::mul_scalar(x, p)?, &ops::div_scalar(x, p)?)
            }
            Penalty::Presence(p) => ops::sub_scalar(x, p),
            Penalty::Frequency(p) => {
                let amount = ops::mul_scalar(&ops::to_f32(count)?, p)?;
                ops::sub(x, &ops::cast_like(&amount, x)?)
            }
        }
    }
}

/// The tokens said so far, on the device, and the penalties that go by them.
///
/// A limited context is an array of its ids; an unlimited one is a count for each token of the
/// vocabulary, so that a step's work on the host does not grow with the text.
#[derive(Debug)]
pub struct History {
    bias: Option<(Array, Array)>,
    penalties: Vec<(Penalty, usize)>,
    /// int32 [1, n]: the last tokens, as many as the widest limited context.
    recent: Option<Array>,
    /// int32 [1, n] that waits for the size of the vocabulary, then counts float32 [1, V].
    all: Option<Counts>,
    longest: usize,
}

#[derive(Debug)]
enum Counts {
    Ids(Vec<i32>),
    Table(Array),
}

impl History {
    /// The history of one sequence after its prompt.
    ///
    /// # Errors
    /// A setting is out of range.
    pub fn new(settings: &Penalties, prompt: &[u32]) -> Result<Self> {
        settings.check()?;
        let penalties = settings.penalties();
        let ids = prompt.iter().map(|id| int(*id)).collect::<Result<Vec<_>>>()?;
        let longest = penalties.iter().map(|(_, n)| *n).max().unwrap_or(0);
        let unlimited = penalties.iter().any(|(_, n)| *n == 0);
        let recent = (longest > 0 && !ids.is_empty())
            .then(|| row(&ids[ids.len().saturating_sub(longest)..]))
            .transpose()?;
        let bias = (!settings.logit_bias.is_empty()).then(|| {
            let ids: Result<Vec<i32>> =
                settings.logit_bias.iter().map(|(id, _)| int(*id)).collect();
            let values: Vec<f32> = settings.logit_bias.iter().map(|(_, bias)| *bias).collect();
            Ok::<_, Error>((row(&ids?)?, Array::from_slice(&values, &[1, values.len() as i32])))
        });
        Ok(Self {
            bias: bias.transpose()?,
            penalties,
            recent,
            all: unlimited.then_some(Counts::Ids(ids)),
            longest,
        })
    }

    /// Whether nothing is changed.
    pub fn is_off(&self) -> bool {
        self.bias.is_none() && self.penalties.is_empty()
    }

    /// The logits after all changes: [1, V] -> [1, V].
    ///
    /// # Errors
    /// A token with a bias lies outside the vocabulary.
    pub fn apply(&mut self, logits: &Array) -> Result<Array> {
        let mut x = logits.clone();
        let vocabulary = x.dim(-1);
        if let Some((ids, bias)) = &self.bias {
            let sum = ops::add(&ops::gather(&x, ids, -1)?, &ops::cast_like(bias, &x)?)?;
            x = x.put_along_axis(ids, sum, -1)?;
        }
        for (penalty, context) in &self.penalties {
            if *context == 0 {
                let Some(all) = &mut self.all else { continue };
                let counts = all.table(vocabulary)?;
                let said = ops::less(&scalar(0.0, counts.dtype()), counts)?;
                x = ops::select(&said, &penalty.apply(&x, counts)?, &x)?;
            } else if let Some(recent) = &self.recent {
                let n = recent.dim(-1);
                let ids = ops::slice(recent, -1, n - n.min(*context as i32), n)?;
                let same = ops::equal(&ops::expand(&ids, -1)?, &ops::expand(&ids, -2)?)?;
                let count = ops::sum(&ops::to_f32(&same)?, -1, false)?;
                let changed = penalty.apply(&ops::gather(&x, &ids, -1)?, &count)?;
                // A token that occurs twice is written twice with one value.
                x = x.put_along_axis(&ids, changed, -1)?;
            }
        }
        Ok(x)
    }

    /// Adds a token, which need not be known yet: uint32 \[1\].
    ///
    /// # Errors
    /// MLX's.
    pub fn push(&mut self, token: &Array) -> Result<()> {
        if self.penalties.is_empty() {
            return Ok(());
        }
        let token = ops::cast(&ops::reshape(token, &[1, 1])?, mlx_rs::Dtype::Int32)?;
        if self.longest > 0 {
            self.recent = Some(match &self.recent {
                None => token.clone(),
                Some(recent) => {
                    let joined = ops::concat(&[recent, &token], -1)?;
                    let n = joined.dim(-1);
                    ops::slice(&joined, -1, n - n.min(self.longest as i32), n)?
                }
            });
        }
        if let Some(Counts::Table(counts)) = &mut self.all {
            let more = ops::add_scalar(&ops::gather(counts, &token, -1)?, 1.0)?;
            *counts = counts.put_along_axis(&token, more, -1)?;
        }
        Ok(())
    }
}

impl Counts {
    /// The counts, made of the ids on the first call.
    fn table(&mut self, vocabulary: i32) -> Result<&Array> {
        if let Counts::Ids(ids) = self {
            let mut counts = vec![0f32; vocabulary.max(0) as usize];
            for id in ids.iter() {
                if let Some(count) = usize::try_from(*id).ok().and_then(|id| counts.get_mut(id)) {
                    *count += 1.0;
                }
            }
            *self = Counts::Table(Array::from_slice(&counts, &[1, vocabulary]));
        }
        match self {
            Counts::Table(counts) => Ok(counts),
            Counts::Ids(_) => Err(Error::Unsupported("token counts without a vocabulary".into())),
        }
    }
}

fn row(ids: &[i32]) -> Result<Array> {
    ops::expand(&from_i32s(ids), 0)
}

fn int(id: u32) -> Result<i32> {
    i32::try_from(id).map_err(|_| Error::input("token", "an id below 2^31", id.to_string()))
}
