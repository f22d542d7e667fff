// Package quantize writes a smaller copy of a model: a folder of NVFP4 and FP8
// matrices in the layout of compressed-tensors, which transformers and vLLM
// load as well, and says what each matrix lost.
//
// Weights are rounded to the nearest code; there is no calibration and
// activations are not quantised.
//
// The code below engine/ is under the Apache License 2.0, see engine/LICENSE.
package quantize

import (
	"fmt"
	"slices"
	"strings"
)

// Format is how the matrices of a group are stored.
type Format string

// The formats. BF16 leaves a matrix as the source stores it.
const (
	NVFP4 Format = "nvfp4"
	FP8   Format = "fp8"
	BF16  Format = "bf16"
)

// Group names matrices that a recipe treats alike.
type Group string

// The groups of a model's matrices. Router and Expert belong to mixtures of
// experts. A prediction head is all in MTP.
const (
	MLP    Group = "mlp"
	Attn   Group = "attn"
	GDN    Group = "gdn" // linear attention; its two small gate projections stay as they are
	LMHead Group = "lmhead"
	Embed  Group = "embed"
	MTP    Group = "mtp"
	Router Group = "router"
	Expert Group = "expert"
)

// Groups lists all groups.
var Groups = []Group{MLP, Attn, GDN, LMHead, Embed, MTP, Router, Expert}

// DefaultRecipe is the recipe when none is given.
const DefaultRecipe = "all,gdn:fp8"

// Recipe gives the format of each group; a group that is not in it stays BF16.
type Recipe map[Group]Format

// ParseRecipe reads a comma list: "all" or "all:FORMAT" (only at the front)
// stands for every group but embed, "GROUP" means nvfp4, "GROUP:FORMAT" that
// format, and "-GROUP" takes a group out. Later items win.
//
// The embedding has to be named because transformers (5.24) cannot load a
// compressed one; this engine can.
func ParseRecipe(text string) (Recipe, error) {
	r := Recipe{}
	for i, item := range strings.Split(text, ",") {
		item = strings.TrimSpace(item)
		fail := func(why string) (Recipe, error) {
			return nil, fmt.Errorf("cannot read recipe %q: %q %s", text, item, why)
		}
		if item == "" {
			return fail("is empty; give groups such as all, mlp or gdn:fp8")
		}
		if name, out := strings.CutPrefix(item, "-"); out {
			if !slices.Contains(Groups, Group(name)) {
				return fail("takes out an unknown group; there are " + groupList())
			}
			delete(r, Group(name))
			continue
		}
		name, format, given := strings.Cut(item, ":")
		f := NVFP4
		if given {
			f = Format(format)
		}
		if f != NVFP4 && f != FP8 && f != BF16 {
			return fail("has an unknown format; there are nvfp4, fp8 and bf16")
		}
		switch {
		case name == "all" && i > 0:
			return fail("must come first")
		case name == "all":
			for _, g := range Groups {
				if g != Embed {
					r[g] = f
				}
			}
		case slices.Contains(Groups, Group(name)):
			r[Group(name)] = f
		default:
			return fail("is an unknown group; there are all, " + groupList())
		}
	}
	return r, nil
}

// groupList names all groups, for messages.
func groupList() string {
	names := make([]string, len(Groups))
	for i, g := range Groups {
		names[i] = string(g)
	}
	return strings.Join(names, ", ")
}

// String is the recipe with every group named.
func (r Recipe) String() string {
	var items []string
	for _, g := range Groups {
		if f, ok := r[g]; ok {
			items = append(items, string(g)+":"+string(f))
		}
	}
	return strings.Join(items, ",")
}

// groupOf is the group of a tensor, by its canonical name, and whether it has
// one.
func groupOf(name string) (Group, bool) {
	stem, ok := strings.CutSuffix(name, ".weight")
	if !ok {
		return "", false
	}
	last := stem[strings.LastIndexByte(stem, '.')+1:]
	projection := strings.HasSuffix(last, "_proj")
	switch {
	case strings.HasPrefix(stem, "mtp."):
		return MTP, projection || last == "fc"
	case stem == "lm_head":
		return LMHead, true
	case stem == "model.embed_tokens":
		return Embed, true
	case !strings.HasPrefix(stem, "model.layers."):
		return "", false
	case strings.Contains(stem, ".mlp.experts.") && projection:
		return Expert, true
	case strings.HasSuffix(stem, ".mlp.gate"):
		return Router, true
	case strings.Contains(stem, ".mlp.") && projection:
		return MLP, true
	case strings.Contains(stem, ".self_attn.") && projection:
		return Attn, true
	case strings.Contains(stem, ".linear_attn."):
		return GDN, last == "in_proj_qkv" || last == "in_proj_z" || last == "out_proj"
	}
	return "", false
}

// targets are the modules of a group as compressed-tensors names them, regular
// expressions over module names.
var targets = map[Group]string{
	MLP:    `re:^(?!mtp\.)(?!.*\.experts\.).*\.layers\.\d+\.mlp\.(gate|up|down)_proj$`,
	Attn:   `re:^(?!mtp\.).*\.layers\.\d+\.self_attn\.(q|k|v|o)_proj$`,
	GDN:    `re:^(?!mtp\.).*\.layers\.\d+\.linear_attn\.(in_proj_qkv|in_proj_z|out_proj)$`,
	LMHead: `re:^(.*\.)?lm_head$`,
	Embed:  `re:^(.*\.)?embed_tokens$`,
	MTP:    `re:^mtp\.(.*_proj|fc)$`,
	Router: `re:^(?!mtp\.).*\.layers\.\d+\.mlp\.gate$`,
	Expert: `re:^(?!mtp\.).*\.layers\.\d+\.mlp\.experts\..*_proj$`,
}
