//! Functions over arrays.

use std::fmt::Write as _;

use super::Emitter;
use crate::ir::{
    ArmBody, Field, FieldKind, FieldRef, Home, Method, Op, Operand, PassUse, ScalarType, Statement,
    Struct, Variable,
};
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
        let mut writer = Writer { item, blocks: Vec::new(), out: String::new() };
        // `let x = f()?; Ok(x)` is `f()`.
        let (kept, last) = match returned(method) {
            Some((op, before)) => (before, writer.call(op, 1)),
            None => {
                let values: Vec<String> = method.results.iter().map(owned).collect();
                (method.body.as_slice(), format!("Ok({})", tuple(&values)))
            }
        };
        writer.statements(kept);
        let body = writer.out;
        for param in &method.params {
            let ty = if param.optional { "Option<&Array>" } else { "&Array" };
            let _ = write!(params, ", {}: {ty}", param.name);
        }
        let mut shapes = String::new();
        for param in &method.params {
            let _ = writeln!(shapes, "/// `{}`: {}", param.name, crate::shapes::show(&param.shape));
        }
        let name = &method.name;
        format!("{shapes}fn {name}(&self{params}) -> Result<{result}> {{\n{body}{last}\n}}\n")
    }
}

/// Where the last statement's result is returned as it is: what it computes, and the statements
/// before it.
fn returned(method: &Method) -> Option<(&Op, &[Statement])> {
    let (Statement::Let { vars, op, .. }, before) = method.body.split_last()? else { return None };
    let ([var], [Operand::Variable { name, borrowed: false, .. }]) =
        (vars.as_slice(), method.results.as_slice())
    else {
        return None;
    };
    let plain = var.name == *name && !matches!(op, Op::Copy(_)) && !var.optional;
    plain.then_some((op, before))
}

/// Writes the statements of a function.
struct Writer<'a> {
    item: &'a Struct,
    /// The rows around a statement that are themselves blocks, with no fields around these.
    blocks: Vec<&'a str>,
    out: String,
}

impl<'a> Writer<'a> {
    fn statements(&mut self, statements: &'a [Statement]) {
        for statement in statements {
            match statement {
                Statement::Let { vars, op, .. } => {
                    let names = pattern(vars, matches!(op, Op::Call { many: true, .. }));
                    let value = self.op(op, vars.len());
                    let _ = writeln!(self.out, "let {names} = {value};");
                }
                Statement::Choice { field, name, vars, arms, .. } => {
                    let results: Vec<String> = vars.iter().map(|var| var.name.clone()).collect();
                    let bind = if results.is_empty() {
                        String::new()
                    } else {
                        format!("let {} = ", tuple(&results))
                    };
                    let _ = writeln!(self.out, "{bind}match &{} {{", field_path(field));
                    for arm in arms {
                        let last = arm_tail(arm, vars).map(|op| self.op(op, 1));
                        let kept = match (&last, arm.body.split_last()) {
                            (Some(_), Some((_, before))) => before,
                            _ => arm.body.as_slice(),
                        };
                        let binds = match arm.binds.is_empty() {
                            true => String::new(),
                            false => format!(" {{ {} }}", arm.binds.join(", ")),
                        };
                        let _ = writeln!(self.out, "{name}::{}{binds} => {{", arm.variant);
                        self.statements(kept);
                        let own = bound_names(&arm.body);
                        let yields: Vec<String> = arm
                            .yields
                            .iter()
                            .zip(vars)
                            .map(|(operand, var)| yielded(operand, var, &own))
                            .collect();
                        if !yields.is_empty() {
                            self.out.push_str(&last.unwrap_or_else(|| tuple(&yields)));
                        }
                        self.out.push_str("}\n");
                    }
                    self.out.push_str(if results.is_empty() { "}\n" } else { "};\n" });
                }
                Statement::Repeat { field, item, index, carried, body, next, .. } => {
                    self.repeat(field, item, index.as_deref(), carried, body, next);
                }
            }
        }
    }

    fn repeat(
        &mut self,
        field: &FieldRef,
        name: &'a str,
        index: Option<&str>,
        carried: &[(Variable, Operand)],
        body: &'a [Statement],
        next: &[Operand],
    ) {
        for (var, start) in carried {
            // The array before the loop has the same name: it goes into the loop.
            let value = yielded(start, var, &[]);
            let own = format!("{}.clone()", var.name);
            let value = if value == own { &var.name } else { &value };
            if !matches!(start, Operand::Variable { borrowed: true, .. }) || *value != var.name {
                let _ = writeln!(self.out, "let mut {} = {value};", var.name);
            } else {
                let _ = writeln!(self.out, "let mut {} = {own};", var.name);
            }
        }
        let rows = field_path(field);
        let _ = match index.map(super::ident) {
            Some(index) => {
                writeln!(self.out, "for ({index}, {name}) in (0_i32..).zip(&{rows}) {{")
            }
            None => writeln!(self.out, "for {name} in &{rows} {{"),
        };
        let around = self.blocks.len();
        if is_row_of_blocks(&self.item.fields, &field.name) {
            self.blocks.push(name);
        }
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
            assigned = Some(format!("{} = {};\n", target.name, self.op(op, 1)));
        }
        self.statements(rest);
        match assigned {
            Some(line) => self.out.push_str(&line),
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
                        let _ = writeln!(self.out, "{name} = {value};");
                    }
                    moves => {
                        let names: Vec<&str> =
                            moves.iter().map(|(name, _)| name.as_str()).collect();
                        let values: Vec<&str> =
                            moves.iter().map(|(_, value)| value.as_str()).collect();
                        let _ =
                            writeln!(self.out, "({}) = ({});", names.join(", "), values.join(", "));
                    }
                }
            }
        }
        self.blocks.truncate(around);
        self.out.push_str("}\n");
    }

    /// What is computed, with `?` where it may fail.
    fn op(&self, op: &Op, count: usize) -> String {
        let sign = if matches!(op, Op::Copy(_)) { "" } else { "?" };
        self.call(op, count) + sign
    }

    /// The call.
    fn call(&self, op: &Op, count: usize) -> String {
        match op {
            Op::Copy(operand) => owned(operand),
            Op::Call { path, pass, slot, args, many } => {
                let mut list = pass_args(*pass, *slot);
                list.extend(args.iter().map(argument));
                let generic = if *many { format!("::<{count}>") } else { String::new() };
                format!("{path}{generic}({})", list.join(", "))
            }
            Op::Forward { field, pass, slot, args } => {
                let mut list = pass_args(*pass, *slot);
                list.extend(args.iter().map(argument));
                let path = match &field.home {
                    Home::Item(row) if self.blocks.contains(&row.as_str()) => row.clone(),
                    _ => field_path(field),
                };
                format!("{path}.forward({})", list.join(", "))
            }
        }
    }
}

/// The last step of an arm, where its result is all that the arm yields.
fn arm_tail<'a>(arm: &'a ArmBody, vars: &[Variable]) -> Option<&'a Op> {
    let Statement::Let { vars: bound, op, .. } = arm.body.last()? else { return None };
    let ([bound], [Operand::Variable { name, borrowed: false, .. }], [var]) =
        (bound.as_slice(), arm.yields.as_slice(), vars)
    else {
        return None;
    };
    (bound.name == *name && bound.optional == var.optional).then_some(op)
}

fn pass_args(pass: PassUse, slot: bool) -> Vec<String> {
    let mut list = Vec::new();
    if pass != PassUse::No {
        list.push("cx".to_owned());
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

/// Whether the rows that a field holds are just a block each.
fn is_row_of_blocks(fields: &[Field], name: &str) -> bool {
    fn find<'f>(fields: &'f [Field], name: &str) -> Option<&'f FieldKind> {
        fields.iter().find_map(|field| match &field.kind {
            FieldKind::Repeat { .. } if field.name == name => Some(&field.kind),
            FieldKind::Choice { arms, .. } => arms.iter().find_map(|arm| find(&arm.fields, name)),
            FieldKind::Repeat { fields, .. } => find(fields, name),
            _ => None,
        })
    }
    let kind = find(fields, name);
    matches!(kind, Some(FieldKind::Repeat { item, fields, .. }) if item.is_empty() && !fields.is_empty())
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
