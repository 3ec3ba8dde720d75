"""PTX text as a list of kernels. In: a module as clang or NVRTC print it. Out: Module: kernels with parameters, registers, variables and instructions. Written from the
PTX ISA's chapters "Syntax" and "State spaces, types, and variables". What is not understood raises Unsupported: nothing is skipped but comments, .loc and .pragma.
"""
import re
from dataclasses import dataclass, field

BYTES = {"8": 1, "16": 2, "32": 4, "64": 8}


class Unsupported(Exception):
    """The text uses what this interpreter does not know."""


@dataclass
class Operand:
    kind: str  # register, integer, f32, f64 (bits), symbol, special, address, vector, pair, sink
    value: object = None
    offset: int = 0
    negated: bool = False


@dataclass
class Instruction:
    name: str  # with all its suffixes
    operands: list
    guard: tuple = None  # register index, negated
    text: str = ""

    def __post_init__(self):
        self.parts = self.name.split(".")


@dataclass
class Variable:
    name: str
    size: int
    align: int
    initial: bytes = b""


@dataclass
class Kernel:
    name: str
    parameters: dict = field(default_factory=dict)  # name -> Variable, in order
    registers: list = field(default_factory=list)  # type of each, "pred", "b32", ...
    local: list = field(default_factory=list)
    shared: list = field(default_factory=list)
    code: list = field(default_factory=list)
    labels: dict = field(default_factory=dict)
    threads: int = 0  # .maxntid


@dataclass
class Module:
    version: str = ""
    target: str = ""
    kernels: dict = field(default_factory=dict)
    shared: list = field(default_factory=list)  # .extern: the launch's dynamic shared memory
    globals: list = field(default_factory=list)


def type_bytes(name):
    match = re.fullmatch(r"[bsuf](8|16|32|64)", name)
    if not match:
        raise Unsupported(f"type .{name}")
    return BYTES[match[1]]


def variable(text):
    """`.align 8 .b8 name[40] = {1, 2}` without its state space."""
    match = re.fullmatch(r"(?:\.align (\d+) )?\.(\w+) ([\w$%]+)(?:\[(\d*)\])?(?: ?= ?(.+))?", text)
    if not match:
        raise Unsupported("declaration: " + text)
    align, type_, name, count, initial = match.groups()
    each = type_bytes(type_)
    elements = 1 if count is None else int(count or 0)
    data = b""
    if initial:
        items = [i.strip() for i in initial.strip("{} ").split(",")]
        data = b"".join((immediate(i).value & ((1 << 8 * each) - 1)).to_bytes(each, "little") for i in items).ljust(each * elements, b"\0")
    return Variable(name, each * elements, int(align or each), data)


def immediate(text):
    """An integer, 0f... or 0d... constant, or None."""
    if match := re.fullmatch(r"0[fF]([0-9a-fA-F]{8})", text):
        return Operand("f32", int(match[1], 16))
    if match := re.fullmatch(r"0[dD]([0-9a-fA-F]{16})", text):
        return Operand("f64", int(match[1], 16))
    if re.fullmatch(r"-?(0[xX][0-9a-fA-F]+|\d+)U?", text):
        return Operand("integer", int(text.rstrip("U"), 0))
    return None


class BodyParser:
    """The body of one kernel; inline assembly opens scopes with registers of their own."""

    def __init__(self, kernel):
        self.kernel, self.scopes = kernel, [{}]

    def declare(self, text):
        type_, names = re.fullmatch(r"\.(\w+) (.+)", text).groups()
        type_ = "pred" if type_ == "pred" else f"b{8 * type_bytes(type_)}"
        for name in (n.strip() for n in names.split(",")):
            match = re.fullmatch(r"(.+)<(\d+)>", name)
            for full in [f"{match[1]}{i}" for i in range(int(match[2]))] if match else [name]:
                self.scopes[-1][full] = len(self.kernel.registers)
                self.kernel.registers.append(type_)

    def register(self, name):
        return next((scope[name] for scope in reversed(self.scopes) if name in scope), None)

    def operand(self, text):
        text = text.strip()
        if text.startswith("!"):
            inner = self.operand(text[1:])
            inner.negated = True
            return inner
        if text.startswith("{"):
            return Operand("vector", [self.operand(part) for part in text.strip("{} ").split(",")])
        if text.startswith("["):
            base, offset = re.fullmatch(r"\[\s*([^+\s]+?)\s*(?:\+\s*(-?\d+))?\s*\]", text).groups()
            return Operand("address", self.operand(base), int(offset or 0))
        if "|" in text:
            return Operand("pair", [self.operand(part) for part in text.split("|")])
        if text == "_":
            return Operand("sink")
        if (index := self.register(text)) is not None:
            return Operand("register", index)
        if (constant := immediate(text)) is not None:
            return constant
        if re.fullmatch(r"%(tid|ntid|ctaid|nctaid)\.[xyz]|%laneid", text):
            return Operand("special", text[1:])
        if match := re.fullmatch(r"([\w$]+)(?:\+(\d+))?", text):
            return Operand("symbol", match[1], int(match[2] or 0))
        raise Unsupported("operand: " + text)

    def statement(self, text):
        match = re.fullmatch(r"(?:@(!?)([\w%$]+)\s+)?([\w.:]+)\s*(.*)", text, re.S)
        if not match:
            raise Unsupported("statement: " + text)
        negated, predicate, name, rest = match.groups()
        guard = (self.register(predicate), negated == "!") if predicate else None
        parts = [] if not rest else re.split(r",(?![^{\[(]*[}\])])", rest)
        self.kernel.code.append(Instruction(name, [self.operand(p) for p in parts], guard, text))

    def parse(self, body):
        for token in re.finditer(r"\s*(?:([\w$]+):(?!:)|(\{)(?=\s*\.reg)|(\})|([^;{}]*(?:\{[^{}]*\}[^;{}]*)*);)", body):
            label, opening, closing, statement = token.groups()
            if label:
                self.kernel.labels[label] = len(self.kernel.code)
            elif opening:
                self.scopes.append({})
            elif closing:
                self.scopes.pop()
            elif statement and (text := re.sub(r"\s+", " ", statement).strip()):
                self.directive(text) if text.startswith(".") else self.statement(text)

    def directive(self, text):
        word, rest = text.split(" ", 1)
        if word == ".reg":
            self.declare(rest)
        elif word in (".local", ".shared"):
            getattr(self.kernel, word[1:]).append(variable(rest))
        elif word not in (".pragma", ".loc"):
            raise Unsupported("directive: " + text)


def parse(text):
    module = Module()
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", text.rstrip("\0"), flags=re.S)
    at = 0
    while match := re.compile(r"\s*(\.\w+)").match(text, at):
        word = match[1]
        if word in (".version", ".target", ".address_size", ".file"):
            end = text.index("\n", match.end())
            if word in (".version", ".target"):
                setattr(module, word[1:], text[match.end():end].strip())
            at = end
        elif head := re.compile(r"\s*(?:\.visible |\.weak )*\.entry\s+([\w$]+)\s*\(([^)]*)\)([^{]*)\{").match(text, at):
            at = entry(module, text, *head.groups(), head.end())
        else:
            at = text.index(";", at) + 1
            module_variable(module, re.sub(r"\s+", " ", text[match.start(1):at - 1]).strip())
    if text[at:].strip():
        raise Unsupported("module: " + text[at:at + 80].strip())
    return module


def module_variable(module, text):
    match = re.fullmatch(r"(?:\.(?:visible|weak|extern) )*\.(shared|global|const) (.+)", text)
    if not match:
        raise Unsupported("directive: " + text[:80])
    made = variable(match[2])
    (module.shared if match[1] == "shared" else module.globals).append(made)


def entry(module, text, name, parameters, directives, begin):
    kernel = Kernel(name)
    for item in filter(None, (re.sub(r"\s+", " ", p).strip() for p in parameters.split(","))):
        made = variable(re.fullmatch(r"\.param (.+)", item)[1])
        kernel.parameters[made.name] = made
    if threads := re.search(r"\.maxntid\s+(\d+)(?:,\s*(\d+))?(?:,\s*(\d+))?", directives):
        kernel.threads = int(threads[1]) * int(threads[2] or 1) * int(threads[3] or 1)
    depth, end = 1, begin
    while depth:
        brace = re.compile(r"[{}]").search(text, end)
        depth += 1 if brace[0] == "{" else -1
        end = brace.end()
    BodyParser(kernel).parse(text[begin:end - 1])
    module.kernels[name] = kernel
    return end
