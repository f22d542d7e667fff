// Makes instructions that can be run of a kernel's statements.
//
// Licensed under the Apache License, Version 2.0 (cuda/LICENSE).
#include <unordered_map>

#include "coding.hpp"

namespace emulator {

Spelling::Spelling(std::string_view opcode) {
	for (size_t at = 0; at <= opcode.size();) {
		size_t end = std::min(opcode.find('.', at), opcode.size());
		auto part = opcode.substr(at, end - at);
		at = end + 1;
		if (part == "uni" || part == "aligned" || part.find("::") != std::string_view::npos)
			continue;
		if (n < 16)
			parts[n++] = part;
	}
}

bool Spelling::only(std::string_view words, int last) const {
	for (int i = 1; i < n - last; i++) {
		bool found = false;
		for (size_t at = 0; at < words.size() && !found;) {
			size_t end = std::min(words.find(' ', at), words.size());
			found = words.substr(at, end - at) == parts[i];
			at = end + 1;
		}
		if (!found)
			return false;
	}
	return true;
}

namespace {

using Family = bool (*)(const Spelling &, const Operands &, Coding &);

const std::unordered_map<std::string_view, Family> families = {
	{"add", codeArithmetic}, {"sub", codeArithmetic}, {"mul", codeArithmetic}, {"mad", codeArithmetic}, {"fma", codeArithmetic},
	{"div", codeArithmetic}, {"rem", codeArithmetic}, {"neg", codeArithmetic}, {"abs", codeArithmetic}, {"min", codeArithmetic},
	{"max", codeArithmetic}, {"addc", codeArithmetic}, {"subc", codeArithmetic}, {"madc", codeArithmetic},
	{"ex2", codeFunction}, {"lg2", codeFunction}, {"sin", codeFunction}, {"cos", codeFunction}, {"tanh", codeFunction},
	{"rcp", codeFunction}, {"sqrt", codeFunction}, {"rsqrt", codeFunction},
	{"and", codeBits}, {"or", codeBits}, {"xor", codeBits}, {"not", codeBits}, {"shl", codeBits}, {"shr", codeBits}, {"shf", codeBits},
	{"prmt", codeBits}, {"lop3", codeBits}, {"bfi", codeBits}, {"bfe", codeBits}, {"clz", codeBits}, {"popc", codeBits}, {"brev", codeBits},
	{"mov", codeMove}, {"selp", codeMove}, {"cvta", codeMove}, {"setp", codeCompare}, {"cvt", codeConvert},
	{"ld", codeAccess}, {"st", codeAccess}, {"atom", codeAtomic}, {"red", codeAtomic}, {"cp", codeCopy},
	{"shfl", codeCollective}, {"vote", codeCollective}, {"redux", codeCollective}, {"activemask", codeCollective},
	{"mma", codeMatrix}, {"ldmatrix", codeMatrix},
	{"bra", codeFlow}, {"ret", codeFlow}, {"exit", codeFlow}, {"trap", codeFlow}, {"membar", codeFlow}, {"fence", codeFlow},
	{"bar", codeFlow}, {"barrier", codeFlow}, {"griddepcontrol", codeFlow}, {"prefetch", codeFlow},
};

// Constants, each once, as 32 equal values.
class Constants {
  public:
	explicit Constants(Bytes &bytes) : bytes(bytes) {}
	Place place(uint64_t value, uint8_t width) {
		auto [i, fresh] = places.emplace(std::to_string(width) + ":" + std::to_string(value), 0);
		if (fresh) {
			size_t at = bytes.size();
			i->second = Place(at) | 1;
			if (width == 0) { // a predicate
				uint32_t all = value ? everyLane : 0;
				bytes.resize(at + 4);
				memcpy(&bytes[at], &all, 4);
			} else {
				bytes.resize(at + width * lanes);
				for (int k = 0; k < lanes; k++)
					memcpy(&bytes[at + k * width], &value, width);
			}
		}
		return i->second;
	}

  private:
	Bytes &bytes;
	std::unordered_map<std::string, Place> places;
};

uint64_t numberFor(const Atom &a, uint8_t width, uint32_t line) {
	if (a.kind == Atom::single && width != 4) {
		if (width != 8)
			invalid(line, "a float32 where there is none wanted");
		double d = bitsOf<float>(uint32_t(a.value));
		return bitsOf<uint64_t>(d);
	}
	if (a.kind == Atom::real && width != 8) {
		if (width != 4)
			invalid(line, "a float64 where there is none wanted");
		return bitsOf<uint32_t>(float(bitsOf<double>(a.value)));
	}
	return width == 0 || width == 8 ? a.value : a.value & ((1ull << 8 * width) - 1);
}

class Decoder {
  public:
	Decoder(const Module &module, const std::string &kernel) : body(module.body(kernel)), constants(k.constants) {
		k.name = kernel;
		k.lines = module.lines;
		k.parameters = body.parameters;
		k.parameterBytes = body.parameterBytes;
		uint32_t a = body.dynamicAlign;
		k.sharedBytes = (body.sharedBytes + a - 1) / a * a; // the dynamic memory begins there
		k.localBytes = (body.localBytes + 15) / 16 * 16;
		k.maxThreads = body.maxThreads, k.minBlocks = body.minBlocks, k.maxRegisters = body.maxRegisters;
		for (const Statement &s : body.statements)
			one(s);
		std::vector<uint32_t> specials;
		for (auto &[special, reg] : body.specials) {
			k.specials.push_back(special);
			specials.push_back(reg);
		}
		placeRegisters(k, named, body.widths, specials);
	}
	Kernel k;

  private:
	Body body;
	Constants constants;
	std::vector<Named> named;

	[[noreturn]] void unknown(const Statement &s, const std::string &why) { invalid(s.line, std::string(s.opcode) + ": " + why); }

	void one(const Statement &s) {
		Operands o;
		Atom atoms[mostOperands + 1];
		Instruction in;
		o.statement = &s;
		bool second = false;
		for (int i = 0; i < s.count; i++) {
			const Operand &op = s.operands[i];
			if (op.kind == Operand::address) {
				(second ? secondOffset : in.offset) = op.offset;
				second = true;
			}
			for (int j = 0; j < op.count; j++) {
				const Atom &a = op.atoms[j];
				if (a.kind == Atom::label) {
					in.target = body.labels[a.number];
					continue;
				}
				if (o.n == mostOperands)
					unknown(s, "too many operands");
				o.width[o.n] = a.kind == Atom::reg ? body.widths[a.number] : 255;
				atoms[o.n++] = a;
			}
		}
		Spelling spelling(s.opcode);
		Coding c;
		auto f = families.find(spelling.base());
		if (f == families.end() || !f->second(spelling, o, c))
			unknown(s, "the emulator does not know this instruction");
		if (c.n != o.n)
			unknown(s, "it has " + std::to_string(o.n) + " operands and not " + std::to_string(c.n));
		in.run = c.run, in.flow = c.flow, in.count = c.count, in.mode = c.mode, in.named = c.named, in.line = s.line;
		in.guarded = s.guard >= 0, in.unless = s.unless;
		if (f->second == codeCopy) {
			bool group = spelling.has("wait_group");
			in.target = spelling.has("wait_all") ? ~0u : group ? uint32_t(atoms[0].value) : uint32_t(secondOffset);
		}
		if (c.flow == Flow::dependency)
			k.dependent = true;
		Named n;
		n.defs = c.defs, n.n = c.n;
		if (in.guarded)
			n.guard = s.guard;
		for (int i = 0; i < c.n; i++) {
			const Atom &a = atoms[i];
			n.operands[i] = Named::none;
			switch (a.kind) {
			case Atom::reg:
				if (body.widths[a.number] != c.width[i])
					unknown(s, "operand " + std::to_string(i + 1) + " has " + std::to_string(8 * body.widths[a.number]) + " bits and not " + std::to_string(8 * c.width[i]));
				n.operands[i] = a.number;
				break;
			case Atom::sink:
				if (i >= c.defs)
					unknown(s, "_ is read");
				n.operands[i] = body.widths.size();
				body.widths.push_back(c.width[i]);
				break;
			default:
				if (i < c.defs)
					unknown(s, "operand " + std::to_string(i + 1) + " is written and no register");
				in.at[i] = a.kind == Atom::symbol ? constants.place(address(a, s), c.width[i]) : constants.place(numberFor(a, c.width[i], s.line), c.width[i]);
			}
		}
		k.code.push_back(in);
		named.push_back(n);
		secondOffset = 0;
	}

	int64_t secondOffset = 0;

	// The address of a variable, in its space; mov takes that of shared memory to 32 bits.
	uint64_t address(const Atom &a, const Statement &s) {
		if (a.space == Space::dynamic)
			return k.sharedBytes;
		if (a.space == Space::shared || a.space == Space::local || a.space == Space::param)
			return a.value;
		unknown(s, "a name that has no address");
	}
};

} // namespace

Kernel decode(const Module &module, const std::string &kernel) { return std::move(Decoder(module, kernel).k); }

} // namespace emulator
