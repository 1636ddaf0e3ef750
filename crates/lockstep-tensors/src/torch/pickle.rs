//! The stack machine of pickles, without the instructions that call or import.
//!
//! Values live in one arena and refer to each other by index, so that a hostile program cannot make a value
//! deep enough to overflow the stack when it is dropped. Texts and names are those of the file, never copies, so
//! a program cannot make more text than it has, and of everything else it makes at most [`MOST`].
//! `REDUCE` and `BUILD`, which in Python call, only note what would have been called with what;
//! [`super::objects`] knows what the few calls of a tensor mean.

use super::Fault;
use std::collections::HashMap;

/// Index of a value in the arena.
pub(super) type Id = usize;

/// What a program can make.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value<'a> {
    None,
    Bool(bool),
    Int(i128),
    Float(f64),
    Text(&'a str),
    Tuple(Vec<Id>),
    List(Vec<Id>),
    Dict(Vec<(Id, Id)>),
    /// An object that is named but not looked at: its module and its name.
    Global(&'a str, &'a str),
    /// A call of the first with the second.
    Call(Id, Id),
    /// A reference to something outside of the pickle.
    Persistent(Id),
}

/// What a program left: its values, and which of them is the result.
pub(super) struct Pickle<'a> {
    values: Vec<Value<'a>>,
    pub(super) root: Id,
    /// Bytes that the program took.
    pub(super) len: usize,
}

impl<'a> Pickle<'a> {
    /// A value.
    pub(super) fn get(&self, id: Id) -> &Value<'a> {
        &self.values[id]
    }

    /// All references to something outside.
    pub(super) fn persistent(&self) -> impl Iterator<Item = Id> {
        let is = |id: &Id| matches!(self.values[*id], Value::Persistent(_));
        (0..self.values.len()).filter(is)
    }
}

/// The most values, entries of the stack and of the memo, each: a model of a hundred thousand tensors has
/// two million values.
const MOST: usize = 1 << 22;

/// The most digits of a whole number, in bytes.
const LONGEST_INT: usize = 16;

/// Runs the program at the front of `bytes`.
pub(super) fn load(bytes: &[u8]) -> Result<Pickle<'_>, Fault> {
    let mut machine = Machine {
        bytes,
        at: 0,
        values: Vec::new(),
        stack: Vec::new(),
        marks: Vec::new(),
        memo: HashMap::new(),
    };
    let root = machine.run()?;
    Ok(Pickle {
        values: machine.values,
        root,
        len: machine.at,
    })
}

struct Machine<'a> {
    bytes: &'a [u8],
    at: usize,
    values: Vec<Value<'a>>,
    stack: Vec<Id>,
    /// Heights of the stack at which a mark was set.
    marks: Vec<usize>,
    memo: HashMap<u32, Id>,
}

impl<'a> Machine<'a> {
    fn run(&mut self) -> Result<Id, Fault> {
        loop {
            let at = self.at;
            let opcode = self.byte()?;
            let sizes = [self.values.len(), self.stack.len(), self.marks.len()];
            if sizes.into_iter().any(|size| size > MOST) || self.memo.len() > MOST {
                return Err(Fault::Unsupported(format!(
                    "a pickle of more than {MOST} values (at byte {at})"
                )));
            }
            match opcode {
                0x80 => drop(self.take(1)?), // PROTO: what follows says enough
                0x95 => drop(self.take(8)?), // FRAME: only helps reading ahead
                b'.' => return self.pop(),   // STOP
                b'(' => self.marks.push(self.stack.len()),
                b'0' => drop(self.pop()?),
                b'N' => self.push(Value::None),
                0x88 => self.push(Value::Bool(true)),
                0x89 => self.push(Value::Bool(false)),
                b'K' => {
                    let n = self.byte()?;
                    self.push(Value::Int(n.into()));
                }
                b'M' => {
                    let n = u16::from_le_bytes(self.array()?);
                    self.push(Value::Int(n.into()));
                }
                b'J' => {
                    let n = i32::from_le_bytes(self.array()?);
                    self.push(Value::Int(n.into()));
                }
                0x8a => self.long()?,
                b'G' => {
                    let x = f64::from_be_bytes(self.array()?);
                    self.push(Value::Float(x));
                }
                0x8c | b'U' => {
                    let len = self.byte()?;
                    self.text(len.into())?;
                }
                b'X' | b'T' => {
                    let len = u32::from_le_bytes(self.array()?);
                    self.text(len as usize)?;
                }
                b')' => self.push(Value::Tuple(Vec::new())),
                b'}' => self.push(Value::Dict(Vec::new())),
                b']' => self.push(Value::List(Vec::new())),
                b't' => {
                    let items = self.since_mark()?;
                    self.push(Value::Tuple(items));
                }
                0x85..=0x87 => {
                    let from = self.need(usize::from(opcode - 0x84))?;
                    let items = self.stack.split_off(from);
                    self.push(Value::Tuple(items));
                }
                b'a' => {
                    let item = self.pop()?;
                    self.append(&[item])?;
                }
                b'e' => {
                    let items = self.since_mark()?;
                    self.append(&items)?;
                }
                b's' => {
                    let from = self.need(2)?;
                    let pair = self.stack.split_off(from);
                    self.set(&pair)?;
                }
                b'u' => {
                    let pairs = self.since_mark()?;
                    self.set(&pairs)?;
                }
                b'q' => {
                    let key = self.byte()?;
                    self.keep(key.into())?;
                }
                b'r' => {
                    let key = u32::from_le_bytes(self.array()?);
                    self.keep(key)?;
                }
                0x94 => {
                    let key = self.memo.len() as u32;
                    self.keep(key)?;
                }
                b'h' => {
                    let key = self.byte()?;
                    self.recall(key.into())?;
                }
                b'j' => {
                    let key = u32::from_le_bytes(self.array()?);
                    self.recall(key)?;
                }
                b'c' => {
                    let (module, name) = (self.line()?, self.line()?);
                    self.push(Value::Global(module, name));
                }
                0x93 => self.stack_global()?,
                b'Q' => {
                    let key = self.pop()?;
                    self.push(Value::Persistent(key));
                }
                b'R' => {
                    let (arguments, called) = (self.pop()?, self.pop()?);
                    let made = self.call(called, arguments)?;
                    self.push(made);
                }
                0x81 => {
                    // NEWOBJ: an object of a class. None of those that are known is made so.
                    let (_arguments, class) = (self.pop()?, self.pop()?);
                    return Err(match self.values[class] {
                        Value::Global(module, name) => Fault::unknown(module, name),
                        _ => Fault::damaged("it makes an object of what is not a class"),
                    });
                }
                b'b' => {
                    // A dictionary's attributes (PyTorch keeps versions of layers there) are not needed.
                    let _attributes = self.pop()?;
                    let object = self.top()?;
                    if !matches!(self.values[object], Value::Dict(_)) {
                        return Err(Fault::Unsupported(
                            "an object with attributes of its own".into(),
                        ));
                    }
                }
                _ => {
                    return Err(Fault::Unsupported(format!(
                        "the pickle instruction {opcode:#04x} (at byte {at})"
                    )));
                }
            }
        }
    }

    /// What a call makes. An ordered dictionary is an ordinary one here; the rest is only noted.
    fn call(&mut self, called: Id, arguments: Id) -> Result<Value<'a>, Fault> {
        let Value::Global(module, name) = self.values[called] else {
            return Err(Fault::damaged("it calls what is not an object's name"));
        };
        if (module, name) == ("collections", "OrderedDict") {
            return match &self.values[arguments] {
                Value::Tuple(items) if items.is_empty() => Ok(Value::Dict(Vec::new())),
                _ => Err(Fault::Unsupported("a dictionary made from a list".into())),
            };
        }
        if !super::objects::is_known(module, name) {
            return Err(Fault::unknown(module, name));
        }
        Ok(Value::Call(called, arguments))
    }

    fn stack_global(&mut self) -> Result<(), Fault> {
        let (name, module) = (self.pop()?, self.pop()?);
        let (Value::Text(name), Value::Text(module)) = (&self.values[name], &self.values[module])
        else {
            return Err(Fault::damaged("an object's name is not text"));
        };
        self.push(Value::Global(module, name));
        Ok(())
    }

    fn append(&mut self, items: &[Id]) -> Result<(), Fault> {
        let list = self.top()?;
        match &mut self.values[list] {
            Value::List(all) => all.extend_from_slice(items),
            _ => return Err(Fault::damaged("it appends to what is not a list")),
        }
        Ok(())
    }

    fn set(&mut self, pairs: &[Id]) -> Result<(), Fault> {
        if !pairs.len().is_multiple_of(2) {
            return Err(Fault::damaged("a dictionary's key has no value"));
        }
        let dict = self.top()?;
        match &mut self.values[dict] {
            Value::Dict(all) => all.extend(pairs.chunks_exact(2).map(|pair| (pair[0], pair[1]))),
            _ => return Err(Fault::damaged("it sets keys of what is not a dictionary")),
        }
        Ok(())
    }

    fn keep(&mut self, key: u32) -> Result<(), Fault> {
        let value = self.top()?;
        self.memo.insert(key, value);
        Ok(())
    }

    fn recall(&mut self, key: u32) -> Result<(), Fault> {
        let found = self.memo.get(&key);
        let id = *found.ok_or_else(|| Fault::damaged(format!("it recalls {key}, never kept")))?;
        self.stack.push(id);
        Ok(())
    }

    fn push(&mut self, value: Value<'a>) {
        self.stack.push(self.values.len());
        self.values.push(value);
    }

    /// Values above the last mark may be taken, and those below only once it is gone.
    fn floor(&self) -> usize {
        self.marks.last().copied().unwrap_or(0)
    }

    /// Where the topmost `count` values begin.
    fn need(&self, count: usize) -> Result<usize, Fault> {
        let from = self.stack.len().checked_sub(count);
        from.filter(|&from| from >= self.floor())
            .ok_or_else(|| Fault::damaged("it takes more values than it made"))
    }

    fn pop(&mut self) -> Result<Id, Fault> {
        let from = self.need(1)?;
        Ok(self.stack.split_off(from)[0])
    }

    fn top(&self) -> Result<Id, Fault> {
        Ok(self.stack[self.need(1)?])
    }

    fn since_mark(&mut self) -> Result<Vec<Id>, Fault> {
        let mark = self.marks.pop();
        let mark = mark.ok_or_else(|| Fault::damaged("a mark is missing"))?;
        Ok(self.stack.split_off(mark))
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], Fault> {
        let rest = &self.bytes[self.at..];
        let taken = rest.get(..len).ok_or_else(|| {
            Fault::damaged(format!(
                "{len} bytes are expected at byte {}, but {} are left",
                self.at,
                rest.len()
            ))
        })?;
        self.at += len;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, Fault> {
        Ok(self.take(1)?[0])
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let bytes = self.take(N)?;
        Ok(std::array::from_fn(|i| bytes[i]))
    }

    fn text(&mut self, len: usize) -> Result<(), Fault> {
        let bytes = self.take(len)?;
        let text = str::from_utf8(bytes).map_err(|_| Fault::damaged("a text is not UTF-8"))?;
        self.push(Value::Text(text));
        Ok(())
    }

    fn line(&mut self) -> Result<&'a str, Fault> {
        let rest = &self.bytes[self.at..];
        let len = rest.iter().position(|&byte| byte == b'\n');
        let len = len.ok_or_else(|| Fault::damaged("an object's name does not end"))?;
        let line = self.take(len + 1)?;
        str::from_utf8(&line[..len]).map_err(|_| Fault::damaged("an object's name is not UTF-8"))
    }

    /// A whole number of some bytes, the lowest first, in two's complement.
    fn long(&mut self) -> Result<(), Fault> {
        let len = usize::from(self.byte()?);
        let bytes = self.take(len)?;
        if len > LONGEST_INT {
            return Err(Fault::Unsupported(format!("a whole number of {len} bytes")));
        }
        let negative = bytes.last().is_some_and(|&byte| byte >= 0x80);
        let mut wide = [if negative { 0xff } else { 0 }; LONGEST_INT];
        wide[..len].copy_from_slice(bytes);
        self.push(Value::Int(i128::from_le_bytes(wide)));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_program_cannot_make_more_values_than_any_model_has() {
        for many in [&b"N"[..], b"h\x00", b"(", b"\x94"] {
            let mut program = b"Nq\x00".to_vec();
            program.extend(many.repeat(MOST + 2));
            assert!(matches!(fault(&program), Fault::Unsupported(_)), "{many:?}");
        }
    }

    fn fault(program: &[u8]) -> Fault {
        match load(program) {
            Ok(_) => panic!("{program:?} was taken"),
            Err(fault) => fault,
        }
    }

    #[test]
    fn plain_values_are_built_as_python_builds_them() {
        // pickle.dumps({"a": [1, 70000, -2], "b": (True, None, 0.5)}, 2)
        let program =
            b"\x80\x02}q\x00(X\x01\x00\x00\x00aq\x01]q\x02(K\x01Jp\x11\x01\x00J\xfe\xff\xff\xffe\
            X\x01\x00\x00\x00bq\x03\x88NG?\xe0\x00\x00\x00\x00\x00\x00\x87q\x04u.rest";
        let pickle = load(program).unwrap();
        assert_eq!(pickle.len, program.len() - 4);
        let Value::Dict(pairs) = pickle.get(pickle.root) else {
            panic!("no dictionary");
        };
        assert_eq!(*pickle.get(pairs[0].0), Value::Text("a"));
        let Value::List(items) = pickle.get(pairs[0].1) else {
            panic!("no list");
        };
        let numbers: Vec<_> = items.iter().map(|&id| pickle.get(id).clone()).collect();
        assert_eq!(numbers, [1, 70_000, -2].map(Value::Int));
        let Value::Tuple(items) = pickle.get(pairs[1].1) else {
            panic!("no tuple");
        };
        let values: Vec<_> = items.iter().map(|&id| pickle.get(id).clone()).collect();
        assert_eq!(values, [Value::Bool(true), Value::None, Value::Float(0.5)]);
    }

    #[test]
    fn a_call_of_anything_else_is_refused_by_its_name() {
        let evil = b"\x80\x02cos\nsystem\nX\x02\x00\x00\x00ls\x85R.";
        assert_eq!(fault(evil), Fault::Unknown("os.system".into()));
        let evil = b"\x80\x02cos\nsystem\n)\x81.";
        assert_eq!(fault(evil), Fault::Unknown("os.system".into()));
        let evil = b"\x80\x04\x8c\x08builtins\x8c\x04eval\x93)R.";
        assert_eq!(fault(evil), Fault::Unknown("builtins.eval".into()));
    }

    #[test]
    fn instructions_that_make_objects_are_not_there() {
        for program in [&b"(ios\nsystem\n."[..], b"(cos\nsystem\no."] {
            assert!(matches!(fault(program), Fault::Unsupported(_)));
        }
    }

    #[test]
    fn wild_lengths_and_missing_values_are_refused() {
        for program in [
            &b""[..],
            b".",
            b"X\xff\xff\xff\xffabc.",
            b"\x8a\xff\x01.",
            b"h\x07.",
            b"t.",
            b"K\x01(0.",
            b"\x87.",
            b"K\x01K\x02s.",
            b"}(K\x01u.",
            b"cos\nsystem",
            b"\x95\x01",
        ] {
            assert!(matches!(fault(program), Fault::Damaged(_)), "{program:?}");
        }
    }

    #[test]
    fn deep_nesting_costs_no_stack() {
        let mut program = vec![b')'];
        program.extend(std::iter::repeat_n(0x85, 1_000_000));
        program.push(b'.');
        assert!(load(&program).is_ok());
    }

    proptest! {
        #[test]
        fn any_bytes_end_in_a_value_or_a_fault(
            program in proptest::collection::vec(
                prop_oneof![any::<u8>(), proptest::sample::select(&b"(.N)}]tseuaqhKRbQc0\n"[..])], 0..200),
        ) {
            let _ = load(&program);
        }
    }
}
