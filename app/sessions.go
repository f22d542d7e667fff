package app

import (
	"encoding/json"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"velo/bench/report"
	"velo/store"
)

// openForReading opens the store for a command that only looks. The process that holds it is named.
func openForReading() (*store.Store, error) {
	st, err := store.Open(store.DefaultDir(), store.Options{Version: version})
	if err != nil {
		return nil, exit{exitFailed, err.Error()}
	}
	return st, nil
}

func sessionsCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "sessions",
		Short: "Lists the sessions that were measured",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			st, err := openForReading()
			if err != nil {
				return err
			}
			defer st.Close()
			if _, err := st.ImportInbox(); err != nil {
				fmt.Fprintln(cmd.ErrOrStderr(), "velo: "+err.Error())
			}
			list, err := st.Sessions()
			if err != nil {
				return exit{exitFailed, err.Error()}
			}
			out := cmd.OutOrStdout()
			if asJSON {
				enc := json.NewEncoder(out)
				for _, s := range list {
					if err := enc.Encode(s); err != nil {
						return exit{exitFailed, err.Error()}
					}
				}
				return nil
			}
			if len(list) == 0 {
				fmt.Fprintln(out, "No sessions yet. `velo bench quick` measures one.")
				return nil
			}
			tw := tabwriter.NewWriter(out, 2, 8, 2, ' ', 0)
			fmt.Fprintln(tw, "ID\tBEGAN\tSTATE\tREQUESTS\tTOKENS\tMODEL\tTITLE")
			for _, s := range list {
				fmt.Fprintf(tw, "%s\t%s\t%s\t%d\t%d\t%s\t%s\n", s.ID, s.Began.Local().Format(time.DateTime), s.State, s.Requests, s.Tokens, s.Model, s.Title)
			}
			return tw.Flush()
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON line a session")
	return cmd
}

func reportCommand() *cobra.Command {
	var (
		out     string
		formats []string
	)
	cmd := &cobra.Command{
		Use:   "report ID|FILE",
		Short: "Computes the report of a session again and writes it",
		Long:  "Computes a report from the stored raw events: of a session of the store (its ID, or the beginning of it) or of a .velo file.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage("report needs one session: an ID from `velo sessions`, or a .velo file")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			formats, err := checkFormats(formats)
			if err != nil {
				return err
			}
			r, err := findReport(args[0], cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			var files []string
			if len(formats) > 0 || out != "" {
				if len(formats) == 0 {
					formats = []string{"pdf", "json"}
				}
				if out == "" {
					out = "."
				}
				if files, err = report.Export(out, r, formats); err != nil {
					return exit{exitFailed, err.Error()}
				}
			}
			printTable(cmd.OutOrStdout(), r, files)
			return nil
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "`DIR` for the files")
	cmd.Flags().StringSliceVar(&formats, "format", nil, "report `FORMATS`")
	return cmd
}
