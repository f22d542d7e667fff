// The words of PTX.
//
// Licensed under the Apache License, Version 2.0 (cuda/LICENSE).
#pragma once

#include <cctype>
#include <string_view>

#include "parse.hpp"

namespace emulator {

class Lexer {
  public:
	enum Kind { end, word, number, text, sign };

	Lexer(std::string_view whole, size_t from, size_t to, uint32_t line) : line(line), whole(whole), at(from), to(to) { next(); }

	Kind kind = end;
	std::string_view token;
	size_t begin = 0;  // of the token
	uint32_t line = 1; // of the token

	void next() {
		skipSpace();
		begin = at;
		if (at >= to) {
			kind = end, token = {};
			return;
		}
		unsigned char c = whole[at];
		if (std::isdigit(c)) {
			kind = number;
			while (at < to && (std::isalnum((unsigned char)whole[at]) || whole[at] == '.'))
				at++;
		} else if (starts(c)) {
			kind = word;
			at++;
			while (at < to && (starts(whole[at]) || std::isdigit((unsigned char)whole[at]) || twoColons()))
				at += whole[at] == ':' ? 2 : 1;
		} else if (c == '"') {
			kind = text;
			at++;
			while (at < to && whole[at] != '"' && whole[at] != '\n')
				at++;
			if (at >= to || whole[at] == '\n')
				invalid(line, "a text in quotes has no end");
			at++;
		} else {
			kind = sign;
			at++;
		}
		token = whole.substr(begin, at - begin);
	}
	bool is(std::string_view s) const { return token == s && kind != text && kind != end; }
	bool take(std::string_view s) {
		if (!is(s))
			return false;
		next();
		return true;
	}
	void want(std::string_view s) {
		if (!take(s))
			invalid(line, "\"" + std::string(s) + "\" is missing before \"" + std::string(token.substr(0, 40)) + "\"");
	}
	std::string_view name() {
		if (kind != word)
			invalid(line, "a name is missing before \"" + std::string(token.substr(0, 40)) + "\"");
		auto t = token;
		next();
		return t;
	}
	// Goes behind the brace that closes the one at hand.
	void skipBody() {
		int depth = 0;
		do {
			if (kind == end)
				invalid(line, "a \"{\" has no \"}\"");
			depth += is("{") - is("}");
			if (depth > 0)
				skipToBrace();
			next();
		} while (depth > 0);
	}
	void skipLine() {
		while (at < to && whole[at] != '\n')
			at++;
		next();
	}

  private:
	std::string_view whole;
	size_t at, to;

	static bool starts(unsigned char c) { return std::isalpha(c) || c == '_' || c == '$' || c == '%' || c == '.'; }
	bool twoColons() const { return at + 1 < to && whole[at] == ':' && whole[at + 1] == ':'; }
	void skipSpace() {
		while (at < to) {
			char c = whole[at];
			if (c == '\n')
				line++, at++;
			else if (c == ' ' || c == '\t' || c == '\r')
				at++;
			else if (c == '/' && at + 1 < to && whole[at + 1] == '/')
				while (at < to && whole[at] != '\n')
					at++;
			else if (c == '/' && at + 1 < to && whole[at + 1] == '*') {
				for (at += 2; at < to && !(whole[at] == '*' && at + 1 < to && whole[at + 1] == '/'); at++)
					line += whole[at] == '\n';
				at = at < to ? at + 2 : to;
			} else
				break;
		}
	}
	// What is between braces is only looked through for braces, quickly.
	void skipToBrace() {
		while (at < to && whole[at] != '{' && whole[at] != '}') {
			if (whole[at] == '/' && at + 1 < to && (whole[at + 1] == '/' || whole[at + 1] == '*')) {
				skipSpace();
				continue;
			}
			line += whole[at] == '\n';
			at++;
		}
	}
};

} // namespace emulator
