package app

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// What is said of a command line that means nothing: what is wrong, where, and what was probably meant.

// exactly takes n arguments; takes is a sentence about what they are.
func exactly(n int, takes string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) > n:
			return usage("%s: %q is one too many", takes, args[n])
		case len(args) < n:
			return usage("%s: %d of %d arguments are there", takes, len(args), n)
		}
		return nil
	}
}

// noArguments takes none.
func noArguments(cmd *cobra.Command, args []string) error {
	return exactly(0, cmd.Name()+" takes flags alone")(cmd, args)
}

// atMostOne refuses more than one of flags that exclude each other.
func atMostOne(fl *pflag.FlagSet, names ...string) error {
	var given []string
	for _, n := range names {
		if fl.Changed(n) {
			given = append(given, "--"+n)
		}
	}
	if len(given) > 1 {
		return usage("%s exclude each other: give one of them", strings.Join(given, " and "))
	}
	return nil
}

// flagError says what is wrong with a flag, in place of the parser's own words.
func flagError(cmd *cobra.Command, err error) error {
	var (
		unknown *pflag.NotExistError
		bare    *pflag.ValueRequiredError
		invalid *pflag.InvalidValueError
		syntax  *pflag.InvalidSyntaxError
	)
	switch {
	case errors.As(err, &unknown):
		name := unknown.GetSpecifiedName()
		if letters := unknown.GetSpecifiedShortnames(); letters != "" {
			if len(letters) > 1 { // -prompt
				return usage("there is no flag -%s%s", letters, meant(cmd.Flags(), letters))
			}
			return usage("there is no flag -%s", name)
		}
		return usage("there is no flag --%s%s", name, meant(cmd.Flags(), name))
	case errors.As(err, &bare):
		return usage("--%s needs a value behind it", bare.GetFlag().Name)
	case errors.As(err, &invalid):
		f := invalid.GetFlag()
		if takes := valueOf(f.Value.Type(), err); takes != "" {
			return usage("--%s takes %s, not %q", f.Name, takes, invalid.GetValue())
		}
		return usage("--%s cannot be %q: %v", f.Name, invalid.GetValue(), invalid.Unwrap())
	case errors.As(err, &syntax):
		return usage("%q is no flag: write --name or --name=value", syntax.GetSpecifiedFlag())
	}
	return usage("%v", err)
}

// valueOf says what a flag of that type takes, "" if nothing is known of it.
func valueOf(kind string, err error) string {
	if errors.Is(err, strconv.ErrRange) {
		return "a number that is not so large"
	}
	switch kind {
	case "int", "int64":
		return "a whole number"
	case "uint64":
		return "a whole number from 0 on"
	case "intSlice":
		return "whole numbers with commas between them"
	case "float32", "float64":
		return "a number"
	case "duration":
		return "a time with its unit, such as 500ms or 2m"
	case "bool":
		return "true or false"
	case "on|off":
		return "on or off"
	}
	return ""
}

// meant asks about the flags whose names are near to one that there is not; "" if none is.
func meant(fl *pflag.FlagSet, name string) string {
	var names []string
	fl.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	near := nearest(name, names)
	for i := range near {
		near[i] = "--" + near[i]
	}
	return didYouMean(near)
}

func didYouMean(near []string) string {
	if len(near) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(near, " or ") + "?"
}

// nearest are those names, three at most, that a name may be meant to be: it is the beginning of them, or
// they differ in a letter of three.
func nearest(name string, names []string) []string {
	name = strings.ToLower(name)
	best, near := 1+max(1, len(name)/3), []string(nil)
	for _, n := range names {
		d := edits(name, n)
		if len(name) > 2 && strings.HasPrefix(n, name) {
			d = 1
		}
		switch {
		case d < best:
			best, near = d, []string{n}
		case d == best && near != nil:
			near = append(near, n)
		}
	}
	slices.Sort(near)
	return near[:min(3, len(near))]
}

// edits is how many letters have to be put in, left out, changed, or swapped with their neighbour to
// make b of a (optimal string alignment).
func edits(a, b string) int {
	rows := [3][]int{make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)}
	before, last, row := rows[0], rows[1], rows[2]
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			change := 1
			if a[i] == b[j] {
				change = 0
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+change)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

// helpCommand is `velo help`, which knows when there is no such command.
func helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Explains a command and its flags",
		Args:  cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return root.Help()
			}
			if len(args) > 1 {
				return usage("help takes one command: %q is one too many", args[1])
			}
			for _, c := range root.Commands() {
				if c.Name() == args[0] {
					return c.Help()
				}
			}
			return usage("there is no command %q%s", args[0], commandMeant(root, args[0]))
		},
	}
}

// commandMeant asks about the commands whose names are near.
func commandMeant(root *cobra.Command, name string) string {
	var names []string
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return didYouMean(nearest(name, names))
}

// hint says where to read more after a wrong command line.
func hint(cmd *cobra.Command) string {
	if cmd == nil || !cmd.HasParent() {
		return "`velo help` lists the commands, `velo COMMAND --help` their flags"
	}
	return fmt.Sprintf("`%s --help` says what it takes", cmd.CommandPath())
}
