//! Runs a rewritten template in minijinja, within bounds.

use std::error::Error as _;
use std::io::{self, Write};
use std::thread;

use minijinja::{Environment, ErrorKind, Output, State, Value};
use serde_json::{Map, Value as Json};

use super::runtime::kind::{Kind, kind};
use super::runtime::objects::Function;
use super::runtime::{Failure, operators, print};
use super::syntax::{Emitted, Known, SyntaxError, normalise, rewrite};
use super::{Clock, FailureKind, Limits, TemplateError, convert, filters, functions, is};

/// The most bytes of a template's text.
const MAX_TEMPLATE: usize = 1 << 20;
/// The name of the one template in its environment.
const NAME: &str = "chat";
/// Stack of the thread that parses or renders. Depths are bounded elsewhere, so that this is
/// enough; only what is used of it is ever touched.
const STACK: usize = 128 << 20;

/// A template ready to render.
pub(super) struct Engine {
    env: Environment<'static>,
    emitted: Emitted,
    origin: String,
    lines: Vec<String>,
}

impl Engine {
    /// Parses a template.
    pub fn new(origin: &str, text: &str) -> Result<Self, TemplateError> {
        let syntax = |error: SyntaxError| TemplateError::Syntax {
            origin: origin.to_owned(),
            line: error.line,
            message: error.message,
            snippet: text.lines().nth(error.line.saturating_sub(1)).unwrap_or_default().into(),
        };
        if text.len() > MAX_TEMPLATE {
            return Err(TemplateError::Bound {
                origin: origin.to_owned(),
                line: 1,
                bound: format!("{MAX_TEMPLATE} bytes of text"),
            });
        }
        let emitted = on_own_stack(|| {
            let known = Known { filter: filters::exists, test: is::exists };
            rewrite(text, &known)
        })
        .unwrap_or_else(|| Err(SyntaxError::new(1, "the template could not be parsed")))
        .map_err(syntax)?;
        let mut env = environment();
        let added = on_own_stack(|| {
            let text = emitted.text.clone();
            env.add_template_owned(NAME, text).map(|()| env)
        });
        let lines = normalise(text).lines().map(str::to_owned).collect();
        match added {
            Some(Ok(env)) => Ok(Self { env, emitted, origin: origin.to_owned(), lines }),
            Some(Err(e)) => {
                let line = emitted.line_of(e.line().unwrap_or(1));
                let message = e.detail().unwrap_or("the template could not be compiled");
                Err(syntax(SyntaxError::new(line, message)))
            }
            None => Err(syntax(SyntaxError::new(1, "the template could not be compiled"))),
        }
    }

    /// Renders with exactly these variables.
    pub fn render(
        &self,
        variables: &Map<String, Json>,
        clock: Clock,
        limits: Limits,
    ) -> Result<String, TemplateError> {
        let size = Size::of_map(variables);
        let steps = limits
            .steps
            .saturating_add(limits.steps_per_value.saturating_mul(size.values))
            .saturating_add(size.bytes / 4);
        let most = limits.output.saturating_add(size.bytes.saturating_mul(4));
        let mut env = self.env.clone();
        env.set_fuel(Some(steps));
        env.set_recursion_limit(limits.nesting);
        env.add_global("strftime_now", Value::from_object(Function::Clock(clock)));
        let rendered = on_own_stack(|| {
            let mut out = Bounded { text: Vec::new(), most, full: false };
            let done = env.get_template(NAME).and_then(|template| {
                template.render_captured_to(convert::map_value(variables), &mut out).map(|_| ())
            });
            done.map(|()| String::from_utf8_lossy(&out.text).into_owned())
                .map_err(|e| self.failure(&e, out.full, steps, most, limits))
        });
        rendered.unwrap_or_else(|| {
            Err(TemplateError::Render {
                origin: self.origin.clone(),
                line: 1,
                kind: FailureKind::Other,
                message: "the rendering broke off".into(),
                snippet: String::new(),
            })
        })
    }

    fn failure(
        &self,
        error: &minijinja::Error,
        full: bool,
        steps: u64,
        most: u64,
        limits: Limits,
    ) -> TemplateError {
        let line = match error.range() {
            Some(range) => self.emitted.line_at(range.start),
            None => self.emitted.line_of(error.line().unwrap_or(1)),
        };
        let origin = self.origin.clone();
        let bound = |bound: String| TemplateError::Bound { origin: origin.clone(), line, bound };
        if full {
            return bound(format!("{most} bytes of output"));
        }
        let mut source = error.source();
        while let Some(inner) = source {
            match inner.downcast_ref::<Failure>() {
                Some(Failure::Raised(message)) => {
                    return TemplateError::Raised { message: message.clone(), line };
                }
                Some(Failure::Bound(what)) => return bound(what.clone()),
                Some(Failure::Operation(kind, message)) => {
                    return self.render_error(line, *kind, message.clone());
                }
                None => source = inner.source(),
            }
        }
        let detail = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
        match error.kind() {
            ErrorKind::OutOfFuel => bound(format!("{steps} steps")),
            ErrorKind::InvalidOperation if detail.contains("recursion limit") => {
                bound(format!("{} nested calls", limits.nesting / 4))
            }
            ErrorKind::UnknownFunction | ErrorKind::UndefinedError => {
                let message = detail.replace(" is unknown", " is undefined");
                self.render_error(line, FailureKind::Undefined, message)
            }
            ErrorKind::TooManyArguments | ErrorKind::MissingArgument => {
                self.render_error(line, FailureKind::Type, detail)
            }
            ErrorKind::CannotUnpack => self.render_error(line, FailureKind::Value, detail),
            _ => self.render_error(line, FailureKind::Other, detail),
        }
    }

    fn render_error(&self, line: usize, kind: FailureKind, message: String) -> TemplateError {
        TemplateError::Render {
            origin: self.origin.clone(),
            line,
            kind,
            message,
            snippet: self.lines.get(line.saturating_sub(1)).cloned().unwrap_or_default(),
        }
    }
}

fn environment() -> Environment<'static> {
    let mut env = Environment::empty();
    operators::register(&mut env);
    functions::register(&mut env);
    env.set_formatter(print_value);
    env.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
    env.set_debug(false);
    env
}

/// What `{{ value }}` writes.
fn print_value(out: &mut Output, state: &mut State, value: &Value) -> Result<(), minijinja::Error> {
    let written = match kind(value) {
        Kind::Str(s) => out.write_str(s),
        _ => out.write_str(&print::text(state, value)?),
    };
    written.map_err(minijinja::Error::from)
}

/// Runs work on a thread with room for deep recursion; `None` when it panicked.
fn on_own_stack<T: Send>(work: impl FnOnce() -> T + Send) -> Option<T> {
    thread::scope(|scope| {
        let spawned = thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work);
        spawned.ok().and_then(|handle| handle.join().ok())
    })
}

/// How large the variables are, which bounds scale with.
#[derive(Default)]
struct Size {
    values: u64,
    bytes: u64,
}

impl Size {
    fn of_map(map: &Map<String, Json>) -> Self {
        let mut size = Self::default();
        map.iter().for_each(|(key, value)| size.add(key, value));
        size
    }

    fn add(&mut self, key: &str, value: &Json) {
        self.values += 1;
        self.bytes += key.len() as u64;
        match value {
            Json::String(s) => self.bytes += s.len() as u64,
            Json::Array(items) => items.iter().for_each(|item| self.add("", item)),
            Json::Object(map) => map.iter().for_each(|(key, item)| self.add(key, item)),
            _ => {}
        }
    }
}

/// A writer that refuses more than it may hold.
struct Bounded {
    text: Vec<u8>,
    most: u64,
    full: bool,
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if (self.text.len() + bytes.len()) as u64 > self.most {
            self.full = true;
            return Err(io::Error::other("too much output"));
        }
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
