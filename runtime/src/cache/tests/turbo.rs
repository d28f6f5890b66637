use mlx_rs::Array;

use crate::cache::{Code, Codes};

/// Groups that the plain formulas would decode to NaN keep a finite middle.
#[test]
fn constant_groups_stay_finite() {
    let _alone = crate::alone();
    for bits in [2, 4, 5, 8] {
        let codes = Codes(vec![Code::TurboKeys { bits }]);
        for value in [0.0_f32, 5.0, -300.0, 1e4] {
            let x = Array::from_slice(&[value; 64], &[1, 1, 1, 64]);
            let planes = codes.encode(&[&x]).unwrap();
            let back = codes.decode(&planes).unwrap()[0].to_vec_cast::<f32>().unwrap();
            assert!(
                back.iter().all(|b| (b - value).abs() <= value.abs() * 0.01),
                "{bits} {value}: {back:?}"
            );
        }
    }
}

/// Every code's byte model is what its planes take.
#[test]
fn bytes_are_those_of_the_planes() {
    let _alone = crate::alone();
    let x = Array::from_slice(&[0.25_f32; 128], &[1, 1, 1, 128]);
    let mut codes = vec![Code::Plain];
    codes.extend([2, 3, 4, 5, 6, 8].map(|bits| Code::Affine { bits, group_size: 64 }));
    codes.extend([2, 4, 5, 8].map(|bits| Code::TurboKeys { bits }));
    codes.extend([2, 3, 4, 5, 8].map(|bits| Code::TurboValues { bits }));
    for code in codes {
        let planes = Codes(vec![code]).encode(&[&x]).unwrap();
        let bytes: usize = planes.iter().map(Array::nbytes).sum();
        assert_eq!(code.bytes(128, x.dtype()), bytes, "{code:?}");
        let layout: Vec<_> = planes.iter().map(|p| (p.dim(-1), p.dtype())).collect();
        assert_eq!(code.layout(128, x.dtype()), layout, "{code:?}");
    }
}
