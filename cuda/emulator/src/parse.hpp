// What the parser makes of PTX: a module's variables and functions, and the statements of a
// kernel with their operands told apart.
//
// Licensed under the Apache License, Version 2.0 (cuda/LICENSE).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "machine.hpp"

namespace emulator {

// What is wrong with PTX, with its line.
struct InvalidPTX : std::runtime_error {
	using std::runtime_error::runtime_error;
};

[[noreturn]] void invalid(uint32_t line, const std::string &why);

// A scalar type: .u32 is {'u', 4}, .pred is {'p', 0}. kind is u, s, b, f, p, or 0 for none.
// bf16, tf32 and the like are no types of registers.
struct Type {
	char kind = 0;
	uint8_t bytes = 0;
};
Type typeOf(std::string_view word); // without the dot; kind 0 if it is none

enum class Space : uint8_t { generic, global, constant, shared, dynamic, local, param };

// The smallest part of an operand.
struct Atom {
	enum Kind : uint8_t { none, reg, integer, single, real, sink, symbol, label } kind = none;
	Space space = Space::generic; // of a symbol
	uint32_t number = 0;          // of a register or a label
	uint64_t value = 0;           // the bits of a number; a symbol's address
};

struct Operand {
	enum Kind : uint8_t { plain, vector, address, pair } kind = plain;
	uint8_t count = 0;
	Atom atoms[4];
	int64_t offset = 0; // of an address
};

struct Statement {
	std::string_view opcode;
	uint32_t line = 0;
	int32_t guard = -1; // a register
	bool unless = false;
	uint8_t count = 0;
	Operand operands[5];
};

// A variable of a module: .global or .const.
struct Variable {
	std::string name;
	uint64_t bytes = 0;
	uint32_t align = 1;
	std::vector<uint8_t> initial; // empty: zeros
};

// The body of a kernel.
struct Body {
	std::string name;
	std::vector<Statement> statements;
	std::vector<uint8_t> widths;  // of each register in bytes, 0 for a predicate
	std::vector<uint32_t> labels; // the statement that each label is before
	std::vector<std::pair<SpecialRegister, uint32_t>> specials; // and the register that holds each
	std::vector<Parameter> parameters;
	uint32_t line = 0;
	uint32_t parameterBytes = 0, sharedBytes = 0, localBytes = 0;
	uint32_t maxThreads = 0, minBlocks = 0, maxRegisters = 0; // .maxntid, .minnctapersm, .maxnreg; 0: none
	uint32_t dynamicAlign = 1; // of the dynamic shared memory
};

// A module's text, read in outline: bodies are read when they are asked for.
class Module {
  public:
	explicit Module(std::string text); // throws InvalidPTX
	std::vector<Variable> variables;
	std::vector<std::string> kernels;
	int version = 0, target = 0; // 90 for 9.0; 80 for sm_80
	Body body(const std::string &kernel) const;
	std::shared_ptr<const std::vector<std::string>> lines;

  private:
	friend class Parser;
	struct Function {
		bool entry;
		size_t begin, end; // from its name or results on, to behind its body
		uint32_t line;
	};
	struct Shared {
		uint32_t bytes, align;
		bool dynamic;
	};
	std::string text;
	std::map<std::string, Function, std::less<>> functions;
	std::map<std::string, Shared, std::less<>> shared;
	std::map<std::string, uint32_t, std::less<>> variableNumbers;
};

} // namespace emulator
