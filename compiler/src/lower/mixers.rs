//! Uses of mixers, from which part of a graph's declaration follows.

use super::Lowerer;
use super::frame::Frame;
use super::value::Value;
use crate::ir::{MixerUse, ScalarType};
use crate::source::Span;
use crate::syntax::ast::Extern;

impl Lowerer<'_> {
    /// Notes which parameters of a mixer are given a value.
    pub(super) fn note_mixer(&mut self, frame: &Frame, ext: &Extern, span: Span) {
        let given = |name: &String| match frame.find(name) {
            None | Some(Value::None | Value::Broken(_)) => false,
            Some(Value::Scalar(scalar)) => scalar.ty != ScalarType::None,
            Some(Value::Array { .. } | Value::Tuple(_)) => true,
        };
        let names = ext.params.iter().map(|param| &param.name.node);
        let given = names.filter(|name| given(name)).cloned().collect();
        self.mixers.push(MixerUse { name: ext.name.node.clone(), given, span });
    }
}
