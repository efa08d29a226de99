// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/cmd/kubectl-celset/convert"
	"github.com/celset/celset/internal/clusterstate"
)

const convertLong = `Convert constraints between the form of KEP-5254,

  constraints:
  - requests: [mla]
    cel:
      expression: size(devices) == 4

which no released API server stores, and that of celset.dev, which every API server since
1.34 stores: a reference and a definition. All objects in the files are written to the
standard output; those without constraints, and unknown fields, as they were read. Comments
and the order of fields are not kept.

The KEP's form has no names. They are kept in the annotation celset.dev/constraint-names, so
that converting there and back changes nothing. Without it names are made of --name and a
number.
` + exitCodes

const convertExample = `  # To what an API server stores
  kubectl celset convert -f kep.yaml | kubectl apply -f -
  # To the KEP's form; definitions in device classes are looked for in the files and the cluster
  kubectl celset convert --to kep -f claim.yaml --with-cluster`

// The forms of constraints, as values of --to.
const (
	formCelset = "celset"
	formKEP    = "kep"
)

func newConvertCommand(o *options) *cobra.Command {
	var to, name string
	command := &cobra.Command{
		Use:     "convert -f FILE",
		Short:   "Convert constraints between the form of KEP-5254 and that of celset.dev",
		Long:    convertLong,
		Example: convertExample,
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := o.checkFormat(); err != nil {
				return err
			}
			if !o.readsFiles() {
				return errors.New("convert: nothing to read: use -f FILE, or -f - for the standard input")
			}
			if to != formCelset && to != formKEP {
				return fmt.Errorf("--to %q: must be %s or %s", to, formCelset, formKEP)
			}
			return o.convert(command.Context(), to, name)
		},
	}
	o.addFlags(command, "yaml", "json")
	command.Flags().StringVar(&to, "to", formCelset, "The form to convert to: celset or kep.")
	command.Flags().StringVar(&name, "name", "constraint", "What names of constraints begin with that have none.")
	return command
}

func (o *options) convert(ctx context.Context, to, name string) error {
	documents, err := clusterstate.ReadDocuments(o.files.ToOptions(), o.In)
	if err != nil {
		return err
	}
	convertOne := func(document clusterstate.Document) (int, error) { return convert.ToCelset(document.Object, name) }
	if to == formKEP {
		classes, err := o.classes(ctx, documents)
		if err != nil {
			return err
		}
		convertOne = func(document clusterstate.Document) (int, error) { return convert.ToKEP(ctx, document.Object, classes) }
	}
	converted := 0
	for _, document := range documents {
		n, err := convertOne(document)
		if err != nil {
			return fmt.Errorf("%s: %w", document.Source, err)
		}
		converted += n
	}
	if converted == 0 {
		_, _ = fmt.Fprintln(o.ErrOut, "warning: there were no constraints to convert")
	}
	return o.print(documents)
}

// classes are those in the documents, and in the cluster if it is to be read.
func (o *options) classes(ctx context.Context, documents []clusterstate.Document) (v1alpha1.ClassGetter, error) {
	objects := &clusterstate.Objects{}
	if o.withCluster {
		namespace, err := o.namespace()
		if err != nil {
			return nil, err
		}
		if objects, err = o.readCluster(ctx, namespace); err != nil {
			return nil, err
		}
	}
	inFiles, err := clusterstate.ClassesIn(documents)
	if err != nil {
		return nil, err
	}
	return clusterstate.New(objects.Overlay(inFiles)).Classes(), nil
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
