// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cli implements the command line of kubectl-celset: flags, input, output and exit codes. Other packages compute the
// results.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/celset/celset/internal/printable"
	"github.com/celset/celset/internal/version"
)

// Exit codes of the program.
const (
	// ExitOK means that the answer is positive.
	ExitOK = 0
	// ExitNegative means that the answer is negative: a constraint is invalid, or a claim fits nowhere.
	ExitNegative = 1
	// ExitFailure means that there is no answer: wrong usage, unreadable input, or no connection.
	ExitFailure = 2
)

// errNegative is returned by a command that has already printed a negative answer, so that Run prints nothing more.
var errNegative = errors.New("negative answer")

// errIncomplete is returned by a command that has already printed a partial answer, because its time limit was exceeded.
var errIncomplete = errors.New("the answer is incomplete")

// Main runs the program with the arguments and streams of the process, and returns the exit code. SIGINT and SIGTERM cancel the
// run. A second signal ends the process, because a read of a pipe without a writer does not end by itself.
func Main() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	args := os.Args[1:]
	if strings.HasPrefix(filepath.Base(os.Args[0]), CompleteName) {
		args = append([]string{cobra.ShellCompRequestCmd}, args...)
	}
	return Run(ctx, args, genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr})
}

// Run runs the program with its arguments and returns its exit code.
func Run(ctx context.Context, args []string, streams genericiooptions.IOStreams) int {
	streams.Out, streams.ErrOut = printable.NewWriter(streams.Out), printable.NewWriter(streams.ErrOut)
	command := newCommand(streams)
	command.SetArgs(args)
	switch err := command.ExecuteContext(ctx); {
	case err == nil:
		return ExitOK
	case errors.Is(err, errNegative):
		return ExitNegative
	default:
		_, _ = fmt.Fprintln(streams.ErrOut, "error:", err)
		return ExitFailure
	}
}

const exitCodes = `
Exit codes:
  0  the answer is positive
  1  the answer is negative, for example a claim does not fit
  2  there is no answer: wrong usage, unreadable input, or no connection`

func newCommand(streams genericiooptions.IOStreams) *cobra.Command {
	command := &cobra.Command{
		Use:           "kubectl-celset",
		Short:         "Check CEL device constraints and explain their effects",
		Long:          "Check CEL device constraints in a cluster or in files, and explain their effects.\n\nThe commands only read. They don't change any object.\n" + exitCodes,
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       version.Text(),
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl celset"},
	}
	// If the program had no flag "version", cobra would add one with the shorthand -v. In kubectl, -v is the log verbosity.
	command.Flags().Bool("version", false, "Print the version.")
	command.SetIn(streams.In)
	command.SetOut(streams.Out)
	command.SetErr(streams.ErrOut)
	for _, add := range []func(*options) *cobra.Command{newCheckCommand, newConvertCommand, newSimulateCommand, newExplainCommand, newDrawCommand, newFragmentationCommand, newServeCommand, newTestCommand, newTopologyCommand} {
		o := newOptions(streams)
		one := add(o)
		o.addCompletion(one)
		command.AddCommand(one)
	}
	return command
}

// written calls print with w. If the report was printed but is not positive, written returns errNegative.
func written(print func(io.Writer) error, w io.Writer, positive bool) error {
	if err := print(w); err != nil {
		return err
	}
	if !positive {
		return errNegative
	}
	return nil
}
