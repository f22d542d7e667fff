// Reads PTX: a module in outline, the body of a kernel statement by statement. Functions
// that a kernel calls are put in its place of the call, so that no lane has a stack.
//
// Licensed under the Apache License, Version 2.0 (cuda/LICENSE).
#include "parse.hpp"

#include <cstdlib>

#include "lex.hpp"

namespace emulator {

void invalid(uint32_t line, const std::string &why) { throw InvalidPTX("line " + std::to_string(line) + ": " + why); }

Type typeOf(std::string_view w) {
	if (w == "pred")
		return {'p', 0};
	if (w.size() < 2 || w.size() > 3 || std::string_view("usbf").find(w[0]) == std::string_view::npos)
		return {};
	auto bits = w.substr(1);
	uint8_t bytes = bits == "8" ? 1 : bits == "16" ? 2 : bits == "32" ? 4 : bits == "64" ? 8 : 0;
	return bytes == 0 || (w[0] == 'f' && bytes == 1) ? Type{} : Type{w[0], bytes};
}

namespace {

constexpr uint64_t mostBytes = 1u << 30; // of a variable

// The number at hand: 12, 0x1f, 017, 0f3F800000, 0d3FF0000000000000, 1.5.
Atom numberOf(Lexer &in, bool negative) {
	std::string s(in.token);
	if (in.kind != Lexer::number)
		invalid(in.line, "a number is missing before \"" + s.substr(0, 40) + "\"");
	Atom a;
	char *end = nullptr;
	if (s.size() > 2 && s[0] == '0' && (s[1] == 'f' || s[1] == 'F' || s[1] == 'd' || s[1] == 'D')) {
		bool single = s[1] == 'f' || s[1] == 'F';
		a.kind = single ? Atom::single : Atom::real;
		a.value = strtoull(s.c_str() + 2, &end, 16);
		if (s.size() != (single ? 10u : 18u) || *end)
			invalid(in.line, "\"" + s + "\" is no number");
		if (negative)
			a.value ^= single ? 1ull << 31 : 1ull << 63;
	} else if (s.find('.') != std::string::npos) {
		double d = strtod(s.c_str(), &end);
		if (negative)
			d = -d;
		a.kind = Atom::real;
		memcpy(&a.value, &d, sizeof d);
	} else {
		a.kind = Atom::integer;
		if (s.back() == 'U')
			s.pop_back();
		a.value = strtoull(s.c_str(), &end, 0);
		if (negative)
			a.value = -a.value;
	}
	if (*end)
		invalid(in.line, "\"" + s + "\" is no number");
	in.next();
	return a;
}

uint64_t countOf(Lexer &in, uint64_t most) {
	uint32_t line = in.line;
	Atom a = numberOf(in, false);
	if (a.kind != Atom::integer || a.value > most)
		invalid(line, "a number is not from 0 to " + std::to_string(most));
	return a.value;
}

struct Declaration {
	std::string_view name;
	Type type;
	uint64_t bytes = 0;
	uint32_t align = 1;
	bool open = false; // [] without a number
};

// What follows .global, .shared, .local or .param: .align 16 .b8 name[40].
Declaration declaration(Lexer &in) {
	Declaration d;
	uint32_t align = 0, vector = 1;
	for (;;) {
		if (in.take(".align")) {
			align = countOf(in, 1 << 16);
			if (align == 0 || (align & (align - 1)))
				invalid(in.line, "an alignment is no power of two");
		} else if (in.is(".v2") || in.is(".v4")) {
			vector = in.token[2] - '0';
			in.next();
		} else if (in.take(".ptr")) {
			while (in.is(".global") || in.is(".const") || in.is(".shared") || in.is(".local"))
				in.next();
			if (in.take(".align"))
				countOf(in, 1 << 16); // of what it points to
		} else if (in.kind == Lexer::word && in.token[0] == '.') {
			d.type = typeOf(in.token.substr(1));
			if (d.type.kind == 0 || d.type.kind == 'p')
				invalid(in.line, "\"" + std::string(in.token) + "\" is no type of a variable");
			in.next();
		} else
			break;
	}
	if (d.type.kind == 0)
		invalid(in.line, "a variable has no type");
	d.name = in.name();
	d.bytes = d.type.bytes * vector;
	d.align = align ? align : d.bytes;
	while (in.take("[")) {
		if (in.is("]"))
			d.open = true;
		else
			d.bytes *= countOf(in, mostBytes);
		in.want("]");
		if (d.bytes > mostBytes)
			invalid(in.line, "the variable " + std::string(d.name) + " is too large");
	}
	return d;
}

uint64_t aligned(uint64_t at, uint64_t align) { return (at + align - 1) / align * align; }

const std::map<std::string_view, Special> specialNames = {
	{"%tid.x", Special::tidX}, {"%tid.y", Special::tidY}, {"%tid.z", Special::tidZ},
	{"%ntid.x", Special::ntidX}, {"%ntid.y", Special::ntidY}, {"%ntid.z", Special::ntidZ},
	{"%ctaid.x", Special::ctaidX}, {"%ctaid.y", Special::ctaidY}, {"%ctaid.z", Special::ctaidZ},
	{"%nctaid.x", Special::nctaidX}, {"%nctaid.y", Special::nctaidY}, {"%nctaid.z", Special::nctaidZ},
	{"%laneid", Special::laneid}, {"%warpid", Special::warpid}, {"%nwarpid", Special::nwarpid},
	{"%smid", Special::smid}, {"%nsmid", Special::nsmid}, {"%lanemask_eq", Special::maskEq},
	{"%lanemask_le", Special::maskLe}, {"%lanemask_lt", Special::maskLt}, {"%lanemask_ge", Special::maskGe},
	{"%lanemask_gt", Special::maskGt}, {"%dynamic_smem_size", Special::dynamicShared},
	{"%total_smem_size", Special::totalShared},
};

} // namespace

// Reads the body of a kernel, and those of the functions that it calls.
class Parser {
  public:
	Parser(const Module &module, Body &body) : module(module), body(body) {}

	void kernel(const Module::Function &f) {
		Lexer in(module.text, f.begin, f.end, f.line);
		body.line = in.line;
		in.name();
		scopes.emplace_back(true);
		if (in.take("(")) {
			while (!in.is(")")) {
				in.want(".param");
				Declaration d = declaration(in);
				body.parameterBytes = aligned(body.parameterBytes, d.align);
				body.parameters.push_back({std::string(d.name), body.parameterBytes, uint32_t(d.bytes)});
				name(in, d.name, symbol(Space::param, body.parameterBytes));
				body.parameterBytes += d.bytes;
				if (!in.take(","))
					break;
			}
			in.want(")");
		}
		directives(in);
		in.want("{");
		block(in);
		if (in.kind != Lexer::end)
			invalid(in.line, "text behind a kernel's end");
		// The end of a body ends a thread, too.
		for (uint32_t l : body.labels)
			if (l == ~0u)
				invalid(body.line, body.name + " branches to a label that it does not have");
		add("ret", in.line);
	}

  private:
	struct Registers {
		std::string_view prefix;
		uint32_t first, count;
	};
	struct Scope {
		explicit Scope(bool function) : function(function) {}
		bool function; // nothing outside is seen
		std::unordered_map<std::string_view, Atom> names;
		std::vector<Registers> registers; // %r<10>
	};
	const Module &module;
	Body &body;
	std::vector<Scope> scopes;
	std::unordered_map<std::string, uint32_t> labels;
	std::map<std::pair<Special, uint32_t>, uint32_t> specials;
	int instances = 0;                     // of functions put in
	std::vector<int> instance = {0};       // the one at hand, and those around it
	std::vector<uint32_t> returns = {~0u}; // the label behind each

	static Atom symbol(Space space, uint64_t value) {
		Atom a;
		a.kind = Atom::symbol, a.space = space, a.value = value;
		return a;
	}
	static Atom registerAtom(uint32_t r) {
		Atom a;
		a.kind = Atom::reg, a.number = r;
		return a;
	}
	Statement &add(std::string_view opcode, uint32_t line) {
		body.statements.emplace_back();
		body.statements.back().opcode = opcode;
		body.statements.back().line = line;
		return body.statements.back();
	}
	void name(Lexer &in, std::string_view n, const Atom &a) {
		if (!scopes.back().names.emplace(n, a).second)
			invalid(in.line, "the name " + std::string(n) + " is taken");
	}
	uint32_t registers(uint8_t width, uint32_t n) {
		uint32_t first = body.widths.size();
		if (first + n > 1u << 20)
			invalid(body.line, body.name + " has too many registers");
		body.widths.resize(first + n, width);
		return first;
	}
	uint32_t labelOf(std::string_view n) {
		auto [i, fresh] = labels.emplace(std::to_string(instance.back()) + ":" + std::string(n), body.labels.size());
		if (fresh)
			body.labels.push_back(~0u);
		return i->second;
	}
	void directives(Lexer &in) {
		for (;;) {
			if (in.is(".maxntid") || in.is(".reqntid")) {
				in.next();
				uint64_t n = countOf(in, 1024);
				while (in.take(","))
					n *= countOf(in, 1024);
				body.maxThreads = n > 1024 ? 1024 : n;
			} else if (in.take(".minnctapersm"))
				body.minBlocks = countOf(in, 64);
			else if (in.take(".maxnreg"))
				body.maxRegisters = countOf(in, 255);
			else if (in.take(".pragma"))
				in.next(), in.want(";");
			else if (!in.take(".noreturn"))
				return;
		}
	}

	// Everything up to the brace that closes the one before.
	void block(Lexer &in) {
		scopes.emplace_back(false);
		while (!in.take("}")) {
			if (in.kind == Lexer::end)
				invalid(in.line, "a \"{\" has no \"}\"");
			statement(in);
		}
		scopes.pop_back();
	}

	void statement(Lexer &in) {
		if (in.take(";"))
			return;
		if (in.take("{")) {
			if (scopes.size() > 200)
				invalid(in.line, "too many blocks inside each other");
			block(in);
			return;
		}
		if (in.take(".reg"))
			return registerList(in);
		for (auto [word, space] : {std::pair{".shared", Space::shared}, {".local", Space::local}, {".param", Space::local}})
			if (in.take(word)) {
				Declaration d = declaration(in);
				uint32_t &bytes = space == Space::shared ? body.sharedBytes : body.localBytes;
				bytes = aligned(bytes, d.align);
				name(in, d.name, symbol(space, bytes));
				bytes += d.bytes;
				if (bytes > 1 << 24)
					invalid(in.line, "the variables of " + body.name + " are too large");
				in.want(";");
				return;
			}
		if (in.is(".pragma")) {
			in.next(), in.next(), in.want(";");
			return;
		}
		if (in.is(".loc") || in.is(".file")) {
			in.skipLine();
			return;
		}
		// A label or an instruction.
		int32_t guard = -1;
		bool unless = false;
		if (in.take("@")) {
			unless = in.take("!");
			Atom p = atom(in);
			if (p.kind != Atom::reg || body.widths[p.number] != 0)
				invalid(in.line, "a guard is no predicate");
			guard = p.number;
		}
		uint32_t line = in.line;
		std::string_view word = in.name();
		if (guard < 0 && in.take(":")) {
			uint32_t &at = body.labels[labelOf(word)];
			if (at != ~0u)
				invalid(line, "the label " + std::string(word) + " is there twice");
			at = body.statements.size();
			return;
		}
		if (word == "call" || word == "call.uni") {
			if (guard >= 0)
				invalid(line, "a call with a guard");
			return call(in, line);
		}
		if (word == "ret" && returns.back() != ~0u) { // of a function that was put in
			Statement &s = add("bra", line);
			s.guard = guard, s.unless = unless, s.count = 1;
			s.operands[0].count = 1;
			s.operands[0].atoms[0].kind = Atom::label;
			s.operands[0].atoms[0].number = returns.back();
			in.want(";");
			return;
		}
		Statement s;
		s.opcode = word, s.line = line, s.guard = guard, s.unless = unless;
		bool branch = word == "bra" || word == "bra.uni";
		while (!in.is(";")) {
			if (s.count == 5)
				invalid(line, std::string(word) + " has too many operands");
			if (branch) {
				s.operands[0].count = 1;
				s.operands[0].atoms[0].kind = Atom::label;
				s.operands[0].atoms[0].number = labelOf(in.name());
				s.count++;
				break;
			}
			operand(in, s.operands[s.count++]);
			if (!in.take(","))
				break;
		}
		in.want(";");
		body.statements.push_back(s);
	}

	void registerList(Lexer &in) {
		Type t = in.kind == Lexer::word ? typeOf(in.token.substr(1)) : Type{};
		if (t.kind == 0 || t.bytes == 1)
			invalid(in.line, "\"" + std::string(in.token.substr(0, 40)) + "\" is no type of a register");
		in.next();
		do {
			std::string_view n = in.name();
			if (in.take("<")) {
				uint32_t count = countOf(in, 1 << 20);
				in.want(">");
				scopes.back().registers.push_back({n, registers(t.bytes, count), count});
			} else
				name(in, n, registerAtom(registers(t.bytes, 1)));
		} while (in.take(","));
		in.want(";");
	}

	void operand(Lexer &in, Operand &o) {
		if (in.take("{")) {
			o.kind = Operand::vector;
			do {
				if (o.count == 4)
					invalid(in.line, "a vector of more than four");
				o.atoms[o.count++] = atom(in);
			} while (in.take(","));
			in.want("}");
			return;
		}
		o.count = 1;
		if (in.take("[")) {
			o.kind = Operand::address;
			o.atoms[0] = atom(in);
			bool minus = in.is("-");
			if (minus || in.is("+")) {
				in.next();
				if (in.take("-"))
					minus = !minus;
				o.offset = int64_t(numberOf(in, minus).value);
			}
			in.want("]");
			return;
		}
		o.atoms[0] = atom(in);
		if (in.take("|")) {
			o.kind = Operand::pair;
			o.count = 2;
			o.atoms[1] = atom(in);
		}
	}

	Atom atom(Lexer &in) {
		bool minus = in.take("-");
		if (minus || in.kind == Lexer::number)
			return numberOf(in, minus);
		if (in.take("!")) { // a predicate, turned round beforehand
			uint32_t line = in.line;
			Atom p = atom(in);
			Atom turned = registerAtom(registers(0, 1));
			Statement &s = add("not.pred", line);
			s.count = 2;
			s.operands[0].count = s.operands[1].count = 1;
			s.operands[0].atoms[0] = turned;
			s.operands[1].atoms[0] = p;
			return turned;
		}
		uint32_t line = in.line;
		std::string_view n = in.name();
		Atom a;
		if (n == "_") {
			a.kind = Atom::sink;
			return a;
		}
		if (find(n, a))
			return a;
		invalid(line, "nothing has the name " + std::string(n));
	}

	bool find(std::string_view n, Atom &a) {
		size_t digits = n.size();
		while (digits > 0 && n[digits - 1] >= '0' && n[digits - 1] <= '9')
			digits--;
		std::string_view prefix = n.substr(0, digits);
		uint64_t number = digits < n.size() && n.size() - digits < 9 ? strtoull(n.data() + digits, nullptr, 10) : ~0u;
		for (size_t i = scopes.size(); i-- > 0;) {
			const Scope &s = scopes[i];
			if (!s.names.empty())
				if (auto f = s.names.find(n); f != s.names.end())
					return a = f->second, true;
			for (const Registers &r : s.registers)
				if (r.prefix == prefix && number < r.count)
					return a = registerAtom(r.first + number), true;
			if (s.function)
				break;
		}
		if (auto f = specialNames.find(n); f != specialNames.end())
			return a = special(f->second, 0, 4), true;
		if (auto f = module.shared.find(n); f != module.shared.end()) {
			const Module::Shared &s = f->second;
			if (s.dynamic) {
				body.dynamicAlign = std::max(body.dynamicAlign, s.align);
				return a = symbol(Space::dynamic, 0), true;
			}
			body.sharedBytes = aligned(body.sharedBytes, s.align);
			a = symbol(Space::shared, body.sharedBytes);
			scopes.front().names.emplace(f->first, a);
			body.sharedBytes += s.bytes;
			return true;
		}
		if (auto f = module.variableNumbers.find(n); f != module.variableNumbers.end())
			return a = special(Special::variable, f->second, 8), true;
		return false;
	}

	Atom special(Special what, uint32_t index, uint8_t width) {
		auto [i, fresh] = specials.emplace(std::pair{what, index}, 0);
		if (fresh) {
			i->second = registers(width, 1);
			body.specials.push_back({{what, index, 0}, i->second});
		}
		return registerAtom(i->second);
	}

	// Names in parentheses.
	std::vector<Atom> arguments(Lexer &in) {
		std::vector<Atom> list;
		while (!in.is(")")) {
			uint32_t line = in.line;
			Atom a = atom(in);
			if (a.kind != Atom::symbol || a.space != Space::local)
				invalid(line, "a call's argument is no variable of .param");
			list.push_back(a);
			if (!in.take(","))
				break;
		}
		in.want(")");
		return list;
	}

	void call(Lexer &in, uint32_t line) {
		std::vector<Atom> results, values;
		if (in.take("(")) {
			results = arguments(in);
			in.want(",");
		}
		std::string_view callee = in.name();
		if (in.take(",")) {
			in.want("(");
			values = arguments(in);
		}
		in.want(";");
		auto f = module.functions.find(callee);
		if (f == module.functions.end() || f->second.entry)
			invalid(line, "there is no function " + std::string(callee));
		if (instance.size() > 16)
			invalid(line, "functions call each other too deeply");
		Lexer body2(module.text, f->second.begin, f->second.end, f->second.line);
		scopes.emplace_back(true);
		instance.push_back(++instances);
		auto formal = [&](const std::vector<Atom> &actual) {
			size_t n = 0;
			while (!body2.is(")")) {
				body2.want(".param");
				Declaration d = declaration(body2);
				if (n == actual.size())
					invalid(line, "a call has too few arguments");
				name(body2, d.name, actual[n++]);
				if (!body2.take(","))
					break;
			}
			body2.want(")");
			if (n != actual.size())
				invalid(line, "a call has too many arguments");
		};
		if (body2.take("("))
			formal(results);
		body2.name();
		if (body2.take("("))
			formal(values);
		returns.push_back(labelOf("}"));
		directives(body2);
		body2.want("{");
		block(body2);
		body.labels[returns.back()] = body.statements.size();
		returns.pop_back();
		instance.pop_back();
		scopes.pop_back();
	}
};

Module::Module(std::string t) : text(std::move(t)) {
	auto list = std::make_shared<std::vector<std::string>>();
	for (size_t at = 0; at < text.size();) {
		size_t end = std::min(text.find('\n', at), text.size());
		list->push_back(text.substr(at, end - at));
		at = end + 1;
	}
	lines = std::move(list);
	Lexer in(text, 0, text.size(), 1);
	in.want(".version");
	version = strtod(std::string(in.token).c_str(), nullptr) * 10 + 0.5;
	if (in.kind != Lexer::number || version < 10)
		invalid(in.line, "a version is missing");
	in.next();
	while (in.kind != Lexer::end) {
		if (in.take(".target")) {
			std::string_view n = in.name();
			if (n.substr(0, 3) != "sm_")
				invalid(in.line, "\"" + std::string(n) + "\" is no target");
			target = atoi(std::string(n.substr(3)).c_str());
			while (in.take(","))
				in.name();
		} else if (in.take(".address_size")) {
			if (countOf(in, 64) != 64)
				invalid(in.line, "addresses do not have 64 bits");
		} else if (in.is(".file") || in.is(".loc")) {
			in.skipLine();
		} else if (in.take(".pragma")) {
			in.next(), in.want(";");
		} else if (in.take(".extern") || in.take(".visible") || in.take(".weak")) {
		} else if (in.take(".shared")) {
			Declaration d = declaration(in);
			shared.emplace(std::string(d.name), Shared{uint32_t(d.bytes), d.align, d.open});
			in.want(";");
		} else if (in.take(".global") || in.take(".const")) {
			Declaration d = declaration(in);
			Variable v{std::string(d.name), d.bytes, d.align, {}};
			if (in.take("=")) {
				v.initial.assign(d.bytes, 0);
				bool list = in.take("{");
				size_t at = 0;
				do {
					bool minus = in.take("-");
					Atom a = numberOf(in, minus);
					if (at + d.type.bytes > d.bytes)
						invalid(in.line, v.name + " has too many values");
					memcpy(&v.initial[at], &a.value, d.type.bytes);
					at += d.type.bytes;
				} while (in.take(","));
				if (list)
					in.want("}");
			}
			in.want(";");
			variableNumbers.emplace(v.name, uint32_t(variables.size()));
			variables.push_back(std::move(v));
		} else if (in.is(".entry") || in.is(".func")) {
			Function f{in.is(".entry"), 0, 0, 0};
			in.next();
			f.begin = in.begin, f.line = in.line;
			auto parentheses = [&] {
				while (in.kind != Lexer::end && !in.is(")") && !in.is("{"))
					in.next();
				in.want(")");
			};
			if (in.take("("))
				parentheses();
			std::string n(in.name());
			if (in.take("("))
				parentheses();
			while (in.kind != Lexer::end && !in.is("{") && !in.is(";"))
				in.next();
			if (in.take(";"))
				continue; // declared only
			if (!in.is("{"))
				invalid(in.line, n + " has no body");
			in.skipBody();
			f.end = in.kind == Lexer::end ? text.size() : in.begin;
			if (!functions.emplace(n, f).second)
				invalid(f.line, n + " is there twice");
			if (f.entry)
				kernels.push_back(n);
		} else
			invalid(in.line, "\"" + std::string(in.token.substr(0, 40)) + "\" is not understood");
	}
	if (target == 0)
		invalid(1, "there is no .target");
}

Body Module::body(const std::string &kernel) const {
	auto f = functions.find(kernel);
	if (f == functions.end() || !f->second.entry)
		invalid(1, "there is no kernel " + kernel);
	Body b;
	b.name = kernel;
	Parser(*this, b).kernel(f->second);
	return b;
}

} // namespace emulator
