//! The graph with its shapes.

use std::fmt::Write as _;

use super::{size, value};
use crate::expr::ConfigValues;
use crate::ir::{ArmBody, Op, Operand, Program, Statement, Struct, Variable};

/// Every function of a program, line by line, with the shape of each array.
pub fn graph(program: &Program, config: Option<&ConfigValues>) -> String {
    let mut printer = Printer { config, out: String::new() };
    for item in &program.structs {
        printer.item(item);
    }
    printer.out
}

struct Printer<'a> {
    config: Option<&'a ConfigValues>,
    out: String,
}

impl Printer<'_> {
    fn line(&mut self, depth: usize, text: &str) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.out, "{}{text}", "    ".repeat(depth));
    }

    fn item(&mut self, item: &Struct) {
        for method in &item.methods {
            let params: Vec<String> =
                method.params.iter().map(|param| self.variable(param)).collect();
            let name = if method.name == "forward" {
                item.block.clone()
            } else {
                format!("{}.{}", item.block, method.name)
            };
            self.line(0, &format!("{name}({}) {{", params.join(", ")));
            self.statements(&method.body, 1);
            let results: Vec<String> =
                method.results.iter().map(|result| self.operand(result)).collect();
            self.line(1, &results.join(", "));
            self.line(0, "}\n");
        }
    }

    fn variable(&self, variable: &Variable) -> String {
        let sizes: Vec<String> =
            variable.shape.iter().map(|axis| size(axis, self.config)).collect();
        let mark = if variable.optional { "?" } else { "" };
        format!("{}: [{}]{mark}", variable.name, sizes.join(", "))
    }

    fn variables(&self, variables: &[Variable]) -> String {
        let shown: Vec<String> = variables.iter().map(|variable| self.variable(variable)).collect();
        match shown.as_slice() {
            [one] => one.clone(),
            _ => format!("({})", shown.join(", ")),
        }
    }

    fn statements(&mut self, statements: &[Statement], depth: usize) {
        for statement in statements {
            match statement {
                Statement::Let { vars, op, .. } => {
                    let text = format!("{} = {}", self.variables(vars), self.op(op));
                    self.line(depth, &text);
                }
                Statement::Choice { vars, arms, .. } => {
                    let head = if vars.is_empty() {
                        "match {".to_owned()
                    } else {
                        format!("{} = match {{", self.variables(vars))
                    };
                    self.line(depth, &head);
                    for arm in arms {
                        self.arm(arm, depth + 1);
                    }
                    self.line(depth, "}");
                }
                Statement::Repeat { item, index, carried, body, next, .. } => {
                    let index = index.as_deref().unwrap_or(item);
                    for (variable, start) in carried {
                        let text = format!("{} = {}", self.variable(variable), self.operand(start));
                        self.line(depth, &text);
                    }
                    self.line(depth, &format!("for {index} {{"));
                    self.statements(body, depth + 1);
                    let pairs: Vec<String> = carried
                        .iter()
                        .zip(next)
                        .map(|((variable, _), value)| {
                            format!("{} = {}", variable.name, self.operand(value))
                        })
                        .collect();
                    self.line(depth + 1, &pairs.join(", "));
                    self.line(depth, "}");
                }
            }
        }
    }

    fn arm(&mut self, arm: &ArmBody, depth: usize) {
        self.line(depth, &format!("{} => {{", arm.variant));
        self.statements(&arm.body, depth + 1);
        let yields: Vec<String> = arm.yields.iter().map(|value| self.operand(value)).collect();
        if !yields.is_empty() {
            self.line(depth + 1, &yields.join(", "));
        }
        self.line(depth, "}");
    }

    fn op(&self, op: &Op) -> String {
        let args = |args: &[Operand]| {
            args.iter().map(|arg| self.operand(arg)).collect::<Vec<_>>().join(", ")
        };
        match op {
            Op::Call { path, args: given, .. } => format!("{path}({})", args(given)),
            Op::Forward { field, args: given, .. } => format!("{}({})", field.name, args(given)),
            Op::Copy(operand) => self.operand(operand),
        }
    }

    fn operand(&self, operand: &Operand) -> String {
        match operand {
            Operand::Variable { name, .. } | Operand::Index(name) => name.clone(),
            Operand::None => "none".to_owned(),
            Operand::Literal(scalar) => value(&scalar.expr, self.config),
            Operand::Field(field) => field.name.clone(),
            Operand::Some(inner) => self.operand(inner),
        }
    }
}
