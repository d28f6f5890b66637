//! Blocks: written into their caller, or made into a struct where a path is put before them.

use std::collections::HashMap;

use super::frame::Frame;
use super::sizes::Bound;
use super::value::{Value, flatten, new_id};
use super::{Lowerer, MAX_DEPTH};
use crate::diag::{Code, Diagnostic};
use crate::ir::{
    FieldKind, Method, Op, Operand, Scalar, Statement, Struct, StructId, Variable, names,
};
use crate::shapes::Shape;
use crate::source::{Span, Spanned};
use crate::syntax::ast::{Block, Call, Expr, ExprKind, Param, ParamType};

/// Where the arguments of a call stand, by parameter.
type Places = HashMap<String, Span>;

impl Lowerer<'_> {
    pub(super) fn call_block(
        &mut self,
        frame: &mut Frame,
        block: &Block,
        call: &Call,
        at: Option<&Spanned<String>>,
        span: Span,
        hint: Option<&str>,
    ) -> Option<Value> {
        let name = &block.name.node;
        if self.stack.contains(name) || self.stack.len() > MAX_DEPTH {
            self.diagnostics.push(
                Diagnostic::error(Code::Recursion, span, format!("`{name}` calls itself"))
                    .label(block.name.span, "the block is defined here")
                    .note(format!("the calls are {} -> {name}", self.stack.join(" -> "))),
            );
            return None;
        }
        let args = self.match_args(name, block.name.span, &block.params, call, span)?;
        let given = self.given_args(frame, &block.params, &args, hint)?;
        let places =
            block.params.iter().zip(&args).filter_map(|(param, arg)| {
                Some((param.name.node.clone(), arg.as_ref()?.value.span))
            });
        let places: Places = places.collect();
        let outside = std::mem::replace(&mut self.inside, super::Inside::of(block));
        self.stack.push(name.clone());
        let value = match at {
            None => self.inline(frame, block, given, &places, hint),
            Some(path) => self.instance(frame, block, given, &places, path, span, hint),
        };
        self.stack.pop();
        self.inside = outside;
        value
    }

    /// Binds parameters in a fresh scope on top of the frame; defaults see earlier parameters.
    fn bind_params(
        &mut self,
        frame: &mut Frame,
        block: &Block,
        mut given: HashMap<String, Value>,
        places: &Places,
    ) -> Option<()> {
        for param in &block.params {
            let name = &param.name.node;
            let value = match given.remove(name) {
                Some(value) => value,
                None => match self.default_of(&block.name.node, param) {
                    Some(default) => {
                        let kept = self.diagnostics.len();
                        match self.argument(frame, param, &default, None) {
                            Some(value) => value,
                            None => {
                                Value::Broken(self.broken_default(block, param, &default, kept))
                            }
                        }
                    }
                    None => Value::None,
                },
            };
            frame.set(name, value);
        }
        self.check_params(frame, block, places)
    }

    /// What is wrong with a default, taken from the findings beyond `kept`: it stays silent until the
    /// parameter is used.
    fn broken_default(
        &mut self,
        block: &Block,
        param: &Param,
        default: &Expr,
        kept: usize,
    ) -> Vec<Diagnostic> {
        let found = self.diagnostics.split_off(kept);
        if default.span.file == self.manifest.file {
            // The family's own [graph] says it: the place is told already.
            return found;
        }
        let (block, param) = (&block.name.node, &param.name.node);
        let help = format!(
            "it is the default of `{param}` in the block `{block}`: declare what it names, or give another: [graph] {block} = {{ {param} = .. }}"
        );
        found.into_iter().map(|one| one.help(help.clone())).collect()
    }

    /// Arrays must have the shapes that the block declares.
    fn check_params(&mut self, frame: &mut Frame, block: &Block, places: &Places) -> Option<()> {
        let mut shapes = Bound::default();
        let mut fine = true;
        for param in &block.params {
            let Some(ty) = &param.ty else { continue };
            let ParamType::Tensor(dims) = ty.node.plain() else { continue };
            let Some(Value::Array { shape, .. }) = frame.find(&param.name.node).cloned() else {
                continue;
            };
            let at = places.get(&param.name.node).copied().unwrap_or(ty.span);
            let what = format!("`{}` of `{}`", param.name.node, block.name.node);
            fine &= self.unify(frame, dims, &shape, &mut shapes, (at, &what)).is_some();
        }
        fine.then_some(())
    }

    pub(super) fn parameter(
        &mut self,
        frame: &mut Frame,
        name: &str,
        shape: Shape,
        (optional, present): (bool, Option<Box<Scalar>>),
        params: &mut Vec<Variable>,
    ) -> Value {
        let rust = frame.variable(name);
        params.push(Variable { name: rust.clone(), shape: shape.clone(), optional });
        let operand = Operand::Variable { name: rust, borrowed: true, optional };
        Value::Array { operand, shape, optional, present, id: new_id() }
    }

    fn inline(
        &mut self,
        frame: &mut Frame,
        block: &Block,
        given: HashMap<String, Value>,
        places: &Places,
        hint: Option<&str>,
    ) -> Option<Value> {
        frame.scopes.push(HashMap::new());
        let visible = std::mem::take(&mut frame.visible);
        let result = self
            .bind_params(frame, block, given, places)
            .and_then(|()| self.body(frame, &block.body, hint))
            .and_then(|value| self.block_result(block, value))
            .and_then(|value| {
                self.check_result(frame, block, &value, &mut Bound::default()).map(|()| value)
            });
        frame.scopes.pop();
        frame.visible = visible;
        result
    }

    #[expect(clippy::too_many_arguments, reason = "a call's parts, each used once")]
    fn instance(
        &mut self,
        frame: &mut Frame,
        block: &Block,
        given: HashMap<String, Value>,
        places: &Places,
        path: &Spanned<String>,
        span: Span,
        hint: Option<&str>,
    ) -> Option<Value> {
        let arrays: Vec<(String, Value)> = block
            .params
            .iter()
            .filter_map(|param| {
                let value = given.get(&param.name.node)?;
                value.is_array().then(|| (param.name.node.clone(), value.clone()))
            })
            .collect();
        let id = self.specialise(frame, block, given, places)?;
        let made = self.structs.get(id)?;
        let (pass, indices, needs_layer) =
            (made.methods.first()?.pass, made.indices.clone(), made.needs_layer);
        let results: Vec<Value> = self.results_of(id)?;
        for index in &indices {
            let expr = Expr { span, kind: ExprKind::Name(index.clone()) };
            self.note_uses(frame, &expr);
        }
        frame.needs_layer |= needs_layer && !frame.own_layers();
        frame.pass = frame.pass.max(pass);
        let full = frame.full_path(&path.node);
        let kind = FieldKind::Block { id, path: full, indices };
        let field = frame.field(&path.node, kind, span);
        let args = arrays
            .into_iter()
            .filter_map(|(_, value)| match value {
                Value::Array { operand, .. } => Some(operand),
                _ => None,
            })
            .collect();
        let mut vars = Vec::new();
        let mut values = Vec::new();
        let single = results.len() == 1;
        let names = frame.result_names(hint, &vec![field.name.as_str(); results.len()]);
        for (value, name) in results.into_iter().zip(names) {
            let Value::Array { shape, optional, .. } = value else { return None };
            let variable = Variable { name, shape, optional };
            values.push(Value::of(&variable));
            vars.push(variable);
        }
        let op = Op::Forward { field, pass, slot: false, args };
        frame.push(Statement::Let { vars, op, keeps: Vec::new(), span });
        Some(if single { values.remove(0) } else { Value::Tuple(values) })
    }

    /// The struct of a block with these parameters, made on first use.
    fn specialise(
        &mut self,
        caller: &Frame,
        block: &Block,
        given: HashMap<String, Value>,
        places: &Places,
    ) -> Option<StructId> {
        let key = self.key_of(caller, block, &given);
        if let Some(id) = self.made.get(&key) {
            return Some(*id);
        }
        let wanted = names::type_name(&block.name.node);
        let mut name = wanted.clone();
        let mut count = 2;
        while !self.names.insert(name.clone()) {
            name = format!("{wanted}{count}");
            count += 1;
        }
        let mut frame = Frame::new(&name, caller.in_layers);
        frame.outer = caller.loops.iter().chain(&caller.outer).cloned().collect();
        let mut params = Vec::new();
        let mut inner = HashMap::new();
        for param in &block.params {
            let Some(value) = given.get(&param.name.node) else { continue };
            let value = match value {
                Value::Array { shape, optional, present, .. } => {
                    let absent = (*optional, present.clone());
                    self.parameter(&mut frame, &param.name.node, shape.clone(), absent, &mut params)
                }
                other => other.clone(),
            };
            // The name is in force at once, so that a later parameter takes another Rust name.
            frame.set(&param.name.node, value.clone());
            inner.insert(param.name.node.clone(), value);
        }
        self.bind_params(&mut frame, block, inner, places)?;
        let result = self.body(&mut frame, &block.body, None)?;
        let result = self.block_result(block, result)?;
        self.check_result(&mut frame, block, &result, &mut Bound::default())?;
        let results = self.operands(result.clone(), block.name.span)?;
        let method = Method {
            name: "forward".to_owned(),
            doc: block.doc.clone(),
            params,
            pass: frame.pass,
            body: frame.bodies.pop().unwrap_or_default(),
            results,
            span: block.span,
        };
        let id = self.structs.len();
        self.structs.push(Struct {
            name,
            block: block.name.node.clone(),
            doc: block.doc.clone(),
            span: block.span,
            fields: frame.homes.pop().map(|home| home.fields).unwrap_or_default(),
            needs_layer: frame.needs_layer,
            indices: frame.indices.clone(),
            methods: vec![method],
        });
        self.made.insert(key, id);
        self.made_results.insert(id, flatten(result));
        Some(id)
    }

    fn results_of(&self, id: StructId) -> Option<Vec<Value>> {
        self.made_results.get(&id).cloned()
    }

    /// What makes two calls of a block the same: everything but the arrays' names.
    fn key_of(&self, caller: &Frame, block: &Block, given: &HashMap<String, Value>) -> String {
        let mut key = format!("{}|{}", block.name.node, caller.in_layers);
        for param in &block.params {
            key.push('|');
            match given.get(&param.name.node) {
                None => key.push('-'),
                Some(Value::Array { shape, optional, present, .. }) => {
                    key.push_str(&crate::shapes::show(shape));
                    if *optional {
                        key.push('?');
                    }
                    if let Some(present) = present {
                        key.push_str(&crate::syntax::print::expr(&present.expr));
                    }
                }
                Some(value) => key.push_str(&value.describe()),
            }
        }
        key
    }
}
