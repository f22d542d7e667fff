// Package jinja renders the Jinja templates that models carry for their chats, with the results
// that jinja2 gives under the settings of the transformers library: trim_blocks and lstrip_blocks
// on, automatic escaping off, loop controls, immutable values, tojson without HTML escapes.
//
// A template comes with a model and is not trusted. Rendering takes a bounded number of steps and
// a bounded amount of memory (see Limits), has no way to files, network or Go values, and ends in
// an *Error where a template asks for more.
//
// What is left out: include, import, extends and block (a chat template is one text), line
// statements, and the filters of HTML pages (urlize, xmlattr and their like). A template that uses
// one of them does not parse, and the error says which and where.
//
// Values are nil, bool, int64, *big.Int (only to be printed and compared), float64, string, *List and *Dict. FromJSON
// makes them from JSON with the order of keys kept.
//
// Licensed under Apache-2.0, see engine/LICENSE.
package jinja
