//! Functions over arrays.

use std::fmt::Write as _;

use super::Emitter;
use super::structs::mentions_word;
use super::unused::unmissed;
use crate::ir::{
    ArmBody, FieldRef, Home, Method, Op, Operand, PassUse, ScalarType, Statement, Struct,
};
use crate::ir::{Field, FieldKind, Variable};
use crate::syntax::ast::ExprKind;

impl Emitter<'_> {
    pub(super) fn method(&self, item: &Struct, method: &Method) -> String {
        let mut params = String::new();
        match method.pass {
            PassUse::No => {}
            PassUse::Reads => params.push_str(", cx: &Pass<'_>"),
            PassUse::Writes => params.push_str(", cx: &mut Pass<'_>"),
        }
        let one = |operand: &Operand| match operand {
            Operand::None | Operand::Variable { optional: true, .. } => "Option<Array>",
            _ => "Array",
        };
        let results: Vec<&str> = method.results.iter().map(one).collect();
        let result = tuple(&results.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>());
        let mut body = String::new();
        self.statements(item, &method.body, &mut body, method.pass);
        let values: Vec<String> = method.results.iter().map(owned).collect();
        // `let x = f()?; Ok(x)` is `f()`.
        let tail = self.tail(item, method, &values);
        let body = match &tail {
            Some((kept, _)) => kept.clone(),
            None => body,
        };
        let last = match tail {
            Some((_, call)) => call,
            None => format!("Ok({})", tuple(&values)),
        };
        let body = unmissed(body, &last, &method.body);
        for param in &method.params {
            let ty = if param.optional { "Option<&Array>" } else { "&Array" };
            // What a decided choice left over stays a parameter: callers give it.
            let used = [&body, &last].iter().any(|text| mentions_word(text, &param.name));
            let unused = if used { "" } else { "_" };
            let _ = write!(params, ", {unused}{}: {ty}", param.name);
        }
        let mut shapes = String::new();
        for param in &method.params {
            let _ = writeln!(shapes, "/// `{}`: {}", param.name, crate::shapes::show(&param.shape));
        }
        let name = &method.name;
        format!("{shapes}fn {name}(&self{params}) -> Result<{result}> {{\n{body}{last}\n}}\n")
    }

    /// Where the last statement's result is returned as it is: the statements before it, and the
    /// call without `?`.
    fn tail(&self, item: &Struct, method: &Method, values: &[String]) -> Option<(String, String)> {
        let (last, before) = method.body.split_last()?;
        let Statement::Let { vars, op, .. } = last else { return None };
        let ([var], [value]) = (vars.as_slice(), values) else { return None };
        if var.name != *value || matches!(op, Op::Copy(_)) || var.optional {
            return None;
        }
        let mut body = String::new();
        self.statements(item, before, &mut body, method.pass);
        let call = self.op(op, vars.len(), method.pass);
        Some((body, call.strip_suffix('?').unwrap_or(&call).to_owned()))
    }

    fn statements(&self, item: &Struct, statements: &[Statement], out: &mut String, pass: PassUse) {
        for statement in statements {
            match statement {
                Statement::Let { vars, op, .. } => {
                    let names = pattern(vars, matches!(op, Op::Call { many: true, .. }));
                    let _ = writeln!(out, "let {names} = {};", self.op(op, vars.len(), pass));
                }
                Statement::Choice { field, name, vars, arms, .. } => {
                    let results: Vec<String> = vars.iter().map(|var| var.name.clone()).collect();
                    let bind = if results.is_empty() {
                        String::new()
                    } else {
                        format!("let {} = ", tuple(&results))
                    };
                    let _ = writeln!(out, "{bind}match &{} {{", field_path(field));
                    for arm in arms {
                        let mut body = String::new();
                        let last = self.arm_tail(arm, vars, pass);
                        let kept = match (&last, arm.body.split_last()) {
                            (Some(_), Some((_, before))) => before,
                            _ => arm.body.as_slice(),
                        };
                        self.statements(item, kept, &mut body, pass);
                        let own = bound_names(&arm.body);
                        let yields: Vec<String> = arm
                            .yields
                            .iter()
                            .zip(vars)
                            .map(|(operand, var)| yielded(operand, var, &own))
                            .collect();
                        let value = last.unwrap_or_else(|| tuple(&yields));
                        let used: Vec<String> = arm
                            .binds
                            .iter()
                            .filter(|bind| {
                                mentions_word(&body, bind) || mentions_word(&value, bind)
                            })
                            .cloned()
                            .collect();
                        let rest = if used.len() == arm.binds.len() { "" } else { ".." };
                        let binds = match (arm.binds.is_empty(), used.is_empty()) {
                            (true, _) => String::new(),
                            (false, true) => " { .. }".to_owned(),
                            (false, false) => {
                                let gap = if rest.is_empty() { "" } else { ", " };
                                format!(" {{ {}{gap}{rest} }}", used.join(", "))
                            }
                        };
                        let value = if yields.is_empty() { String::new() } else { value };
                        let _ =
                            writeln!(out, "{name}::{}{binds} => {{ {body}{value} }}", arm.variant);
                    }
                    out.push_str(if results.is_empty() { "}\n" } else { "};\n" });
                }
                Statement::Repeat { field, item: name, index, carried, body, next, .. } => {
                    self.repeat(
                        item,
                        field,
                        name,
                        index.as_deref(),
                        carried,
                        body,
                        next,
                        out,
                        pass,
                    );
                }
            }
        }
    }

    /// The last call of an arm, where its result is all that the arm yields.
    fn arm_tail(&self, arm: &ArmBody, vars: &[Variable], pass: PassUse) -> Option<String> {
        let Statement::Let { vars: bound, op, .. } = arm.body.last()? else { return None };
        let ([bound], [Operand::Variable { name, borrowed: false, .. }], [var]) =
            (bound.as_slice(), arm.yields.as_slice(), vars)
        else {
            return None;
        };
        let call = self.op(op, 1, pass);
        (bound.name == *name && bound.optional == var.optional).then_some(call)
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one statement")]
    fn repeat(
        &self,
        item: &Struct,
        field: &FieldRef,
        name: &str,
        index: Option<&str>,
        carried: &[(Variable, Operand)],
        body: &[Statement],
        next: &[Operand],
        out: &mut String,
        pass: PassUse,
    ) {
        for (var, start) in carried {
            // The array before the loop has the same name: it goes into the loop.
            let value = yielded(start, var, &[]);
            let own = format!("{}.clone()", var.name);
            let value = if value == own { &var.name } else { &value };
            if !matches!(start, Operand::Variable { borrowed: true, .. }) || *value != var.name {
                let _ = writeln!(out, "let mut {} = {value};", var.name);
            } else {
                let _ = writeln!(out, "let mut {} = {own};", var.name);
            }
        }
        let single = single_block(item, field);
        let mut inner = String::new();
        let mut rest = body;
        let mut assigned = None;
        // `let y = f(x)?; x = y;` is `x = f(x)?;`
        if let (Some((Statement::Let { vars, op, .. }, before)), [operand], [(target, _)]) =
            (body.split_last(), next, carried)
            && let ([var], Operand::Variable { name: last, borrowed: false, .. }) =
                (vars.as_slice(), operand)
            && var.name == *last
            && var.optional == target.optional
        {
            rest = before;
            assigned = Some(format!("{} = {};\n", target.name, self.op(op, 1, pass)));
        }
        self.statements(item, rest, &mut inner, pass);
        match assigned {
            Some(line) => inner.push_str(&line),
            None => {
                let own = bound_names(body);
                let moves: Vec<(String, String)> = carried
                    .iter()
                    .zip(next)
                    .map(|((var, _), operand)| (var.name.clone(), yielded(operand, var, &own)))
                    .filter(|(name, value)| name != value && *value != format!("{name}.clone()"))
                    .collect();
                match moves.as_slice() {
                    [] => {}
                    [(name, value)] => {
                        let _ = writeln!(inner, "{name} = {value};");
                    }
                    moves => {
                        let names: Vec<&str> =
                            moves.iter().map(|(name, _)| name.as_str()).collect();
                        let values: Vec<&str> =
                            moves.iter().map(|(_, value)| value.as_str()).collect();
                        let _ =
                            writeln!(inner, "({}) = ({});", names.join(", "), values.join(", "));
                    }
                }
            }
        }
        if let Some(block) = &single {
            inner = inner.replace(&format!("{name}.{block}."), &format!("{name}."));
        }
        let rows = field_path(field);
        let binding = if mentions_word(&inner, name) { name } else { "_" };
        match index {
            Some(index) => {
                let index = super::ident(index);
                let _ = writeln!(
                    out,
                    "for ({index}, {binding}) in (0_i32..).zip(&{rows}) {{\n{inner}}}"
                );
            }
            None => {
                let _ = writeln!(out, "for {binding} in &{rows} {{\n{inner}}}");
            }
        }
    }

    /// The call, with `?`.
    fn op(&self, op: &Op, count: usize, around: PassUse) -> String {
        match op {
            Op::Copy(operand) => owned(operand),
            Op::Call { path, pass, slot, args, many } => {
                let mut list = pass_args(*pass, *slot, around);
                list.extend(args.iter().map(argument));
                let generic = if *many { format!("::<{count}>") } else { String::new() };
                format!("{path}{generic}({})?", list.join(", "))
            }
            Op::Forward { field, pass, slot, args } => {
                let mut list = pass_args(*pass, *slot, around);
                list.extend(args.iter().map(argument));
                format!("{}.forward({})?", field_path(field), list.join(", "))
            }
        }
    }
}

fn pass_args(pass: PassUse, slot: bool, around: PassUse) -> Vec<String> {
    let mut list = Vec::new();
    match (pass, around) {
        (PassUse::No, _) => {}
        (_, _) => list.push("cx".to_owned()),
    }
    if slot {
        list.push("self.slot".to_owned());
    }
    list
}

fn field_path(field: &FieldRef) -> String {
    match &field.home {
        Home::This => format!("self.{}", field.name),
        Home::Bound => field.name.clone(),
        Home::Item(item) => format!("{item}.{}", field.name),
    }
}

/// The name of the only block that a round holds, when a round is just that.
fn single_block(item: &Struct, field: &FieldRef) -> Option<String> {
    fn find<'f>(fields: &'f [Field], name: &str) -> Option<&'f Field> {
        fields.iter().find_map(|field| {
            if field.name == name && matches!(field.kind, FieldKind::Repeat { .. }) {
                return Some(field);
            }
            match &field.kind {
                FieldKind::Choice { arms, .. } => {
                    arms.iter().find_map(|arm| find(&arm.fields, name))
                }
                FieldKind::Repeat { fields, .. } => find(fields, name),
                _ => None,
            }
        })
    }
    match &find(&item.fields, &field.name)?.kind {
        FieldKind::Repeat { fields, item, .. } if item.is_empty() => {
            fields.first().map(|field| field.name.clone())
        }
        _ => None,
    }
}

/// An operand as an argument.
fn argument(operand: &Operand) -> String {
    match operand {
        Operand::Variable { name, borrowed: true, .. } => name.clone(),
        Operand::Variable { name, optional: true, .. } => format!("{name}.as_ref()"),
        Operand::Variable { name, .. } => format!("&{name}"),
        Operand::None => "None".to_owned(),
        Operand::Some(inner) => format!("Some({})", argument(inner)),
        Operand::Literal(scalar) => literal(&scalar.expr.kind, &scalar.ty),
        Operand::Field(field) => match (&field.home, field.copy) {
            (Home::Bound, true) => format!("*{}", field.name),
            (Home::Bound, false) => field.name.clone(),
            (_, true) => field_path(field),
            (_, false) => format!("&{}", field_path(field)),
        },
        Operand::Index(name) => super::ident(name),
    }
}

fn literal(kind: &ExprKind, ty: &ScalarType) -> String {
    match (kind, ty) {
        (ExprKind::Int(value), ScalarType::Float) => super::scalar::single(*value as f64),
        (ExprKind::Int(value), _) => value.to_string(),
        (ExprKind::Float(value), _) => super::scalar::single(*value),
        (ExprKind::List(items), _) => {
            let items: Vec<String> =
                items.iter().map(|item| literal(&item.kind, &ScalarType::Int)).collect();
            format!("&[{}]", items.join(", "))
        }
        (ExprKind::Bool(value), _) => value.to_string(),
        (ExprKind::Str(text), _) => format!("{text:?}"),
        _ => "None".to_owned(),
    }
}

/// An operand as an owned array.
fn owned(operand: &Operand) -> String {
    match operand {
        Operand::Variable { name, borrowed: true, optional: true } => format!("{name}.cloned()"),
        Operand::Variable { name, borrowed: true, .. } => format!("{name}.clone()"),
        Operand::Variable { name, .. } => name.clone(),
        Operand::Field(field) => format!("{}.clone()", field_path(field)),
        other => argument(other),
    }
}

/// An operand as the value of a variable that may be optional.
///
/// Names in `own` were bound right here and may be moved.
fn yielded(operand: &Operand, var: &Variable, own: &[&str]) -> String {
    let value = match operand {
        Operand::Variable { name, borrowed: false, .. } if own.contains(&name.as_str()) => {
            name.clone()
        }
        _ => cloned(operand),
    };
    match (operand, var.optional) {
        (Operand::None, _) => "None".to_owned(),
        (Operand::Variable { optional: false, .. } | Operand::Field(_), true) => {
            format!("Some({value})")
        }
        _ => value,
    }
}

/// Names that statements bind at their own level.
fn bound_names(statements: &[Statement]) -> Vec<&str> {
    let vars = statements.iter().flat_map(|statement| match statement {
        Statement::Let { vars, .. } | Statement::Choice { vars, .. } => vars.iter().collect(),
        Statement::Repeat { carried, .. } => carried.iter().map(|(var, _)| var).collect::<Vec<_>>(),
    });
    vars.map(|var| var.name.as_str()).collect()
}

/// Owned, and the original stays.
fn cloned(operand: &Operand) -> String {
    match operand {
        Operand::Variable { name, borrowed: false, .. } => format!("{name}.clone()"),
        other => owned(other),
    }
}

fn pattern(vars: &[Variable], array: bool) -> String {
    let names: Vec<String> = vars.iter().map(|var| var.name.clone()).collect();
    if array { format!("[{}]", names.join(", ")) } else { tuple(&names) }
}

fn tuple(parts: &[String]) -> String {
    match parts {
        [one] => one.clone(),
        many => format!("({})", many.join(", ")),
    }
}
