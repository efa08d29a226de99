// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/celset/celset/cmd/kubectl-celset/convert"
	"github.com/celset/celset/internal/clusterstate"
	"github.com/celset/celset/internal/clusterstate/reading"
)

const convertLong = `Convert constraints from the form of KEP-5254 to the form of celset.dev.

No released API server stores constraints in the form of KEP-5254:

  constraints:
  - requests: [mla]
    cel:
      expression: size(devices) == 4

Every API server since 1.34 stores the form of celset.dev, a reference and a definition. The
names of definitions consist of the value of --name and a number.

The command writes all objects in the files to the standard output. It does not change objects
without constraints and unknown fields. Comments and the order of fields are lost.
` + exitCodes

const convertExample = `  # Convert a file and apply the result
  kubectl celset convert -f kep.yaml | kubectl apply -f -`

func newConvertCommand(o *options) *cobra.Command {
	var name string
	command := &cobra.Command{
		Use:     "convert -f FILE",
		Short:   "Convert constraints from the form of KEP-5254 to the form of celset.dev",
		Long:    convertLong,
		Example: convertExample,
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := o.checkFormat(); err != nil {
				return err
			}
			if !o.readsFiles() {
				return errors.New("convert: there is no input: use -f FILE, or -f - for the standard input")
			}
			return o.convert(name)
		},
	}
	o.addFlags(command, "yaml", "json")
	command.Flags().StringVar(&name, "name", "constraint", "Prefix for the names of definitions.")
	return command
}

func (o *options) convert(name string) error {
	documents, err := reading.Documents(o.files.ToOptions(), o.In)
	if err != nil {
		return err
	}
	converted := 0
	for _, document := range documents {
		n, err := convert.ToCelset(document.Object, name)
		if err != nil {
			return fmt.Errorf("%s: %w", document.Source, err)
		}
		converted += n
	}
	if converted == 0 {
		_, _ = fmt.Fprintln(o.ErrOut, "warning: the input has no constraints to convert")
	}
	return o.print(documents)
}

func (o *options) print(documents []clusterstate.Document) error {
	var printer printers.ResourcePrinter = &printers.YAMLPrinter{}
	if o.output == "json" {
		printer = &printers.JSONPrinter{}
	}
	for _, document := range documents {
		if err := printer.PrintObj(document.Object, o.Out); err != nil {
			return err
		}
	}
	return nil
}
