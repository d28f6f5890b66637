//! The whole model: one struct whose methods are the family's graphs.

use std::collections::HashMap;

use super::Lowerer;
use super::frame::Frame;
use super::sizes::Bound;
use crate::diag::{Code, Diagnostic};
use crate::ir::{Method, PassUse, Program, Struct};
use crate::manifest::Method as RunMethod;
use crate::syntax::ast::{Block, ParamType};

impl Lowerer<'_> {
    /// The whole model: one struct whose methods are the family's graphs.
    pub(super) fn model(&mut self) -> Option<Program> {
        let warnings = self.unused();
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
            warnings,
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

    pub(super) fn graph(&mut self, frame: &mut Frame, graph: &Block) -> Option<Method> {
        self.inside = super::Inside::of(graph);
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
            let ParamType::Tensor(dims) = ty.node.plain() else {
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
}
