//! Blocks: written into their caller, or made into a struct where a path is put before them.

use std::collections::HashMap;

use super::externs::Bound;
use super::{FieldHome, Frame, Lowerer, MAX_DEPTH, Value, names};
use crate::diag::{Code, Diagnostic};
use crate::ir::{FieldKind, Home, Method, Op, Operand, PassUse, Program, Scalar, Statement};
use crate::ir::{Struct, StructId, Variable};
use crate::manifest::Method as RunMethod;
use crate::shapes::{Poly, Shape};
use crate::source::{Span, Spanned};
use crate::syntax::ast::{Block, Body, Call, Dim, Expr, ExprKind, ParamType};

impl Lowerer<'_> {
    /// The whole model: one struct whose methods are the family's graphs.
    pub(super) fn model(&mut self) -> Option<Program> {
        self.check_graphs();
        let mut frame = Frame::new("Model", false);
        let mut methods = Vec::new();
        let graphs = std::mem::take(&mut self.graphs);
        for graph in &graphs {
            if let Some(method) = self.graph(&mut frame, graph) {
                methods.push(method);
            }
        }
        if methods.len() != graphs.len() {
            return None;
        }
        let fields = frame.homes.pop().map(|home| home.fields).unwrap_or_default();
        self.structs.push(Struct {
            name: "Model".to_owned(),
            block: "graph".to_owned(),
            doc: graphs.first().map(|graph| graph.doc.clone()).unwrap_or_default(),
            span: graphs.first()?.span,
            fields,
            needs_layer: false,
            indices: Vec::new(),
            methods,
        });
        Some(Program {
            structs: std::mem::take(&mut self.structs),
            externs: std::mem::take(&mut self.used_externs),
            mixers: std::mem::take(&mut self.mixers),
        })
    }

    fn check_graphs(&mut self) {
        let method = &self.manifest.family.method;
        let wanted: &[&str] = match method.node {
            RunMethod::Autoregressive => &["hidden", "logits"],
            RunMethod::Embedding => &["hidden"],
            RunMethod::Denoising => &["encode", "denoise", "soft_embeddings"],
        };
        // Graphs of a base that the method does not run are left out.
        self.graphs.retain(|graph| wanted.contains(&graph.name.node.as_str()));
        for name in wanted {
            if self.graphs.iter().any(|graph| graph.name.node == *name) {
                continue;
            }
            let error = Diagnostic::error(
                Code::MissingGraph,
                self.manifest.family.name.span,
                format!("the family has no graph `{name}`"),
            )
            .note(format!("its method needs the graphs {}", wanted.join(", ")))
            .help(format!("write `graph {name}(...) {{ ... }}` in its graph file, or extend a family that has one"));
            self.diagnostics.push(error);
        }
    }

    fn graph(&mut self, frame: &mut Frame, graph: &Block) -> Option<Method> {
        frame.scopes = vec![HashMap::new()];
        frame.bodies = vec![Vec::new()];
        frame.used.clear();
        frame.pass = PassUse::No;
        frame.homes.truncate(1);
        frame.bound.clear();
        let mut params = Vec::new();
        let mut shapes = Bound::default();
        for param in &graph.params {
            let Some(ty) = &param.ty else {
                let message =
                    format!("give `{}` its shape: `{}: [B, L]`", param.name.node, param.name.node);
                self.error(Code::WrongArguments, param.name.span, message);
                return None;
            };
            let optional = matches!(ty.node, ParamType::Optional(_));
            let ParamType::Tensor(dims) = super::call::plain(&ty.node) else {
                self.error(
                    Code::WrongType,
                    ty.span,
                    "a graph takes arrays: give a shape such as `[B, L]`",
                );
                return None;
            };
            let shape = self.declared_shape(frame, dims, ty.span, &mut shapes)?;
            let value =
                self.parameter(frame, &param.name.node, shape, (optional, None), &mut params);
            frame.set(&param.name.node, value);
        }
        let result = self.body(frame, &graph.body, None)?;
        let result = self.block_result(graph, result)?;
        self.check_result(frame, graph, &result, &mut shapes)?;
        let results = self.operands(result, graph.name.span)?;
        Some(Method {
            name: graph.name.node.clone(),
            doc: graph.doc.clone(),
            params,
            pass: frame.pass,
            body: frame.bodies.pop().unwrap_or_default(),
            results,
            span: graph.span,
        })
    }

    /// A shape whose names are new: `B`, `L` and config names.
    fn declared_shape(
        &mut self,
        frame: &mut Frame,
        dims: &[Dim],
        span: Span,
        bound: &mut Bound,
    ) -> Option<Shape> {
        let mut shape = Shape::new();
        for dim in dims {
            match dim {
                Dim::Rest(_) => {
                    self.error(
                        Code::WrongType,
                        span,
                        "a graph's arrays have all their axes written out",
                    );
                    return None;
                }
                Dim::Expr(expr) => match &expr.kind {
                    ExprKind::Name(name) if !self.resolves(frame, name) => {
                        bound.sizes.insert(name.clone(), Poly::atom(name.clone()));
                        shape.push(Poly::atom(name.clone()));
                    }
                    _ => {
                        let scalar = self.scalar(frame, expr)?;
                        shape.push(self.facts.poly(&scalar.expr));
                    }
                },
            }
        }
        Some(shape)
    }

    fn parameter(
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
        Value::Array { operand, shape, optional, present, id: super::new_id() }
    }

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
        self.stack.push(name.clone());
        let value = match at {
            None => self.inline(frame, block, given, hint),
            Some(path) => self.instance(frame, block, given, path, span, hint),
        };
        self.stack.pop();
        value
    }

    /// Binds parameters in a fresh scope on top of the frame; defaults see earlier parameters.
    fn bind_params(
        &mut self,
        frame: &mut Frame,
        block: &Block,
        mut given: HashMap<String, Value>,
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
                            None => Value::Broken(self.diagnostics.split_off(kept)),
                        }
                    }
                    None => Value::None,
                },
            };
            frame.set(name, value);
        }
        self.check_params(frame, block)
    }

    /// Arrays must have the shapes that the block declares.
    fn check_params(&mut self, frame: &mut Frame, block: &Block) -> Option<()> {
        let mut shapes = Bound::default();
        let mut fine = true;
        for param in &block.params {
            let Some(ty) = &param.ty else { continue };
            let ParamType::Tensor(dims) = super::call::plain(&ty.node) else { continue };
            let Some(Value::Array { shape, .. }) = frame.find(&param.name.node).cloned() else {
                continue;
            };
            fine &=
                self.unify(frame, dims, &shape, &mut shapes, (ty.span, &param.name.node)).is_some();
        }
        fine.then_some(())
    }

    fn inline(
        &mut self,
        frame: &mut Frame,
        block: &Block,
        given: HashMap<String, Value>,
        hint: Option<&str>,
    ) -> Option<Value> {
        frame.scopes.push(HashMap::new());
        let visible = std::mem::take(&mut frame.visible);
        let result = self
            .bind_params(frame, block, given)
            .and_then(|()| self.body(frame, &block.body, hint))
            .and_then(|value| self.block_result(block, value))
            .and_then(|value| {
                self.check_result(frame, block, &value, &mut Bound::default()).map(|()| value)
            });
        frame.scopes.pop();
        frame.visible = visible;
        result
    }

    fn instance(
        &mut self,
        frame: &mut Frame,
        block: &Block,
        given: HashMap<String, Value>,
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
        let id = self.specialise(frame, block, given)?;
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
        frame.push(Statement::Let { vars, op, span });
        Some(if single { values.remove(0) } else { Value::Tuple(values) })
    }

    /// The struct of a block with these parameters, made on first use.
    fn specialise(
        &mut self,
        caller: &Frame,
        block: &Block,
        given: HashMap<String, Value>,
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
        self.bind_params(&mut frame, block, inner)?;
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

    /// The statements of a body and its value.
    pub(super) fn body(
        &mut self,
        frame: &mut Frame,
        body: &Body,
        hint: Option<&str>,
    ) -> Option<Value> {
        let mut fine = true;
        let outer_names = std::mem::take(&mut frame.tuple_names);
        for statement in &body.statements {
            fine &= self.statement(frame, statement).is_some();
        }
        frame.tuple_names = outer_names;
        let value = match &body.result {
            Some(result) => self.expr(frame, result, hint),
            None => Some(Value::None),
        };
        value.filter(|_| fine)
    }

    fn block_result(&mut self, block: &Block, value: Value) -> Option<Value> {
        let fine = match &value {
            Value::Tuple(values) => !values.is_empty(),
            Value::None | Value::Broken(_) => false,
            Value::Array { .. } | Value::Scalar(_) => true,
        };
        if fine {
            return Some(value);
        }
        self.diagnostics.push(
            Diagnostic::error(
                Code::WrongTuple,
                block.body.span,
                format!("`{}` ends without a value", block.name.node),
            )
            .help("the last line of a block is what it computes: end it with an expression"),
        );
        None
    }

    fn check_result(
        &mut self,
        frame: &mut Frame,
        block: &Block,
        value: &Value,
        shapes: &mut Bound,
    ) -> Option<()> {
        let Some(declared) = &block.result else { return Some(()) };
        // Names of the parameters' shapes stand for the same sizes in the result.
        for param in &block.params {
            let Some(ty) = &param.ty else { continue };
            if let ParamType::Tensor(dims) = super::call::plain(&ty.node)
                && let Some(Value::Array { shape, .. }) =
                    frame.scopes.last().and_then(|s| s.get(&param.name.node)).cloned()
            {
                let kept = self.diagnostics.len();
                self.unify(frame, dims, &shape, shapes, (ty.span, &param.name.node));
                self.diagnostics.truncate(kept);
            }
        }
        let values = flatten(value.clone());
        if declared.len() != values.len() {
            let at = declared.first().map_or(block.name.span, |shape| shape.span);
            self.diagnostics.push(Diagnostic::error(
                Code::WrongTuple,
                at,
                format!(
                    "`{}` declares {} value(s) and computes {}",
                    block.name.node,
                    declared.len(),
                    values.len()
                ),
            ));
            return None;
        }
        let mut fine = true;
        for (shape_declared, value) in declared.iter().zip(values) {
            let Value::Array { shape, .. } = &value else { continue };
            let at = (shape_declared.span, "the result");
            fine &= self.unify(frame, &shape_declared.node, shape, shapes, at).is_some();
        }
        fine.then_some(())
    }

    /// Operands of a block's values.
    fn operands(&mut self, value: Value, span: Span) -> Option<Vec<Operand>> {
        flatten(value)
            .into_iter()
            .map(|value| match value {
                Value::Array { operand, .. } => Some(operand),
                _ => {
                    self.error(
                        Code::WrongType,
                        span,
                        "a block under a path, and a graph, compute arrays only",
                    );
                    None
                }
            })
            .collect()
    }
}

impl Frame {
    /// Whether the layers' loop is in this very function.
    pub(super) fn own_layers(&self) -> bool {
        self.layer_loop
    }

    /// Opens a set of fields for an arm or a round.
    pub(super) fn open(&mut self, home: Home) {
        self.homes.push(FieldHome { home, fields: Vec::new() });
        self.bodies.push(Vec::new());
    }

    /// Closes it: its fields and statements.
    pub(super) fn close(&mut self) -> (Vec<crate::ir::Field>, Vec<Statement>) {
        let fields = self.homes.pop().map(|home| home.fields).unwrap_or_default();
        (fields, self.bodies.pop().unwrap_or_default())
    }
}

/// The values of a tuple, or the one value.
pub(super) fn flatten(value: Value) -> Vec<Value> {
    match value {
        Value::Tuple(values) => values.into_iter().flat_map(flatten).collect(),
        other => vec![other],
    }
}
