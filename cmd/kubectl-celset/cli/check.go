// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/cmd/kubectl-celset/check"
	"github.com/celset/celset/internal/clusterstate"
)

const checkLong = `Check the constraints of ResourceClaims, ResourceClaimTemplates and DeviceClasses:

- whether references are defined and expressions compile, with line, column and caret;
- what type they have and which attributes they read, with the types that devices publish;
- what an evaluation may cost for as many devices as the claim asks for, by estimate;
- how many sets of devices there are on each node, of all that match and of the free ones;
- what the search understands of each conjunct, so that it need not try all sets.

Without arguments everything that was read is checked. Nodes and their devices are known if
ResourceSlices are.
` + exitCodes

const checkExample = `  # Everything in the namespace, with the devices of the cluster
  kubectl celset check
  # A file, without a cluster
  kubectl celset check -f claim.yaml
  # A file before it is applied, with the classes and devices of the cluster
  kubectl celset check -f claim.yaml --with-cluster template/4-connected-devices`

func newCheckCommand(o *options) *cobra.Command {
	count := 0
	command := &cobra.Command{
		Use:     "check [NAME | claim/NAME | template/NAME | class/NAME]...",
		Short:   "Check constraints: compile, types, cost, number of sets, what the search understands",
		Long:    checkLong,
		Example: checkExample,
		RunE: func(command *cobra.Command, args []string) error {
			if count < 1 || count > resourceapi.AllocationResultsMaxSize {
				return fmt.Errorf("--count %d: must be from 1 to %d", count, resourceapi.AllocationResultsMaxSize)
			}
			state, err := o.state(command.Context())
			if err != nil {
				return err
			}
			wanted, err := o.wanted(state, args)
			if err != nil {
				return err
			}
			report, err := check.Run(command.Context(), state, wanted, check.Options{Count: count, Features: o.gates.features()})
			if err != nil {
				return err
			}
			return written(o.data(report, report.Print), o.Out, report.Valid())
		},
	}
	o.addFlags(command, "json", "yaml")
	o.gates.addFlag(command.Flags())
	command.Flags().IntVar(&count, "count", 4, "Number of devices to assume for definitions that no claim refers to.")
	command.Flags().BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "Check the claims and templates of all namespaces.")
	return command
}

// wanted selects the objects that the arguments name, all in the namespace if there are
// none.
func (o *options) wanted(state *clusterstate.State, args []string) (func(any) bool, error) {
	namespace, err := o.namespace()
	if err != nil {
		return nil, err
	}
	inScope := func(of string) bool { return o.allNamespaces || o.readsFiles() && !o.withCluster || of == namespace }
	selected := func(object any, names func(kind, name string) bool) bool {
		switch object := object.(type) {
		case *resourceapi.DeviceClass:
			return names(clusterstate.ClassKind, object.Name)
		case *resourceapi.ResourceClaimTemplate:
			return inScope(object.Namespace) && names(clusterstate.TemplateKind, object.Name)
		case *resourceapi.ResourceClaim:
			return inScope(object.Namespace) && names(clusterstate.ClaimKind, object.Name)
		default:
			return false
		}
	}
	if len(args) == 0 {
		return func(object any) bool { return selected(object, func(string, string) bool { return true }) }, nil
	}
	return argumentsWanted(state, args, selected)
}

// argumentsWanted makes sure that there is something for each argument.
func argumentsWanted(state *clusterstate.State, args []string, selected func(any, func(kind, name string) bool) bool) (func(any) bool, error) {
	chosen := make(map[any]bool)
	for _, arg := range args {
		kind, name, err := clusterstate.Split(arg, clusterstate.ClaimKind, clusterstate.TemplateKind, clusterstate.ClassKind)
		if err != nil {
			return nil, err
		}
		found := 0
		for _, object := range state.Constrained() {
			if selected(object, func(k, n string) bool { return (kind == "" || k == kind) && n == name }) {
				chosen[object] = true
				found++
			}
		}
		if found == 0 {
			return nil, fmt.Errorf("%s: %w", arg, errNotFound)
		}
	}
	return func(object any) bool { return chosen[object] }, nil
}

var errNotFound = errors.New("there is no such claim, template or class")
