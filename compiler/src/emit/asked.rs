//! Why tensors are needed, for the loader's errors: the conditions over the config around each.

use std::collections::HashSet;
use std::fmt::Write as _;

use super::Emitter;
use crate::ir::path::{Part, parts};
use crate::ir::{Field, FieldKind, Scalar, TensorDecl};
use crate::manifest::ConfigKey;

/// Tensors that one condition decides about.
struct Group<'a> {
    condition: String,
    holds: bool,
    keys: Vec<&'a ConfigKey>,
    tensors: Vec<String>,
}

/// What a walk over the fields found.
#[derive(Default)]
struct Found<'a> {
    groups: Vec<Group<'a>>,
    /// Tensors that are needed whatever the config says.
    always: HashSet<String>,
}

/// Conditions around a place, each with whether it holds there.
type Conditions<'a> = Vec<(&'a Scalar, bool)>;

impl Emitter<'_> {
    /// The function that tells why; none where no condition over the config asks for a tensor.
    pub(super) fn asked(&self) -> Option<String> {
        let mut found = Found::default();
        let model = self.program.structs.last()?;
        self.asked_fields(&model.fields, "", &Vec::new(), &mut found);
        let Found { mut groups, always } = found;
        for group in &mut groups {
            group.tensors.retain(|tensor| !always.contains(tensor));
        }
        groups.retain(|group| !group.tensors.is_empty());
        if groups.is_empty() {
            return None;
        }
        let list = |items: &[String]| {
            items.iter().map(|item| format!("{item:?}")).collect::<Vec<_>>().join(", ")
        };
        let mut rows = String::new();
        for group in &groups {
            let keys: Vec<String> = group
                .keys
                .iter()
                .map(|key| format!("({:?}, &[{}])", key.name.node, list(&key.from)))
                .collect();
            // Writing to a String cannot fail.
            let _ = writeln!(
                rows,
                "Reason::new(&[{}], ({:?}, {}), &[{}], &r),",
                list(&group.tensors),
                group.condition,
                group.holds,
                keys.join(", ")
            );
        }
        Some(format!(
            "/// Why some tensors are needed, should one of them be missing.\nfn reasons(source: &ModelSource) -> Vec<Reason> {{\nlet r = source.reader(&[{}]);\nVec::from([\n{rows}])\n}}\n",
            list(&self.manifest.roots)
        ))
    }

    fn asked_fields<'a>(
        &'a self,
        fields: &'a [Field],
        path: &str,
        conditions: &Conditions<'a>,
        found: &mut Found<'a>,
    ) {
        for field in fields {
            match &field.kind {
                FieldKind::Module { tensors, .. } => {
                    for tensor in tensors {
                        self.asked_tensor(tensor, path, conditions, found);
                    }
                }
                FieldKind::Tensor(tensor) => self.asked_tensor(tensor, path, conditions, found),
                FieldKind::Block { id, path: below, .. } => {
                    if let Some(item) = self.program.structs.get(*id) {
                        let path = under(path, below);
                        self.asked_fields(&item.fields, &path, conditions, found);
                    }
                }
                FieldKind::Repeat { fields, .. } => {
                    self.asked_fields(fields, path, conditions, found);
                }
                FieldKind::Choice { arms, .. } => {
                    let mut refused = conditions.clone();
                    for arm in arms {
                        let mut inside = refused.clone();
                        if let Some(condition) = &arm.condition {
                            inside.push((condition, true));
                            refused.push((condition, false));
                        }
                        self.asked_fields(&arm.fields, path, &inside, found);
                    }
                }
                FieldKind::Scalar(_) | FieldKind::Slot => {}
            }
        }
    }

    fn asked_tensor<'a>(
        &'a self,
        tensor: &'a TensorDecl,
        path: &str,
        conditions: &Conditions<'a>,
        found: &mut Found<'a>,
    ) {
        let name = under(path, &tensor.path);
        let own = tensor.condition.as_ref().map(|condition| (condition, true));
        let mut free = true;
        for (condition, holds) in conditions.iter().copied().chain(own) {
            let keys = self.keys_of(condition);
            if keys.is_empty() {
                continue;
            }
            free = false;
            let text = crate::syntax::print::expr(&condition.expr);
            let same = |group: &&mut Group<'_>| group.condition == text && group.holds == holds;
            match found.groups.iter_mut().find(same) {
                Some(group) if group.tensors.contains(&name) => {}
                Some(group) => group.tensors.push(name.clone()),
                None => {
                    let tensors = vec![name.clone()];
                    found.groups.push(Group { condition: text, holds, keys, tensors });
                }
            }
        }
        if free {
            found.always.insert(name);
        }
    }

    /// The keys of config.json that a condition reads; a computed key is read from nowhere.
    fn keys_of(&self, condition: &Scalar) -> Vec<&ConfigKey> {
        let mut keys: Vec<&ConfigKey> = Vec::new();
        crate::syntax::visit::names(&condition.expr, &mut |name| {
            let known = self.manifest.config.iter().find(|key| key.name.node == name.node);
            if let Some(key) = known.filter(|key| key.value.is_none())
                && !keys.iter().any(|known| known.name == key.name)
            {
                keys.push(key);
            }
        });
        keys
    }
}

/// A path under another, with `*` for loop indices.
fn under(path: &str, below: &str) -> String {
    let below: String = parts(below)
        .into_iter()
        .map(|part| match part {
            Part::Text(text) => text,
            Part::Index(_) => "*",
        })
        .collect();
    match (path, below.as_str()) {
        ("", _) => below,
        (_, "") => path.to_owned(),
        _ => format!("{path}.{below}"),
    }
}
