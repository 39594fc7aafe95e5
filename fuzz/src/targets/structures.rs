//! Structures of Arrow's C data interface with any formats, numbers and pointers, as a broken or hostile library makes them.
//!
//! A consumer cannot see how long memory is: a buffer has the bytes that its rows, its last offset or its stated length demand,
//! and not one more, or its pointer is null. An array of pointers has as many as are stated, or its pointer is null.

use std::ffi::{c_char, c_void};
use std::mem::size_of;
use std::ptr::{null, null_mut};

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema};

/// Bytes of the largest buffer; the pointer of one that would be larger is null.
const LARGEST: usize = 4096;

/// Types inside each other; a deeper one is a child of itself.
const DEPTH: usize = 4;

const FORMATS: [&[u8]; 64] = [
    b"n",
    b"b",
    b"c",
    b"C",
    b"s",
    b"S",
    b"i",
    b"I",
    b"l",
    b"L",
    b"e",
    b"f",
    b"g",
    b"z",
    b"Z",
    b"vz",
    b"u",
    b"U",
    b"vu",
    b"d:5,2",
    b"d:38,-3,128",
    b"d:70,3,256",
    b"d:9,1,32",
    b"d:0,200,64",
    b"d:255,-128",
    b"w:0",
    b"w:3",
    b"w:2147483647",
    b"w:-1",
    b"w:",
    b"tdD",
    b"tdm",
    b"tts",
    b"ttm",
    b"ttu",
    b"ttn",
    b"tss:",
    b"tsu:UTC",
    b"tsn:Nowhere/At all",
    b"tDs",
    b"tDn",
    b"tiM",
    b"tiD",
    b"tin",
    b"+l",
    b"+L",
    b"+vl",
    b"+vL",
    b"+w:0",
    b"+w:2",
    b"+w:2147483647",
    b"+w:-1",
    b"+s",
    b"+s",
    b"+m",
    b"+m",
    b"+r",
    b"+r",
    b"+ud:0,1",
    b"+us:0,1",
    b"+us:5,5",
    b"+ud:-1,127",
    b"+us:",
    b"+x",
];

/// Takes numbers from an input, and zeros after its end.
pub struct Source<'a>(pub &'a [u8]);

impl Source<'_> {
    fn byte(&mut self) -> u8 {
        self.0.split_off_first().copied().unwrap_or_default()
    }

    /// Whether a rare thing happens.
    fn rarely(&mut self) -> bool {
        self.byte() >= 0xf8
    }

    /// A number near those of small arrays, or now and then any other.
    fn number(&mut self, near: i64) -> i64 {
        match self.byte() {
            first @ 0..0xc0 => near.wrapping_add(i64::from(first % 3) * i64::from(first >> 6 & 1)),
            first @ 0xc0..0xf0 => i64::from(first % 12) - 1,
            first => {
                let number = i64::from(self.byte()) - 128;
                match first % 4 {
                    0 => number,
                    1 => number << 24,
                    2 => number << 48,
                    _ => i64::MAX - number.abs(),
                }
            }
        }
    }
}

/// `struct ArrowSchema`
#[repr(C)]
struct Schema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *const *const Schema,
    dictionary: *const Schema,
    release: Option<unsafe extern "C" fn(*mut Schema)>,
    private_data: *mut c_void,
}

/// `struct ArrowArray`
#[repr(C)]
struct Array {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *const *const c_void,
    children: *const *const Array,
    dictionary: *const Array,
    release: Option<unsafe extern "C" fn(*mut Array)>,
    private_data: *mut Memory,
}

/// A type, and the types in it, for those who make an array of it.
struct Type {
    format: Vec<u8>,
    children: Vec<Type>,
    dictionary: Option<Box<Type>>,
}

/// The memory of structures, each allocated by itself, so that reading beyond its end is noticed.
#[derive(Default)]
pub struct Memory {
    bytes: Vec<Box<[u8]>>,
    pointers: Vec<Box<[*const c_void]>>,
    schemas: Vec<*mut Schema>,
    arrays: Vec<*mut Array>,
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the pointers were made from boxes, each of which is in one of these lists once.
        unsafe {
            self.schemas.iter().for_each(|schema| drop(Box::from_raw(*schema)));
            self.arrays.iter().for_each(|array| drop(Box::from_raw(*array)));
        }
    }
}

impl Memory {
    fn bytes(&mut self, bytes: Vec<u8>) -> *const c_void {
        self.bytes.push(bytes.into_boxed_slice());
        self.bytes[self.bytes.len() - 1].as_ptr().cast()
    }

    fn pointers<T>(&mut self, pointers: &[*const T]) -> *const *const T {
        self.pointers.push(pointers.iter().map(|pointer| pointer.cast()).collect());
        self.pointers[self.pointers.len() - 1].as_ptr().cast()
    }

    fn text(&mut self, text: &[u8]) -> *const c_char {
        self.bytes([text, b"\0"].concat()).cast()
    }
}

/// A schema, and what is needed to make an array of its type.
pub struct Column {
    of: Type,
    schema: *const Schema,
    _memory: Memory,
}

impl Column {
    pub fn new(input: &mut Source<'_>) -> Self {
        let mut memory = Memory::default();
        let (schema, of) = make_schema(input, &mut memory, None, 0);
        Column { of, schema, _memory: memory }
    }

    pub fn schema(&self) -> &FFI_ArrowSchema {
        // SAFETY: both have the layout of the interface, and the memory lives as long as the column.
        unsafe { &*self.schema.cast() }
    }

    /// An array of the type of the schema, which frees its memory when it is released.
    pub fn array(&self, input: &mut Source<'_>) -> FFI_ArrowArray {
        let mut memory = Box::<Memory>::default();
        let rows = i64::from(input.byte() % 8);
        let array = make_array(input, &mut memory, &self.of, rows);
        let own = memory.arrays.pop().expect("the array was made last");
        assert_eq!(own.cast_const(), array);
        // SAFETY: the box was just taken out of the memory, and nothing else points to it.
        unsafe {
            let mut moved = Box::from_raw(own);
            moved.release = Some(release);
            moved.private_data = Box::into_raw(memory);
            FFI_ArrowArray::from_raw((&raw mut *moved).cast())
        }
    }
}

unsafe extern "C" fn release(array: *mut Array) {
    // SAFETY: the interface calls it once, with an array whose memory is a box.
    unsafe {
        (*array).release = None;
        drop(Box::from_raw((*array).private_data));
    }
}

unsafe extern "C" fn keep(_: *mut Schema) {}

fn make_schema(
    input: &mut Source<'_>,
    memory: &mut Memory,
    format: Option<&[u8]>,
    depth: usize,
) -> (*const Schema, Type) {
    let format = match (format, input.byte()) {
        (Some(format), ..0xf0) => format.to_vec(),
        (_, 0xff) => (0..input.byte() % 6).map(|_| input.byte().max(1)).collect(),
        (_, number) => FORMATS[usize::from(number) % FORMATS.len()].to_vec(),
    };
    let natural: &[Option<&[u8]>] = match format.as_slice() {
        b"+m" => &[Some(b"+s")],
        b"+r" => &[Some(b"i"), None],
        b"+l" | b"+L" | b"+vl" | b"+vL" => &[None],
        [b'+', b'w', ..] => &[None],
        [b'+', ..] => &[None, None],
        _ => &[],
    };
    let count = if input.rarely() { usize::from(input.byte() % 4) } else { natural.len() };
    let mut children = Vec::new();
    let mut pointers = Vec::new();
    if depth < DEPTH {
        for index in 0..count {
            let (pointer, of) = make_schema(input, memory, natural.get(index).copied().flatten(), depth + 1);
            children.push(of);
            pointers.push(pointer);
        }
    }
    let is_index = matches!(format.as_slice(), [b'c' | b'C' | b's' | b'S' | b'i' | b'I' | b'l' | b'L']);
    let has_dictionary = if is_index { input.byte() % 4 == 3 } else { input.rarely() };
    let dictionary = (has_dictionary && depth < DEPTH).then(|| make_schema(input, memory, None, depth + 1));
    let mut schema = Schema {
        format: memory.text(&format),
        name: memory.text(b"name"),
        metadata: null(),
        flags: i64::from(input.byte()),
        n_children: pointers.len() as i64,
        children: null(),
        dictionary: dictionary.as_ref().map_or(null(), |(pointer, _)| *pointer),
        release: Some(keep),
        private_data: null_mut(),
    };
    let mut is_own_child = false;
    match if input.rarely() { input.byte() % 12 } else { 0xff } {
        0 => schema.format = null(),
        1 => schema.name = null(),
        2 => schema.name = memory.text(b"\xff\xfe"),
        3 => schema.format = memory.text(b"\xff"),
        4 => schema.n_children = input.number(-1).min(0),
        5 => schema.n_children = i64::MAX,
        6 => pointers.iter_mut().for_each(|pointer| *pointer = null()),
        7 => schema.release = None,
        8 => schema.metadata = metadata(memory, &[(1, b"k"), (2, b"vv")]),
        9 => schema.metadata = metadata(memory, &[(1, b"\xff"), (0, b"")]),
        10 => schema.metadata = metadata(memory, &[(-1, b"")]),
        11 => is_own_child = true,
        _ => {}
    }
    if schema.n_children == pointers.len() as i64 {
        schema.children = memory.pointers(&pointers);
    }
    let own = Box::into_raw(Box::new(schema));
    if is_own_child {
        let itself = vec![own.cast_const(); pointers.len()];
        // SAFETY: nothing else uses the box.
        unsafe { (*own).children = memory.pointers(&itself) };
    }
    memory.schemas.push(own);
    (own, Type { format, children, dictionary: dictionary.map(|(_, of)| Box::new(of)) })
}

/// Keys and values with their stated lengths, one after the other.
fn metadata(memory: &mut Memory, texts: &[(i32, &[u8])]) -> *const c_char {
    let mut bytes = (texts.len().div_ceil(2) as i32).to_ne_bytes().to_vec();
    for (length, text) in texts {
        bytes.extend(length.to_ne_bytes());
        bytes.extend(*text);
    }
    memory.bytes(bytes).cast()
}

/// What a buffer has for each row.
#[derive(Clone, Copy, PartialEq)]
enum Content {
    Bits,
    Numbers(usize),
    /// One more than rows.
    Offsets(usize),
    /// As many bytes as the last offset says.
    Values,
    Views,
}

/// The buffers of a format, and the elements of a child for each row.
fn layout(format: &[u8]) -> (Vec<Content>, usize) {
    use Content::{Bits, Numbers, Offsets, Values, Views};
    let size = |text: &[u8]| str::from_utf8(text).ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    let buffers = match format {
        b"b" => vec![Bits, Bits],
        b"c" | b"C" => vec![Bits, Numbers(1)],
        b"s" | b"S" | b"e" => vec![Bits, Numbers(2)],
        b"i" | b"I" | b"f" | b"tdD" | b"tts" | b"ttm" | b"tiM" => vec![Bits, Numbers(4)],
        b"tin" => vec![Bits, Numbers(16)],
        b"z" | b"u" => vec![Bits, Offsets(4), Values],
        b"Z" | b"U" => vec![Bits, Offsets(8), Values],
        b"vz" | b"vu" => vec![Bits, Views],
        b"+l" | b"+m" => vec![Bits, Offsets(4)],
        b"+L" => vec![Bits, Offsets(8)],
        b"+vl" => vec![Bits, Numbers(4), Numbers(4)],
        b"+vL" => vec![Bits, Numbers(8), Numbers(8)],
        [b'+', b'u', b'd', ..] => vec![Numbers(1), Numbers(4)],
        [b'+', b'u', b's', ..] => vec![Numbers(1)],
        [b'+', b'w', b':', size_text @ ..] => return (vec![Bits], size(size_text)),
        b"+s" => vec![Bits],
        b"n" | b"+r" => vec![],
        [b'w', b':', size_text @ ..] => vec![Bits, Numbers(size(size_text))],
        [b'd', ..] if format.ends_with(b",256") => vec![Bits, Numbers(32)],
        [b'd', ..] if format.ends_with(b",32") => vec![Bits, Numbers(4)],
        [b'd', ..] if format.ends_with(b",64") => vec![Bits, Numbers(8)],
        [b'd', ..] => vec![Bits, Numbers(16)],
        _ => vec![Bits, Numbers(8)],
    };
    (buffers, 1)
}

fn make_array(input: &mut Source<'_>, memory: &mut Memory, of: &Type, rows: i64) -> *const Array {
    let (length, offset) = match input.byte() {
        ..0x80 => (rows, 0),
        0x80..0xc0 => ((rows - 1).max(0), rows.min(1)),
        _ => (input.number(rows), input.number(0)),
    };
    let all = usize::try_from(length.saturating_add(offset)).unwrap_or(0);
    let (contents, elements) = layout(&of.format);
    let mut pointers = Vec::new();
    // Elements that lists refer to, or values.
    let mut last = all as i64;
    for content in contents {
        let buffer = fill(input, content, all, &mut last);
        let is_moved = input.rarely();
        pointers.push(match buffer {
            Some(_) if content == Content::Bits && input.byte() < 0x80 => null(),
            Some(buffer) if is_moved => memory.bytes([b"\0", &buffer[..]].concat()).wrapping_byte_add(1),
            Some(buffer) => memory.bytes(buffer),
            None => null(),
        });
        if content == Content::Views {
            let mut lengths = Vec::new();
            for _ in 0..input.byte() % 4 {
                let length = input.number(20);
                let bytes =
                    usize::try_from(length).ok().filter(|bytes| *bytes <= LARGEST).map(|bytes| texts(input, bytes));
                pointers.push(bytes.map_or(null(), |bytes| memory.bytes(bytes)));
                lengths.extend(length.to_ne_bytes());
            }
            pointers.push(memory.bytes(lengths));
        }
    }
    let wanted = match of.format.as_slice() {
        [b'+', b'w', ..] => (all as i64).saturating_mul(elements as i64).min(LARGEST as i64),
        b"+vl" | b"+vL" => 8,
        b"+r" => 3,
        _ => last.clamp(0, LARGEST as i64),
    };
    let mut children: Vec<_> = of.children.iter().map(|child| make_array(input, memory, child, wanted)).collect();
    let dictionary = of.dictionary.as_ref().map_or(null(), |of| make_array(input, memory, of, 4));
    let mut array = Array {
        length,
        null_count: if input.rarely() { input.number(0) } else { -1 },
        offset,
        n_buffers: pointers.len() as i64,
        n_children: children.len() as i64,
        buffers: null(),
        children: null(),
        dictionary,
        release: None,
        private_data: null_mut(),
    };
    match if input.rarely() { input.byte() % 8 } else { 0xff } {
        0 => array.n_buffers = input.number(-1).min(1).min(array.n_buffers),
        1 => {
            pointers.push(null());
            array.n_buffers += 1;
        }
        2 => array.n_buffers = i64::MAX,
        3 => array.n_children = input.number(-1).min(0),
        4 => children.iter_mut().for_each(|child| *child = null()),
        5 => array.n_children = i64::MAX,
        6 => array.dictionary = null(),
        7 => pointers.fill(null()),
        _ => {}
    }
    if array.n_buffers <= pointers.len() as i64 && !input.rarely() {
        array.buffers = memory.pointers(&pointers);
    }
    if array.n_children <= children.len() as i64 && !input.rarely() {
        array.children = memory.pointers(&children);
    }
    let own = Box::into_raw(Box::new(array));
    memory.arrays.push(own);
    own
}

/// Content of a buffer for so many rows, and in `last` its last offset; `None` if it is too large.
fn fill(input: &mut Source<'_>, content: Content, rows: usize, last: &mut i64) -> Option<Vec<u8>> {
    let (count, width) = match content {
        Content::Bits => (rows.div_ceil(8), 1),
        Content::Numbers(width) => (rows, width),
        Content::Offsets(width) => (rows.checked_add(1)?, width),
        Content::Values => (usize::try_from(*last).ok()?, 1),
        Content::Views => (rows, size_of::<u128>()),
    };
    let size = count.checked_mul(width).filter(|size| *size <= LARGEST)?;
    let count = if width == 0 { 0 } else { count };
    match content {
        Content::Bits => Some((0..size).map(|_| input.byte()).collect()),
        Content::Values => Some(texts(input, size)),
        Content::Views => {
            let view = |_| {
                let (length, index) = (input.number(3) as u32, input.number(0) as u32);
                let text = u32::from_le_bytes([b'a', input.byte(), b'b', b'c']);
                [length, text, index, input.number(0) as u32].map(u32::to_le_bytes).concat()
            };
            Some((0..rows).flat_map(view).collect())
        }
        Content::Numbers(_) | Content::Offsets(_) => {
            let is_rising = matches!(content, Content::Offsets(_)) || input.byte() < 0x80;
            let mut numbers = Vec::with_capacity(size);
            let mut number = 0;
            for _ in 0..count {
                number = input.number(number);
                let bytes = i128::from(number).to_le_bytes();
                numbers.extend((0..width).map(|index| bytes[index % 16]));
                number = if is_rising { number } else { 0 };
            }
            if let Content::Offsets(4) = content {
                *last = (number as i32).into();
            } else if let Content::Offsets(_) = content {
                *last = number;
            }
            Some(numbers)
        }
    }
}

/// Text, which is now and then not UTF-8.
fn texts(input: &mut Source<'_>, size: usize) -> Vec<u8> {
    let first = input.byte();
    (0..size).map(|index| if first < 0xc0 { b'a' + (index % 16) as u8 } else { input.byte() }).collect()
}
