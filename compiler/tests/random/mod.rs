//! Random expressions over the keys of the tests' config, each of a type.

/// What an expression is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Int,
    Float,
    Bool,
    Str,
}

impl Kind {
    /// Its word in a manifest.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Int => "int",
            Kind::Float => "float",
            Kind::Bool => "bool",
            Kind::Str => "str",
        }
    }
}

/// The same expressions each time.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap_or(0) % limit
    }

    fn one<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.below(words.len())]
    }

    /// An expression of any type.
    pub fn expression(&mut self) -> (Kind, String) {
        let kind =
            [Kind::Int, Kind::Int, Kind::Float, Kind::Float, Kind::Bool, Kind::Str][self.below(6)];
        (kind, self.of(kind, 3))
    }

    fn of(&mut self, kind: Kind, depth: usize) -> String {
        match kind {
            Kind::Int => self.int(depth),
            Kind::Float => self.float(depth),
            Kind::Bool => self.bool(depth),
            Kind::Str => self.str(depth),
        }
    }

    /// An integer or a float.
    fn number(&mut self, depth: usize) -> String {
        if self.below(2) == 0 { self.int(depth) } else { self.float(depth) }
    }

    fn int(&mut self, depth: usize) -> String {
        const LEAVES: &[&str] = &[
            "a",
            "b",
            "c",
            "a",
            "b",
            "n",
            "wide",
            "0",
            "1",
            "2",
            "-3",
            "4",
            "7",
            "2147483648",
            "9223372036854775807",
            "(n ?? 2)",
            "len(s)",
            "len(xs)",
            "xs[1]",
            "xs[a]",
            "(j + 1)",
        ];
        let Some(depth) = depth.checked_sub(1).filter(|_| self.below(6) > 0) else {
            return self.one(LEAVES).to_owned();
        };
        match self.below(14) {
            0..=7 => {
                let sign = self.one(&["+", "-", "*", "//", "%"]);
                format!("({} {sign} {})", self.int(depth), self.int(depth))
            }
            8 => format!("({} ** {})", self.int(depth), self.one(&["0", "1", "2", "3", "9"])),
            9 => format!("-({})", self.int(depth)),
            10 => format!("abs({})", self.int(depth)),
            11 => {
                let name = self.one(&["min", "max"]);
                format!("{name}({}, {})", self.int(depth), self.int(depth))
            }
            12 => {
                let name = self.one(&["int", "floor", "ceil"]);
                format!("{name}({})", self.number(depth))
            }
            _ => format!("({} ? {} : {})", self.bool(depth), self.int(depth), self.int(depth)),
        }
    }

    fn float(&mut self, depth: usize) -> String {
        const LEAVES: &[&str] = &[
            "f",
            "g",
            "f",
            "g",
            "o",
            "0.5",
            "-1.5",
            "2.0",
            "1e-6",
            "1e300",
            "(o ?? 1.5)",
            "fs[0]",
            "fs[b]",
            "float(a)",
            "float(p)",
        ];
        let Some(depth) = depth.checked_sub(1).filter(|_| self.below(6) > 0) else {
            return self.one(LEAVES).to_owned();
        };
        match self.below(14) {
            0..=4 => {
                let sign = self.one(&["+", "-", "*", "//", "%", "**"]);
                format!("({} {sign} {})", self.float(depth), self.number(depth))
            }
            5 | 6 => {
                let sign = self.one(&["+", "-", "*", "//", "%", "**"]);
                format!("({} {sign} {})", self.number(depth), self.float(depth))
            }
            7 => format!("({} / {})", self.number(depth), self.number(depth)),
            8 => format!("-({})", self.float(depth)),
            9 => format!("{}({})", self.one(&["sqrt", "log", "bf16", "float"]), self.number(depth)),
            10 => format!("abs({})", self.float(depth)),
            11 | 12 => {
                let name = self.one(&["min", "max"]);
                format!("{name}({}, {})", self.float(depth), self.number(depth))
            }
            _ => format!("({} ? {} : {})", self.bool(depth), self.float(depth), self.float(depth)),
        }
    }

    fn bool(&mut self, depth: usize) -> String {
        const LEAVES: &[&str] = &[
            "p",
            "(u ?? true)",
            "true",
            "false",
            "a > 0",
            "n != none",
            "j == none",
            "o == none",
            "s == \"auto\"",
            "t == none",
        ];
        let Some(depth) = depth.checked_sub(1).filter(|_| self.below(6) > 0) else {
            return format!("({})", self.one(LEAVES));
        };
        match self.below(10) {
            0..=2 => {
                let sign = self.one(&["<", "<=", ">", ">=", "==", "!="]);
                format!("({} {sign} {})", self.number(depth), self.number(depth))
            }
            3 | 4 => {
                let word = self.one(&["and", "or"]);
                format!("({} {word} {})", self.bool(depth), self.bool(depth))
            }
            5 => format!("(not {})", self.bool(depth)),
            6 => format!("({} in {})", self.number(depth), self.one(&["xs", "fs", "[1, 2, 3]"])),
            7 => format!("({} not in {})", self.str(depth), self.one(&["ws", "[\"a\", \"ab\"]"])),
            8 => format!("(({} ? 1 : 0) == {})", self.number(depth), self.int(depth)),
            _ => format!("({} == {})", self.str(depth), self.str(depth)),
        }
    }

    fn str(&mut self, depth: usize) -> String {
        const LEAVES: &[&str] =
            &["s", "\"auto\"", "\"a\"", "(t ?? \"ab\")", "ws[1]", "ws[a]", "s[0]", "model_type"];
        match depth.checked_sub(1).filter(|_| self.below(3) == 0) {
            None => self.one(LEAVES).to_owned(),
            Some(depth) => {
                format!("({} ? {} : {})", self.bool(depth), self.str(depth), self.str(depth))
            }
        }
    }
}
