//! What a storage says of itself against what its growth and its states give.

use super::{Batch, CacheLayout, Growth, MaxKv, Rollback, Trim};
use crate::diag::{Code, Diagnostic};
use crate::source::Span;

/// What a storage claims is what its growth gives.
pub(super) fn growth(layout: &CacheLayout, span: Span, diags: &mut Vec<Diagnostic>) {
    let (kind, trim, rollback, batch) = match layout.growth {
        Growth::Append { .. } => ("append", Trim::Always, Rollback::Trim, Batch::LeftPadded),
        Growth::Ring { .. } => ("ring", Trim::UntilFull, Rollback::Trim, Batch::LeftPadded),
        Growth::Replace => ("replace", Trim::Never, Rollback::Replay, Batch::Masked),
        Growth::Nothing => ("nothing", Trim::Always, Rollback::Trim, Batch::Masked),
    };
    let supports = &layout.supports;
    let mut fault = |message: String| {
        diags.push(Diagnostic::error(Code::CacheLayout, span, message));
    };
    for (name, claimed, given) in [
        ("trim", supports.trim.map(Trim::word), trim.word()),
        ("rollback", supports.rollback.map(Rollback::word), rollback.word()),
        ("batch", supports.batch.map(Batch::word), batch.word()),
    ] {
        let claimed = claimed.unwrap_or_default();
        if claimed != given {
            fault(format!(
                "`{name}` claims {claimed:?}, and a storage of growth `{kind}` has {given:?}"
            ));
        }
    }
    let append = matches!(layout.growth, Growth::Append { .. });
    if layout.paged() && !append {
        fault(format!("only what is appended can be kept in pages, and `{kind}` is not"));
    }
    match (&layout.max_kv, append) {
        (MaxKv::Unchanged, true) => diags.push(
            Diagnostic::error(
                Code::CacheLayout,
                span,
                "the storage grows without end and does not say what becomes of it under a bound",
            )
            .help("add [storage.max_kv] with `storage` and `param`, or with `refuse`"),
        ),
        (MaxKv::Becomes { .. } | MaxKv::Refuse(_), false) => {
            fault(format!("[storage.max_kv] is for growth `append`, here it is `{kind}`"));
        }
        _ => {}
    }
}

pub(super) fn states(layout: &CacheLayout, diags: &mut Vec<Diagnostic>) {
    let mut fault = |message: String| {
        diags.push(Diagnostic::error(Code::CacheLayout, layout.name.span, message));
    };
    let grows = matches!(layout.growth, Growth::Append { .. } | Growth::Ring { .. });
    if grows == layout.states.is_empty() {
        fault(if grows {
            "the storage grows with positions and names no state".to_owned()
        } else {
            "states are for storages that grow with positions".to_owned()
        });
    }
    let axes: Vec<usize> = layout.states.iter().map(|state| state.sequence_axis).collect();
    if axes.windows(2).any(|pair| pair.first() != pair.last()) {
        fault("the states of a storage must share the axis of positions".to_owned());
    }
    let required = layout.states.iter().rev().skip_while(|state| state.optional);
    if required.into_iter().any(|state| state.optional) {
        fault("only the last states may be optional".to_owned());
    }
    if let Some(state) = layout.states.iter().find(|s| s.signature.is_some() && !s.optional) {
        fault(format!("`{}` is always there, and cannot add to the signature", state.name));
    }
}
