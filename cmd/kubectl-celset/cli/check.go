// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	resourceapi "k8s.io/api/resource/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/cmd/kubectl-celset/check"
	"github.com/celset/celset/internal/clusterstate"
)

const checkLong = `Check the constraints of ResourceClaims, ResourceClaimTemplates and DeviceClasses, and DeviceAttributes.

Without arguments, the command checks all these objects in the namespace or in the files, and the
Placements in the files. It reports:

- mistakes that the webhook reports, such as undefined references and expressions that don't
  compile, with line and column
- constraints that no set of devices satisfies, even if all devices are free
- attributes that no device publishes, and comparisons of types that are never equal
- the estimated cost of one evaluation
- the number of sets of devices on each node, for all matching devices and for the free devices
- the conditions of an expression that the search can use to rule out sets early

The facts about devices need ResourceSlices, from the cluster or from files.

For a DeviceAttributes object, the command reports the devices that get attributes, and its mistakes:
rows without a device, devices without a row, expressions that fail, and attributes that another
object defines differently.

For a PodGroup, the command checks that its node set constraint is defined and compiles. It checks
PodGroups in files and PodGroups that you name. For a Placement, it reports the errors and warnings
of the webhook, and the clusters that the Placement selects.

Exit codes:
  0  there are no errors
  1  there are errors or, with --strict, warnings
  2  there is no answer: wrong usage, unreadable input, nothing to check, or no connection`

const checkExample = `  # Check everything in the namespace, with the devices of the cluster
  kubectl celset check

  # Check files in a pipeline
  kubectl celset check -f manifests/ -R --strict

  # Check the Placements of the hub
  kubectl celset check placements

  # Check Placements in a file, with the clusters in the file
  kubectl celset check -f hub.yaml

  # Check a file before you apply it, with the classes and devices of the cluster
  kubectl celset check -f claim.yaml --with-cluster template/4-connected-devices`

func newCheckCommand(o *options) *cobra.Command {
	settings, strict := check.Options{Timeout: time.Minute}, false
	command := &cobra.Command{
		Use:     "check [NAME | claim/NAME | template/NAME | class/NAME | podgroup/NAME | deviceattributes/NAME]... | placements | placement/NAME...",
		Short:   "Check constraints and their expressions",
		Long:    checkLong,
		Example: checkExample,
		RunE: func(command *cobra.Command, args []string) error {
			if command.Flags().Changed("count") && (settings.Count < 1 || settings.Count > resourceapi.AllocationResultsMaxSize) {
				return fmt.Errorf("--count %d: must be from 1 to %d", settings.Count, resourceapi.AllocationResultsMaxSize)
			}
			if isAboutPlacements(args) {
				return o.checkPlacements(command.Context(), args, strict)
			}
			return o.check(command.Context(), args, settings, strict)
		},
	}
	o.addFlags(command, "json", "yaml")
	o.gates.addFlag(command.Flags(), o.ErrOut)
	command.Flags().IntVar(&settings.Count, "count", 0, "Number of devices in a set, for definitions that no claim refers to. By default, a set may have any number of devices, and the report assumes 4.")
	command.Flags().BoolVar(&strict, "strict", false, "Exit with code 1 if there are warnings.")
	command.Flags().DurationVar(&settings.Timeout, "timeout", settings.Timeout, "Time limit for the search for sets.")
	o.addSelector(command.Flags(), "Label selector of the objects to check.")
	command.Flags().BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "Check the claims and templates of all namespaces.")
	return command
}

// check reports on objects with constraints. Without arguments it also reports on the Placements in the files.
func (o *options) check(ctx context.Context, args []string, settings check.Options, strict bool) error {
	o.groups, o.reportsAttributes = isAboutGroup(args), true
	havePlacements := false
	if len(args) == 0 {
		var err error
		if havePlacements, err = o.filesHavePlacements(); err != nil {
			return err
		}
	}
	state, err := o.state(ctx)
	if err != nil {
		return err
	}
	if havePlacements {
		state.Ignored = slices.DeleteFunc(state.Ignored, func(passed string) bool {
			return slices.ContainsFunc(passedOverAs, func(kind string) bool { return strings.Contains(passed, kind) })
		})
		if len(state.Checkable())+len(state.Ignored) == 0 {
			return o.checkPlacements(ctx, []string{placementsArgument}, strict)
		}
	} else if o.readsFiles() && len(state.Checkable()) == 0 {
		return nothingToCheck(state)
	}
	wanted, err := o.wanted(state, args)
	if err != nil {
		return err
	}
	settings.Features, settings.AllClasses = o.gates.features(), !o.readsFiles() || o.withCluster
	report, err := check.Run(ctx, state, wanted, settings)
	if err != nil {
		return err
	}
	if len(report.Objects) == 0 && !havePlacements {
		_, _ = fmt.Fprintln(o.ErrOut, "nothing to check: the objects that were read have no constraints and no preferences")
	}
	err = written(o.data(report, report.Print), o.Out, report.Valid(strict))
	if !havePlacements || err != nil && !errors.Is(err, errNegative) {
		return err
	}
	switch o.output {
	case "yaml":
		_, _ = fmt.Fprintln(o.Out, "---")
	case "":
		_, _ = fmt.Fprintln(o.Out)
	}
	return cmp.Or(o.checkPlacements(ctx, []string{placementsArgument}, strict), err)
}

// nothingToCheck returns an error if no object in the files can have constraints. The error lists the kinds that were read.
func nothingToCheck(state *clusterstate.State) error {
	read := slices.Clone(state.Ignored[:min(5, len(state.Ignored))])
	for kind, count := range map[string]int{
		"ResourceSlice": len(state.Objects.Slices), "Node": len(state.Objects.Nodes), "Pod": len(state.Pods), "DeviceTaintRule": len(state.TaintRules),
	} {
		if count > 0 {
			read = append(read, fmt.Sprintf("%d of kind %s", count, kind))
		}
	}
	slices.Sort(read)
	if more := len(state.Ignored) - 5; more > 0 {
		read = append(read, fmt.Sprintf("and %d more", more))
	}
	return fmt.Errorf("nothing to check: the input has no ResourceClaim, ResourceClaimTemplate, DeviceClass, PodGroup, DeviceAttributes or Placement; it has %s", cmp.Or(strings.Join(read, ", "), "no objects"))
}

// wanted returns a filter for the objects that the arguments name. Without arguments it accepts all objects of the namespace.
func (o *options) wanted(state *clusterstate.State, args []string) (func(any) bool, error) {
	namespace, err := o.namespace()
	if err != nil {
		return nil, err
	}
	selects, err := o.selects()
	if err != nil {
		return nil, err
	}
	inScope := func(of string) bool { return o.allNamespaces || o.readsFiles() && !o.withCluster || of == namespace }
	selected := func(object any, names func(kind, name string) bool) bool {
		if object, ok := object.(metav1.Object); ok && !selects(object) {
			return false
		}
		switch object := object.(type) {
		case *resourceapi.DeviceClass:
			return names(clusterstate.ClassKind, object.Name)
		case *resourceapi.ResourceClaimTemplate:
			return inScope(object.Namespace) && names(clusterstate.TemplateKind, object.Name)
		case *resourceapi.ResourceClaim:
			return inScope(object.Namespace) && names(clusterstate.ClaimKind, object.Name)
		case *schedulingapi.PodGroup:
			return inScope(object.Namespace) && names(clusterstate.GroupKind, object.Name)
		case *v1alpha1.DeviceAttributes:
			return names(clusterstate.AttributesKind, object.Name)
		default:
			return false
		}
	}
	if len(args) == 0 {
		return func(object any) bool { return selected(object, func(string, string) bool { return true }) }, nil
	}
	return argumentsWanted(state, args, selected)
}

// argumentsWanted returns a filter for the objects that match at least one argument. If no object matches an argument, it
// returns an error.
func argumentsWanted(state *clusterstate.State, args []string, selected func(any, func(kind, name string) bool) bool) (func(any) bool, error) {
	chosen := make(map[any]bool)
	for _, arg := range args {
		kind, name, err := clusterstate.Split(arg, clusterstate.ClaimKind, clusterstate.TemplateKind, clusterstate.ClassKind, clusterstate.GroupKind, clusterstate.AttributesKind)
		if err != nil {
			return nil, err
		}
		found := 0
		for _, object := range state.Checkable() {
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

var errNotFound = errors.New("no claim, template, class, group or DeviceAttributes has this name")
