//! The names that a piece of code reads.

use std::collections::HashSet;

use syn::punctuated::Punctuated;
use syn::visit::Visit;

use crate::ir::path::{Part, parts};

/// What a piece of code reads.
#[derive(Debug, Default)]
pub(in crate::emit) struct Reads {
    names: HashSet<String>,
    fields: HashSet<(String, String)>,
}

impl Reads {
    pub(super) fn of_expr(expr: &syn::Expr) -> Self {
        let mut reads = Self::default();
        reads.visit_expr(expr);
        reads
    }

    pub(super) fn of_block(block: &syn::Block) -> Self {
        Self::of_statements(&block.stmts)
    }

    pub(super) fn of_statements(statements: &[syn::Stmt]) -> Self {
        let mut reads = Self::default();
        statements.iter().for_each(|statement| reads.visit_stmt(statement));
        reads
    }

    /// What items and statements read that stand in a module yet to be put together; nothing where
    /// they do not parse, as the module then tells.
    pub(in crate::emit) fn of_text(text: &str) -> Self {
        let parsed = syn::parse_str::<syn::Block>(&format!("{{{text}}}"));
        parsed.map_or_else(|_| Self::default(), |block| Self::of_block(&block))
    }

    /// Whether a variable of this name is read.
    pub(in crate::emit) fn name(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// Whether a field of a variable is read.
    pub(in crate::emit) fn field(&self, of: &str, name: &str) -> bool {
        self.fields.contains(&(of.to_owned(), name.to_owned()))
    }
}

impl<'ast> Visit<'ast> for Reads {
    fn visit_expr_path(&mut self, path: &'ast syn::ExprPath) {
        if let Some(name) = path.path.get_ident() {
            self.names.insert(name.to_string());
        }
    }

    fn visit_expr_field(&mut self, field: &'ast syn::ExprField) {
        if let (syn::Expr::Path(of), syn::Member::Named(name)) = (&*field.base, &field.member)
            && let Some(of) = of.path.get_ident()
        {
            self.fields.insert((of.to_string(), name.to_string()));
        }
        syn::visit::visit_expr_field(self, field);
    }

    /// The macros of generated code take expressions.
    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        let parse = Punctuated::<syn::Expr, syn::Token![,]>::parse_terminated;
        let Ok(args) = call.parse_body_with(parse) else { return };
        if call.path.is_ident("format")
            && let Some(syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. })) =
                args.first()
        {
            for part in parts(&text.value()) {
                if let Part::Index(name) = part {
                    self.names.insert(name.to_owned());
                }
            }
        }
        args.iter().for_each(|arg| Visit::visit_expr(self, arg));
    }
}

#[cfg(test)]
mod tests {
    use super::Reads;

    #[test]
    fn reading_is_naming_a_value() {
        let text = "let a = b.c(&d)?; self.e = f::g(h); ld.at(\"i\", j); S { k, l: m }";
        let reads = Reads::of_text(text);
        let read = |names: &str| names.split(' ').filter(|name| reads.name(name)).count();
        assert_eq!(read("b d self h ld j k m"), 8);
        assert_eq!(read("a c e f g i l S"), 0);
        assert!(reads.field("self", "e") && !reads.field("b", "c"));
    }

    #[test]
    fn macros_read_what_they_are_given() {
        let reads = Reads::of_text("ld.at(&format!(\"a.{b}.{}\", c.d), json!(e)); vec![f; 2];");
        assert!(["b", "c", "e"].iter().all(|name| reads.name(name)));
        assert!(!reads.name("a") && reads.field("c", "d"));
    }
}
