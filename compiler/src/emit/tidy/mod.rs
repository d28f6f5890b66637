//! What is settled on the parsed tree of a module: names that nothing reads, parentheses that
//! nothing needs, configs that nothing asks for. Writers need not know what follows in the text.

mod reads;

use std::collections::HashSet;

use proc_macro2::TokenStream;
use syn::visit_mut::{self, VisitMut};
use syn::{Expr, FnArg, Ident, Pat, Signature, Stmt};

pub(super) use reads::Reads;

/// Settles a module; `pinned` for a graph that is for one config alone, where `load` is given the
/// config only if it reads it.
pub(super) fn tidy(file: &mut syn::File, pinned: bool) {
    let mut tidy = Tidy { pinned, ..Tidy::default() };
    tidy.visit_file_mut(file);
}

#[derive(Default)]
struct Tidy {
    pinned: bool,
    /// The type whose functions are visited.
    home: String,
    /// Types whose `load` was given a config that it did not read, and is no longer given one.
    without_config: HashSet<String>,
}

impl Tidy {
    /// `T::load` of a type that needs no config.
    fn is_bare_load(&self, call: &Expr) -> bool {
        let Expr::Path(path) = call else { return false };
        let mut names = path.path.segments.iter().map(|segment| segment.ident.to_string());
        let (home, function) = (names.next(), names.next());
        function.as_deref() == Some("load")
            && home.is_some_and(|home| self.without_config.contains(&home))
    }

    fn load_without_config(&mut self, signature: &mut Signature, reads: &Reads) {
        let asked = signature.inputs.iter().any(|arg| named(arg, "cfg"));
        if !self.pinned || signature.ident != "load" || !asked || reads.name("cfg") {
            return;
        }
        let kept = std::mem::take(&mut signature.inputs).into_iter();
        signature.inputs = kept.filter(|arg| !named(arg, "cfg")).collect();
        self.without_config.insert(self.home.clone());
    }
}

/// A parameter of this name.
fn named(arg: &FnArg, name: &str) -> bool {
    let FnArg::Typed(arg) = arg else { return false };
    matches!(&*arg.pat, Pat::Ident(pat) if pat.ident == name)
}

/// Parameters that a function does not read get an underscore, and keep their names where they
/// are arrays: those say what callers give.
fn unread_params(signature: &mut Signature, reads: &Reads) {
    let method = signature.receiver().is_some();
    for arg in &mut signature.inputs {
        let FnArg::Typed(arg) = arg else { continue };
        let Pat::Ident(pat) = &mut *arg.pat else { continue };
        if reads.name(&pat.ident.to_string()) {
            continue;
        }
        if method {
            underscore(&mut pat.ident);
        } else {
            *arg.pat = wild();
        }
    }
}

fn underscore(name: &mut Ident) {
    if !name.to_string().starts_with('_') {
        *name = Ident::new(&format!("_{name}"), name.span());
    }
}

fn wild() -> Pat {
    Pat::Wild(syn::PatWild { attrs: Vec::new(), underscore_token: <syn::Token![_]>::default() })
}

/// Puts an underscore before what `let` binds and the function does not read, such as the second
/// result of a block whose caller takes the first alone.
struct UnreadLets<'a>(&'a Reads);

impl VisitMut for UnreadLets<'_> {
    fn visit_local_mut(&mut self, local: &mut syn::Local) {
        self.pattern(&mut local.pat);
        visit_mut::visit_local_mut(self, local);
    }
}

impl UnreadLets<'_> {
    fn pattern(&self, pat: &mut Pat) {
        match pat {
            Pat::Ident(pat) if !self.0.name(&pat.ident.to_string()) => underscore(&mut pat.ident),
            Pat::Tuple(pat) => pat.elems.iter_mut().for_each(|pat| self.pattern(pat)),
            Pat::Slice(pat) => pat.elems.iter_mut().for_each(|pat| self.pattern(pat)),
            _ => {}
        }
    }
}

impl VisitMut for Tidy {
    fn visit_item_impl_mut(&mut self, item: &mut syn::ItemImpl) {
        if let syn::Type::Path(ty) = &*item.self_ty {
            self.home = ty.path.get_ident().map(Ident::to_string).unwrap_or_default();
        }
        visit_mut::visit_item_impl_mut(self, item);
    }

    fn visit_impl_item_fn_mut(&mut self, item: &mut syn::ImplItemFn) {
        visit_mut::visit_impl_item_fn_mut(self, item);
        let reads = Reads::of_block(&item.block);
        self.load_without_config(&mut item.sig, &reads);
        unread_params(&mut item.sig, &reads);
        if item.sig.receiver().is_some() {
            UnreadLets(&reads).visit_block_mut(&mut item.block);
        }
    }

    fn visit_item_fn_mut(&mut self, item: &mut syn::ItemFn) {
        visit_mut::visit_item_fn_mut(self, item);
        unread_params(&mut item.sig, &Reads::of_block(&item.block));
    }

    /// `let i = layer.index;` goes where nothing reads it.
    fn visit_block_mut(&mut self, block: &mut syn::Block) {
        visit_mut::visit_block_mut(self, block);
        let mut at = 0;
        while let Some((statement, after)) = block.stmts.get(at..).and_then(<[Stmt]>::split_first) {
            if copies_unread(statement, after) {
                block.stmts.remove(at);
            } else {
                at += 1;
            }
        }
    }

    /// An arm binds the fields that it reads.
    fn visit_arm_mut(&mut self, arm: &mut syn::Arm) {
        visit_mut::visit_arm_mut(self, arm);
        let Pat::Struct(pat) = &mut arm.pat else { return };
        let reads = Reads::of_expr(&arm.body);
        let all = pat.fields.len();
        let bound = std::mem::take(&mut pat.fields);
        let read = |field: &syn::FieldPat| match &*field.pat {
            Pat::Ident(pat) => reads.name(&pat.ident.to_string()),
            _ => true,
        };
        pat.fields = bound.into_iter().filter(read).collect();
        if pat.fields.len() < all {
            pat.rest =
                Some(syn::PatRest { attrs: Vec::new(), dot2_token: <syn::Token![..]>::default() });
        }
    }

    fn visit_expr_for_loop_mut(&mut self, each: &mut syn::ExprForLoop) {
        visit_mut::visit_expr_for_loop_mut(self, each);
        let reads = Reads::of_block(&each.body);
        match &mut *each.pat {
            Pat::Tuple(pair) => pair.elems.iter_mut().for_each(|pat| unread_wild(pat, &reads)),
            pat => unread_wild(pat, &reads),
        }
    }

    fn visit_expr_closure_mut(&mut self, closure: &mut syn::ExprClosure) {
        visit_mut::visit_expr_closure_mut(self, closure);
        let reads = Reads::of_expr(&closure.body);
        closure.inputs.iter_mut().for_each(|pat| unread_wild(pat, &reads));
    }

    fn visit_expr_call_mut(&mut self, call: &mut syn::ExprCall) {
        visit_mut::visit_expr_call_mut(self, call);
        if self.is_bare_load(&call.func) {
            let given = std::mem::take(&mut call.args).into_iter();
            call.args = given.filter(|arg| !is_config(arg)).collect();
        }
    }

    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        // prettyplease writes the parentheses that are needed.
        while let Expr::Paren(paren) = expr {
            let inner = std::mem::replace(&mut *paren.expr, Expr::Verbatim(TokenStream::new()));
            *expr = inner;
        }
        visit_mut::visit_expr_mut(self, expr);
        // `|ld| T::load(ld)` is `T::load`.
        if let Expr::Closure(closure) = expr
            && let Expr::Call(call) = &mut *closure.body
            && self.is_bare_load(&call.func)
            && call.args.len() == 1
        {
            let load = std::mem::replace(&mut *call.func, Expr::Verbatim(TokenStream::new()));
            *expr = load;
        }
    }
}

/// `cfg` or `&cfg`.
fn is_config(arg: &Expr) -> bool {
    match arg {
        Expr::Reference(arg) => is_config(&arg.expr),
        Expr::Path(path) => path.path.is_ident("cfg"),
        _ => false,
    }
}

fn unread_wild(pat: &mut Pat, reads: &Reads) {
    if matches!(pat, Pat::Ident(own) if !reads.name(&own.ident.to_string())) {
        *pat = wild();
    }
}

/// Whether a statement copies a field into a variable that nothing after it reads.
fn copies_unread(statement: &Stmt, after: &[Stmt]) -> bool {
    let Stmt::Local(syn::Local { pat: Pat::Ident(pat), init: Some(init), .. }) = statement else {
        return false;
    };
    matches!(&*init.expr, Expr::Field(_))
        && !Reads::of_statements(after).name(&pat.ident.to_string())
}

/// prettyplease writes items without blank lines between them: one goes before each.
pub(super) fn spaced(text: &str) -> String {
    let mut out = String::new();
    let mut before = "";
    for line in text.lines() {
        let starts = |line: &str| {
            line.starts_with("///")
                || line.starts_with("#[")
                || line.starts_with("pub ")
                || line.starts_with("struct ")
                || line.starts_with("enum ")
                || line.starts_with("impl")
                || line.starts_with("fn ")
                || line.starts_with("static ")
                || line.starts_with("use ")
        };
        let inner_fn = (line.starts_with("    fn ")
            || line.starts_with("    pub fn ")
            || line.starts_with("    ///"))
            && before == "    }";
        let attached = before.starts_with("///") || before.starts_with("#[") || before.is_empty();
        if (starts(line) && !attached && !(before.starts_with("use ") && line.starts_with("use ")))
            || inner_fn
        {
            out.push('\n');
        }
        out.push_str(line);
        out.push('\n');
        before = line;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::tidy;

    fn tidied(text: &str, pinned: bool) -> String {
        let mut file = syn::parse_file(text).unwrap();
        tidy(&mut file, pinned);
        let text = prettyplease::unparse(&file);
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_nothing_reads_is_marked() {
        for (text, wanted) in [
            ("fn f(a: A, b: B) { g(b.a) }", "fn f(_: A, b: B) { g(b.a) }"),
            (
                "impl S { fn f(&self, a: A, b: B) { let (c, d) = g(a)?; d } }",
                "impl S { fn f(&self, a: A, _b: B) { let (_c, d) = g(a)?; d } }",
            ),
            ("fn f() { let (c, d) = g(); d }", "fn f() { let (c, d) = g(); d }"),
            ("fn f() { for i in 0..2 { g(j) } }", "fn f() { for _ in 0..2 { g(j) } }"),
            (
                "fn f() { for i in 0..2 { g(&format!(\"a.{i}\")) } }",
                "fn f() { for i in 0..2 { g(&format!(\"a.{i}\")) } }",
            ),
            ("fn f() { let i = l.i; let j = l.j; g(j) }", "fn f() { let j = l.j; g(j) }"),
            ("fn f() { g(|a, b| (a)) }", "fn f() { g(|a, _| a) }"),
            (
                "fn f() { match g() { E::A { a, b } => b, E::B { c } => {} } }",
                "fn f() { match g() { E::A { b, .. } => b, E::B { .. } => {} } }",
            ),
        ] {
            assert_eq!(tidied(text, false), wanted);
        }
    }

    #[test]
    fn a_graph_for_one_config_hands_it_to_those_that_read_it() {
        let text = "impl A { fn load(ld: L, cfg: &C) { ld.t() } }
            impl B { fn load(ld: L, cfg: &C) { ld.t(cfg.b) } }
            impl M { fn load(ld: L, cfg: &C) { ld.at(1, |ld| A::load(ld, cfg)); B::load(ld, cfg) } }
            impl N { fn load(ld: L, cfg: &C, i: i64) { A::load(ld, cfg); ld.t(i) } }";
        let shared = tidied(text, false);
        assert!(shared.contains("fn load(ld: L, _: &C) { ld.t() }"), "{shared}");
        assert!(shared.contains("|ld| A::load(ld, cfg)"), "{shared}");
        let pinned = tidied(text, true);
        assert!(pinned.contains("fn load(ld: L) { ld.t() }"), "{pinned}");
        assert!(pinned.contains("ld.at(1, A::load); B::load(ld, cfg)"), "{pinned}");
        assert!(pinned.contains("fn load(ld: L, i: i64) { A::load(ld); ld.t(i) }"), "{pinned}");
    }
}
