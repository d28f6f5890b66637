//! MLX calls that mlx-rs lacks or hides: the other quantised modes, plain slices, hadamard.
//!
//! The only module with `unsafe` code. Every function passes handles of arrays that it borrows for
//! the call, pointers with the lengths of the slices they come from, and takes ownership of the one
//! handle that MLX fills in.
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::Once;

use mlx_rs::{Array, Dtype, Stream};
use mlx_sys as sys;
use specc_checkpoint::config::QuantMode;
use specc_checkpoint::map::QuantParams;

use crate::{Error, Result};

thread_local! {
    static MESSAGE: RefCell<Option<String>> = const { RefCell::new(None) };
}

unsafe extern "C" {
    // mlx-rs's own handler, so that its wrappers go on finding their messages.
    fn default_mlx_error_handler(message: *const c_char, data: *mut c_void);
}

extern "C" fn keep_message(message: *const c_char, data: *mut c_void) {
    // SAFETY: MLX passes a C string that lives for the call.
    let text = unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned();
    MESSAGE.with_borrow_mut(|slot| *slot = Some(text));
    // SAFETY: the same arguments, for the handler that mlx-rs registers.
    unsafe { default_mlx_error_handler(message, data) };
}

static HANDLER: Once = Once::new();

fn watch_errors() {
    HANDLER.call_once(|| {
        // mlx-rs registers its handler at its first call; ours must come after it.
        let _ = mlx_rs::memory::active_memory();
        // SAFETY: a function with the signature that MLX asks for, and no data.
        unsafe { sys::mlx_set_error_handler(Some(keep_message), std::ptr::null_mut(), None) };
    });
}

fn failed() -> Error {
    let text = MESSAGE.with_borrow_mut(Option::take);
    Error::Mlx(text.unwrap_or_else(|| "the operation failed without a message".to_owned()))
}

/// Runs a call that fills in one array.
fn call(f: impl FnOnce(*mut sys::mlx_array, sys::mlx_stream) -> c_int) -> Result<Array> {
    watch_errors();
    let stream = Stream::thread_local_or_default();
    // SAFETY: an empty handle; MLX fills it in or leaves it, and `Array` frees it in both cases.
    let mut out = unsafe { sys::mlx_array_new() };
    let status = f(&mut out, stream.as_ptr());
    // SAFETY: `out` is owned by nobody else.
    let array = unsafe { Array::from_ptr(out) };
    if status == 0 { Ok(array) } else { Err(failed()) }
}

fn handle(array: Option<&Array>) -> sys::mlx_array {
    // SAFETY: the empty handle holds nothing, so that nothing is to be freed.
    array.map_or_else(|| unsafe { sys::mlx_array_new() }, Array::as_ptr)
}

/// Bits or a group size; what does not fit is nothing that MLX takes either.
fn number(value: u32) -> sys::mlx_optional_int {
    let value = i32::try_from(value).unwrap_or(i32::MAX);
    sys::mlx_optional_int { value, has_value: true }
}

/// `x[start..stop]` on every axis, all axes given; a view.
pub fn slice(x: &Array, start: &[i32], stop: &[i32]) -> Result<Array> {
    let steps = [1; 8];
    let n = x.ndim();
    if start.len() != n || stop.len() != n || n > steps.len() {
        return Err(Error::input("slice", format!("{n} bounds"), format!("{}", start.len())));
    }
    call(|out, stream| {
        // SAFETY: see the module.
        unsafe {
            sys::mlx_slice(
                out,
                x.as_ptr(),
                start.as_ptr(),
                n,
                stop.as_ptr(),
                n,
                steps.as_ptr(),
                n,
                stream,
            )
        }
    })
}

/// `x` with `update` at `start..stop`. In place when `x` is the only reference to its data, so the
/// caller gives it away.
pub fn slice_update(x: Array, update: &Array, start: &[i32], stop: &[i32]) -> Result<Array> {
    let steps = [1; 8];
    let n = x.ndim();
    if start.len() != n || stop.len() != n || n > steps.len() {
        return Err(Error::input("slice", format!("{n} bounds"), format!("{}", start.len())));
    }
    call(|out, stream| {
        // SAFETY: see the module.
        unsafe {
            sys::mlx_slice_update(
                out,
                x.as_ptr(),
                update.as_ptr(),
                start.as_ptr(),
                n,
                stop.as_ptr(),
                n,
                steps.as_ptr(),
                n,
                stream,
            )
        }
    })
}

/// MLX's name of a mode.
fn mode(mode: QuantMode) -> &'static CStr {
    match mode {
        QuantMode::Affine => c"affine",
        QuantMode::Mxfp4 => c"mxfp4",
        QuantMode::Mxfp8 => c"mxfp8",
        QuantMode::Nvfp4 => c"nvfp4",
    }
}

/// Quantises along the last axis: weight, scales and, for the affine mode, biases.
pub fn quantize(x: &Array, q: QuantParams) -> Result<(Array, Array, Option<Array>)> {
    watch_errors();
    let stream = Stream::thread_local_or_default();
    // SAFETY: an empty vector of our own, freed below.
    let mut out = unsafe { sys::mlx_vector_array_new() };
    // SAFETY: see the module.
    let status = unsafe {
        sys::mlx_quantize(
            &mut out,
            x.as_ptr(),
            number(q.group_size),
            number(q.bits),
            mode(q.mode).as_ptr(),
            handle(None),
            stream.as_ptr(),
        )
    };
    let mut parts = Vec::new();
    if status == 0 {
        // SAFETY: MLX filled `out` in; an index below its size is valid, `part` is ours.
        unsafe {
            for i in 0..sys::mlx_vector_array_size(out) {
                let mut part = sys::mlx_array_new();
                sys::mlx_vector_array_get(&mut part, out, i);
                parts.push(Array::from_ptr(part));
            }
        }
    }
    // SAFETY: `out` is ours.
    unsafe { sys::mlx_vector_array_free(out) };
    if status != 0 {
        return Err(failed());
    }
    let mut parts = parts.into_iter();
    match (parts.next(), parts.next()) {
        (Some(weight), Some(scales)) => Ok((weight, scales, parts.next())),
        _ => Err(failed()),
    }
}

/// The floats of a quantised array, of the type of its scales or of `dtype`.
pub fn dequantize(
    weight: &Array,
    scales: &Array,
    biases: Option<&Array>,
    q: QuantParams,
    dtype: Option<Dtype>,
) -> Result<Array> {
    let dtype = sys::mlx_optional_dtype {
        value: dtype.unwrap_or(Dtype::Float32).into(),
        has_value: dtype.is_some(),
    };
    call(|out, stream| {
        // SAFETY: see the module.
        unsafe {
            sys::mlx_dequantize(
                out,
                weight.as_ptr(),
                scales.as_ptr(),
                handle(biases),
                number(q.group_size),
                number(q.bits),
                mode(q.mode).as_ptr(),
                handle(None),
                dtype,
                stream,
            )
        }
    })
}

/// `x @ W` with a quantised W, transposed when `transpose`.
pub fn quantized_matmul(
    x: &Array,
    weight: &Array,
    scales: &Array,
    biases: Option<&Array>,
    transpose: bool,
    q: QuantParams,
) -> Result<Array> {
    call(|out, stream| {
        // SAFETY: see the module.
        unsafe {
            sys::mlx_quantized_matmul(
                out,
                x.as_ptr(),
                weight.as_ptr(),
                scales.as_ptr(),
                handle(biases),
                transpose,
                number(q.group_size),
                number(q.bits),
                mode(q.mode).as_ptr(),
                stream,
            )
        }
    })
}

/// `x @ W[rhs_indices]ᵀ` with a stack of quantised matrices [E, out, in].
pub fn gather_qmm(
    x: &Array,
    weight: &Array,
    scales: &Array,
    biases: Option<&Array>,
    rhs_indices: &Array,
    sorted: bool,
    q: QuantParams,
) -> Result<Array> {
    call(|out, stream| {
        // SAFETY: see the module.
        unsafe {
            sys::mlx_gather_qmm(
                out,
                x.as_ptr(),
                weight.as_ptr(),
                scales.as_ptr(),
                handle(biases),
                handle(None),
                rhs_indices.as_ptr(),
                true,
                number(q.group_size),
                number(q.bits),
                mode(q.mode).as_ptr(),
                sorted,
                stream,
            )
        }
    })
}

/// The same arrays, computed not before `done` are.
pub fn after(arrays: &[&Array], done: &[&Array]) -> Result<Vec<Array>> {
    watch_errors();
    let handles = |arrays: &[&Array]| arrays.iter().map(|x| x.as_ptr()).collect::<Vec<_>>();
    let (own, before) = (handles(arrays), handles(done));
    let mut out = Vec::with_capacity(own.len());
    // SAFETY: the handles outlive the vectors made of them, which are freed here; each array that
    // is taken out of the result is owned by nobody else.
    let failure = unsafe {
        let inputs = sys::mlx_vector_array_new_data(own.as_ptr(), own.len());
        let waits = sys::mlx_vector_array_new_data(before.as_ptr(), before.len());
        let mut result = sys::mlx_vector_array_new();
        let mut failure = sys::mlx_depends(&mut result, inputs, waits);
        for i in 0..own.len() {
            let mut one = sys::mlx_array_new();
            if failure == 0 {
                failure = sys::mlx_vector_array_get(&mut one, result, i);
            }
            out.push(Array::from_ptr(one));
        }
        sys::mlx_vector_array_free(result);
        sys::mlx_vector_array_free(waits);
        sys::mlx_vector_array_free(inputs);
        failure
    };
    if failure == 0 { Ok(out) } else { Err(failed()) }
}

/// The Hadamard transform of the last axis in Sylvester order, times `scale`.
pub fn hadamard(x: &Array, scale: f32) -> Result<Array> {
    let scale = sys::mlx_optional_float { value: scale, has_value: true };
    call(|out, stream| {
        // SAFETY: see the module.
        unsafe { sys::mlx_hadamard_transform(out, x.as_ptr(), scale, stream) }
    })
}

/// The same bytes read as another type; the last axis changes its length.
pub fn view(x: &Array, dtype: Dtype) -> Result<Array> {
    call(|out, stream| {
        // SAFETY: see the module.
        unsafe { sys::mlx_view(out, x.as_ptr(), dtype.into(), stream) }
    })
}

/// An array of a copy of `bytes`, which may lie at any alignment.
///
/// # Errors
/// When the length is not that of the shape.
pub fn from_bytes(bytes: &[u8], shape: &[i32], dtype: Dtype) -> Result<Array> {
    let size = dtype_bytes(dtype);
    let items = shape.iter().try_fold(1_usize, |n, &d| n.checked_mul(usize::try_from(d).ok()?));
    if items.and_then(|n| n.checked_mul(size)) != Some(bytes.len()) {
        return Err(Error::input(
            "array data",
            format!("the bytes of {dtype:?} {shape:?}"),
            format!("{} bytes", bytes.len()),
        ));
    }
    // SAFETY: the bytes are as many as the shape says; MLX copies them.
    Ok(unsafe { Array::from_raw_data(bytes.as_ptr().cast(), shape, dtype) })
}

/// Calls `f` with the bytes of an array in row-major order.
///
/// # Errors
/// When the array cannot be evaluated.
pub fn with_bytes<T>(x: &Array, f: impl FnOnce(&[u8]) -> T) -> Result<T> {
    let x = x.contiguous()?;
    x.eval()?;
    let n = x.nbytes();
    // SAFETY: the array is evaluated and row-major, so that `n` bytes lie at its data; it outlives
    // the call, and nobody writes to evaluated arrays.
    let bytes = unsafe {
        let data = sys::mlx_array_data_uint8(x.as_ptr());
        if data.is_null() || n == 0 { &[][..] } else { std::slice::from_raw_parts(data, n) }
    };
    Ok(f(bytes))
}

/// Bytes of one element.
pub fn dtype_bytes(dtype: Dtype) -> usize {
    // SAFETY: a pure function of an enumeration.
    unsafe { sys::mlx_dtype_size(dtype.into()) }
}

/// Floats of 8-bit ones (E4M3, held as uint8).
pub fn from_fp8(x: &Array, dtype: Dtype) -> Result<Array> {
    call(|out, stream| {
        // SAFETY: see the module.
        unsafe { sys::mlx_from_fp8(out, x.as_ptr(), dtype.into(), stream) }
    })
}

/// The number of MLX operations that the values of `outputs` still wait for.
///
/// # Errors
/// MLX's, or a temporary file cannot be had.
pub fn operations(outputs: &[&Array]) -> Result<usize> {
    let trouble = || Error::Mlx("the graph cannot be written out".into());
    let handles: Vec<_> = outputs.iter().map(|array| array.as_ptr()).collect();
    let mut text = Vec::new();
    // SAFETY: the handles outlive the vector made of them; the file is open from its making to its
    // closing, and `text` is as long as what is read into it.
    unsafe {
        let file = libc::tmpfile();
        if file.is_null() {
            return Err(trouble());
        }
        let vector = mlx_sys::mlx_vector_array_new_data(handles.as_ptr(), handles.len());
        let namer = mlx_sys::mlx_node_namer_new();
        let failed = mlx_sys::mlx_export_to_dot(file.cast(), namer, vector);
        mlx_sys::mlx_node_namer_free(namer);
        mlx_sys::mlx_vector_array_free(vector);
        let size = libc::ftell(file);
        libc::rewind(file);
        if let (0, Ok(size)) = (failed, usize::try_from(size)) {
            text.resize(size, 0u8);
            let read = libc::fread(text.as_mut_ptr().cast(), 1, size, file);
            text.truncate(read);
        }
        libc::fclose(file);
    }
    if text.is_empty() {
        return Err(trouble());
    }
    // Operations are drawn as rectangles, arrays as anything else.
    Ok(String::from_utf8_lossy(&text).matches("rectangle").count())
}
