//! The turbo codec, against arrays that an independent program made.

use mlx_rs::Array;

use super::scenario::composition;
use crate::cache::{CacheLayer, CachePlan, Code, Codes, PlanOptions, Scores, Slot, storages};
use crate::composition::{KvRequest, TurboBits};
use crate::pass::Pass;
use crate::phase::{Padding, Phase};
use crate::{Dtype, ops};

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

/// The arrays of a fixture.
struct Fixture(Vec<u8>);

impl Fixture {
    fn open(dim: i32) -> Fixture {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/fixtures/turboquant");
        Fixture(std::fs::read(format!("{folder}/d{dim}.safetensors")).unwrap())
    }

    fn names(&self) -> Vec<String> {
        let file = safetensors::SafeTensors::deserialize(&self.0).unwrap();
        let mut names: Vec<String> = file.names().iter().map(|name| (*name).to_string()).collect();
        names.sort();
        names
    }

    fn get(&self, name: &str) -> Array {
        use safetensors::Dtype as Stored;
        let file = safetensors::SafeTensors::deserialize(&self.0).unwrap();
        let view = file.tensor(name).unwrap_or_else(|e| panic!("{name}: {e}"));
        let dtype = match view.dtype() {
            Stored::F32 => Dtype::Float32,
            Stored::F16 => Dtype::Float16,
            Stored::BF16 => Dtype::Bfloat16,
            Stored::U8 => Dtype::Uint8,
            Stored::I8 => Dtype::Int8,
            other => panic!("{name}: {other:?}"),
        };
        let shape: Vec<i32> = view.shape().iter().map(|n| *n as i32).collect();
        crate::array::from_bytes(view.data(), &shape, dtype).unwrap()
    }
}

fn numbers(x: &Array) -> Vec<f32> {
    x.to_vec_cast::<f32>().unwrap()
}

fn same(name: &str, got: &Array, want: &Array) {
    assert_eq!((got.shape(), got.dtype()), (want.shape(), want.dtype()), "{name}");
    let bits = |x: &Array| numbers(x).iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    assert!(bits(got) == bits(want), "{name} differs");
}

/// Sets of input in a fixture with the bits that there are of them.
fn sets(fixture: &Fixture, letter: &str, ending: &str) -> Vec<(String, u32)> {
    let bits = |name: &String| {
        let (set, rest) = name.split_once('.')?;
        let bits = rest.strip_suffix(ending)?.strip_suffix('.')?.strip_prefix(letter)?;
        Some((set.to_owned(), bits.parse().ok()?))
    };
    fixture.names().iter().filter_map(bits).collect()
}

#[test]
fn keys_are_those_of_the_oracle() {
    let _alone = crate::alone();
    let mut count = 0;
    for dim in [64, 128] {
        let fixture = Fixture::open(dim);
        for (set, bits) in sets(&fixture, "k", "packed") {
            let codes = Codes(vec![Code::TurboKeys { bits }]);
            let planes = codes.encode(&[&fixture.get(&format!("{set}.keys"))]).unwrap();
            let name = |part: &str| format!("{set}.k{bits}.{part}");
            for (plane, part) in planes.iter().zip(["packed", "scales", "zeros"]) {
                same(&name(part), plane, &fixture.get(&name(part)));
            }
            same(
                &name("decoded"),
                &codes.decode(&planes).unwrap()[0],
                &fixture.get(&name("decoded")),
            );
            count += 1;
        }
    }
    assert_eq!(count, 15);
}

#[test]
fn values_are_those_of_the_oracle() {
    let _alone = crate::alone();
    let (mut count, mut exact) = (0, 0);
    for dim in [64, 128] {
        let fixture = Fixture::open(dim);
        for (set, bits) in sets(&fixture, "v", "packed") {
            let code = Code::TurboValues { bits };
            let name = |part: &str| format!("{set}.v{bits}.{part}");
            let stored = [fixture.get(&name("packed")), fixture.get(&name("scales"))];
            // What the oracle stored decodes to what it decodes to.
            let decoded = code.decode(&stored, false).unwrap();
            let want = fixture.get(&name("decoded"));
            let far = |a: &Array, b: &Array| {
                let pairs = numbers(a).into_iter().zip(numbers(b));
                pairs.map(|(a, b)| (a - b).abs() / (b.abs() + 1e-2)).fold(0.0, f32::max)
            };
            // Another order of sums, then a rounding to bfloat16.
            assert!(far(&decoded, &want) < 1e-2, "{}", name("decoded"));
            if dim == 64 {
                same(
                    &name("decoded_rotated"),
                    &code.decode(&stored, true).unwrap(),
                    &fixture.get(&name("decoded_rotated")),
                );
            }
            // What is encoded here is stored as the oracle did, sums of another order aside.
            let codes = Codes(vec![code]);
            let planes = codes.encode(&[&fixture.get(&format!("{set}.values"))]).unwrap();
            let scales = numbers(&planes[1]).into_iter().zip(numbers(&stored[1]));
            for (got, want) in scales {
                assert!((got - want).abs() <= want.abs() / 1024.0, "{}", name("scales"));
            }
            // From what the oracle's rotation gave to the last bit.
            if dim == 64 {
                let rotated = fixture.get(&name("rotated_input"));
                let [packed, scales] = crate::cache::codec::encode_rotated(&rotated, bits).unwrap();
                same(&name("packed"), &packed, &stored[0]);
                same(&name("scales"), &scales, &stored[1]);
                exact += 1;
            }
            let bytes = numbers(&planes[0]).into_iter().zip(numbers(&stored[0]));
            let other = bytes.filter(|(a, b)| a != b).count();
            assert!(other * 500 <= stored[0].size(), "{}: {other} bytes differ", name("packed"));
            count += 1;
        }
    }
    assert_eq!((count, exact), (15, 9));
}

/// The last three positions of the oracle's attention, read as a layer reads.
#[test]
fn attention_is_that_of_the_oracle() {
    let _alone = crate::alone();
    let mut count = 0;
    for dim in [64, 128] {
        let fixture = Fixture::open(dim);
        for name in fixture.names().iter().filter(|name| name.contains(".attention")) {
            let (set, rest) = name.split_once('.').unwrap();
            let (scheme, read) = rest.split_once('.').unwrap();
            let mut layer = CacheLayer::new(&storages::FULL);
            if read == "attention_deferred" {
                layer = layer.with("turbo_quant", "deferred");
            }
            let kv = KvRequest {
                turbo: TurboBits::parse(&format!("turbo:{scheme}")).ok(),
                immediate: true,
                ..KvRequest::default()
            };
            let plan = CachePlan::compose(&[layer], &composition(kv, None), PlanOptions::default());
            let mut set_of = plan.unwrap().make();
            let input = |kind: &str| fixture.get(&format!("{set}.{kind}"));
            let (keys, values, query) = (input("keys"), input("values"), fixture.get("query"));
            let scale = 1.0 / (dim as f32).sqrt();
            let mut run = |from: i32, to: i32, q: &Array| {
                let n = to - from;
                let ids = Array::from_slice(&vec![0_i32; n as usize], &[1, n]);
                let mut pass =
                    Pass::begin(&mut set_of, Phase::Prompt, &ids, Padding::default()).unwrap();
                let cut = |x: &Array| ops::slice(x, 2, from, to).unwrap();
                let scores = Scores { scale, softcap: None, sinks: None };
                let (k, v) = (cut(&keys), cut(&values));
                let y = pass.attend(Slot::new(0), q, &k, &v, scores).unwrap();
                y.eval().unwrap();
                pass.finish().unwrap();
                y
            };
            let first = mlx_rs::ops::zeros::<f32>(&[1, 4, 37, dim]).unwrap();
            run(0, 37, &first);
            let y = run(37, 40, &query);
            let want = numbers(&fixture.get(name));
            let norm = |x: &[f32]| x.iter().map(|x| x * x).sum::<f32>().sqrt();
            let off: Vec<f32> =
                numbers(&y).iter().zip(&want).map(|(got, want)| got - want).collect();
            // A few indices beside a boundary may differ by one, and bfloat16 rounds.
            assert!(
                norm(&off) <= 5e-3 * norm(&want),
                "{name} d{dim}: {}",
                norm(&off) / norm(&want)
            );
            count += 1;
        }
    }
    assert_eq!(count, 30);
}
