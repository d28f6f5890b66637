//! The blocks, graphs and externs that a family can call, and what its manifest sets in them.

use std::collections::{HashMap, HashSet};

use super::Lowerer;
use crate::diag::{Code, Diagnostic};
use crate::source::Span;
use crate::syntax::ast::{Block, Expr, ExprKind, GraphFile};

impl Lowerer<'_> {
    pub(super) fn collect(&mut self, graphs: &[GraphFile], library: &[(String, GraphFile)]) {
        for (_, file) in library {
            for ext in &file.externs {
                self.externs.insert(ext.name.node.clone(), ext.clone());
            }
        }
        self.take_uses(graphs, library);
        let inherited =
            self.manifest.graphs.last().is_some_and(|last| last.span.file != self.manifest.file);
        let last = graphs.last().filter(|_| !inherited);
        self.own = last.and_then(|file| {
            let first = file.blocks.iter().chain(&file.graphs).map(|block| block.span.file).next();
            first.or_else(|| file.externs.first().map(|ext| ext.span.file))
        });
        for file in graphs {
            let mut here: HashMap<&str, Span> = HashMap::new();
            let named = file.blocks.iter().chain(&file.graphs).map(|block| &block.name);
            for name in named.chain(file.externs.iter().map(|ext| &ext.name)) {
                if let Some(first) = here.insert(&name.node, name.span) {
                    self.diagnostics.push(
                        Diagnostic::error(
                            Code::DefinedTwice,
                            name.span,
                            format!("`{}` is defined twice in this file", name.node),
                        )
                        .label(first, "first defined here")
                        .help("give one of them another name"),
                    );
                }
            }
            for ext in &file.externs {
                self.externs.insert(ext.name.node.clone(), ext.clone());
            }
            for block in &file.blocks {
                self.blocks.insert(block.name.node.clone(), block.clone());
            }
            for graph in &file.graphs {
                self.graphs.retain(|known| known.name.node != graph.name.node);
                self.graphs.push(graph.clone());
            }
        }
        self.check_settings();
    }

    /// Library blocks come in by `use`; what those use themselves comes along.
    fn take_uses(&mut self, graphs: &[GraphFile], library: &[(String, GraphFile)]) {
        let mut all: HashMap<&str, (&str, &Block)> = HashMap::new();
        for (module, file) in library {
            for block in &file.blocks {
                all.insert(&block.name.node, (module, block));
            }
        }
        for file in graphs {
            for line in &file.uses {
                let module: Vec<&str> = line.module.iter().map(|part| part.node.as_str()).collect();
                for name in &line.names {
                    let found = all.get(name.node.as_str()).filter(|(home, _)| {
                        module.first() == Some(&"std")
                            && module.get(1).is_none_or(|wanted| wanted == home)
                    });
                    if found.is_none() && !self.externs.contains_key(&name.node) {
                        let known =
                            all.keys().copied().chain(self.externs.keys().map(String::as_str));
                        let error = Diagnostic::error(
                            Code::UnknownCall,
                            name.span,
                            format!("`{}` is not in `{}`", name.node, module.join("::")),
                        );
                        self.diagnostics.push(error.did_you_mean(&name.node, known));
                    }
                }
            }
        }
        // Every library block is in reach of the library's own; a family names those it calls.
        for (name, (_, block)) in all {
            self.blocks.insert(name.to_owned(), block.clone());
        }
    }

    fn check_settings(&mut self) {
        for setting in &self.manifest.graph {
            let name = &setting.block.node;
            let Some(block) =
                self.blocks.get(name).or_else(|| self.graphs.iter().find(|g| g.name.node == *name))
            else {
                if setting.block.span.file != self.manifest.file {
                    continue;
                }
                let error = Diagnostic::error(
                    Code::UnknownCall,
                    setting.block.span,
                    format!("no block is named `{name}`"),
                );
                let known: Vec<String> = self.blocks.keys().cloned().collect();
                let known = known.iter().map(String::as_str);
                self.diagnostics.push(error.did_you_mean(name, known));
                continue;
            };
            // A base's settings for its own block do not bind a family that has another of that name.
            let inherited = setting.block.span.file != self.manifest.file;
            if !inherited && !block.params.iter().any(|param| param.name.node == setting.param.node)
            {
                let known: Vec<String> =
                    block.params.iter().map(|param| param.name.node.clone()).collect();
                let error = Diagnostic::error(
                    Code::WrongArguments,
                    setting.param.span,
                    format!("block `{name}` has no parameter `{}`", setting.param.node),
                )
                .label(block.name.span, "the block is defined here");
                let known = known.iter().map(String::as_str);
                self.diagnostics.push(error.did_you_mean(&setting.param.node, known));
            }
        }
    }

    /// The value a block's parameter has when a call leaves it out.
    pub(super) fn default_of(
        &self,
        block: &str,
        param: &crate::syntax::ast::Param,
    ) -> Option<Expr> {
        self.manifest
            .graph
            .iter()
            .rev()
            .find(|setting| setting.block.node == block && setting.param.node == param.name.node)
            .map(|setting| setting.value.clone())
            .or_else(|| param.default.clone())
    }

    /// Blocks of the family's own graph file that nothing calls.
    pub(super) fn unused(&self) -> Vec<Diagnostic> {
        let Some(own) = self.own else { return Vec::new() };
        let mut called: HashSet<String> = HashSet::new();
        let bodies = self.blocks.values().chain(&self.graphs).map(|block| &block.body);
        for body in bodies {
            crate::syntax::visit::body(body, &mut |expr| {
                if let ExprKind::Call(call) = &expr.kind {
                    called.insert(call.callee.node.clone());
                }
            });
        }
        let mut unused: Vec<&Block> = self
            .blocks
            .values()
            .filter(|block| block.span.file == own && !called.contains(block.name.node.as_str()))
            .collect();
        unused.sort_by_key(|block| block.span.start);
        let others =
            || called.iter().map(String::as_str).filter(|name| self.blocks.contains_key(*name));
        unused
            .into_iter()
            .map(|block| {
                let name = &block.name.node;
                Diagnostic::warning(
                    Code::UnusedBlock,
                    block.name.span,
                    format!("nothing calls `{name}`"),
                )
                .did_you_mean_or(name, others(), || "call it, or take it out".to_owned())
            })
            .collect()
    }
}
