// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/cmd/kubectl-celset/suite"
)

const testLong = `Run the test cases of files, without a cluster.

A file has the kind ExpressionTest. Each case names devices, the devices in use, and a claim, a pod, a
PodGroup or a Placement. It states the expected devices, nodes or clusters, or a part of the reason
why nothing is chosen. The commands explain and check give the same answers. In a directory, the
command runs the YAML files of this kind.

With --update, the command writes the answers into the cases that fail and into the cases without an
expectation. Comments and all other text of the file stay as they are. Read the changes before you
commit them.

Exit codes:
  0  all cases pass
  1  a case fails
  2  there is no answer: wrong usage, an unreadable file, or a mistake in a case`

const testExample = `  # Run the cases of a file and of a directory
  kubectl celset test claim-test.yaml tests/

  # Run the cases whose names contain "ring"
  kubectl celset test tests/ --run ring

  # Write a report for a CI system
  kubectl celset test tests/ -o junit > report.xml`

func newTestCommand(o *options) *cobra.Command {
	settings, only := suite.Options{Timeout: time.Minute, Features: o.gates.with}, ""
	command := &cobra.Command{
		Use:     "test FILE...",
		Short:   "Run test cases for claims, gangs and Placements",
		Long:    testLong,
		Example: testExample,
		Args:    cobra.MinimumNArgs(1),
		RunE: func(command *cobra.Command, args []string) (err error) {
			if only != "" {
				if settings.Only, err = regexp.Compile(only); err != nil {
					return fmt.Errorf("--run %q: must be a regular expression: %w", only, err)
				}
			}
			if settings.Timeout <= 0 {
				return fmt.Errorf("--timeout %s: must be positive", settings.Timeout)
			}
			return o.test(command.Context(), args, settings)
		},
	}
	flags := command.Flags()
	o.gates.addFlag(flags, o.ErrOut)
	o.formats = []string{"json", "yaml", "junit"}
	flags.StringVarP(&o.output, "output", "o", "", "Output format: one of json, yaml, junit.")
	flags.StringVar(&only, "run", "", "Regular expression. Run only the cases whose names match it.")
	flags.DurationVar(&settings.Timeout, "timeout", settings.Timeout, "Time limit for each case.")
	flags.BoolVar(&settings.Update, "update", false, "Write the answers into the cases that fail or have no expectation.")
	flags.BoolVarP(&settings.Recursive, "recursive", "R", false, "Also run the files in subdirectories.")
	return command
}

// test runs test cases and prints the report.
func (o *options) test(ctx context.Context, paths []string, settings suite.Options) error {
	if err := o.checkFormat(); err != nil {
		return err
	}
	report, err := suite.Run(ctx, paths, settings)
	if err != nil {
		return err
	}
	write := o.data(report, report.Print)
	if o.output == "junit" {
		write = report.JUnit
	}
	err = written(write, o.Out, report.Failed == 0)
	if report.IsUnanswered() && (err == nil || errors.Is(err, errNegative)) {
		return errors.New("a file or a case has a mistake: see the report")
	}
	return err
}

// with returns the features with some gates changed.
func (g gates) with(changed map[string]bool) (structured.Features, error) {
	own := gates{g.DeepCopy()}
	for name, on := range changed {
		// The API of the gates accepts a map of all gates at once, but its errors don't name the gate.
		if err := own.Set(name + "=" + strconv.FormatBool(on)); err != nil {
			return structured.Features{}, fmt.Errorf("%s: %w", name, err)
		}
	}
	return own.features(), nil
}
