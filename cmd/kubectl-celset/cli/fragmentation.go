// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/allocator/explain"
	"github.com/celset/celset/allocator/fragmentation"
	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/apis/nearest"
	"github.com/celset/celset/cmd/kubectl-celset/output"
	"github.com/celset/celset/internal/clusterstate"
)

const fragmentationLong = `Show how many sets of connected devices are free.

The report has a line for each constraint that a DeviceClass defines, and for each number of devices
that claims request with the constraint. If no claim uses the constraint, the numbers are 2, 4, 8 and
16. The columns are:

- ASKED: the number of claims that request such a set
- NOW: the number of further claims that would get such a set now
- PACKED: the number of further claims if the allocated claims had other devices
- IDLE: the number of claims if all devices were free

To compute PACKED, the command places all claims again, the largest first, each where it splits up
the fewest sets. A better placement may exist. If a number begins with >=, the search ended early, so
the real number may be higher.

The report considers only devices. It ignores the CPU, memory, node selectors and tolerations of
pods. It leaves out cordoned nodes, and claims with devices on cordoned nodes keep their devices.
` + exitCodes

const fragmentationExample = `  # Show the sets of all classes
  kubectl celset fragmentation

  # Show the blocks of eight devices of one class
  kubectl celset fragmentation --class gpu.example.com --count 8

  # Show the report as data
  kubectl celset fragmentation -o json`

func newFragmentationCommand(o *options) *cobra.Command {
	settings := fragmentation.Options{}
	timeout := 5 * time.Minute
	var nodes []string
	command := &cobra.Command{
		Use:     "fragmentation",
		Short:   "Show how many sets of devices are free, and how many could be",
		Long:    fragmentationLong,
		Example: fragmentationExample,
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			for _, count := range settings.Counts {
				if count < 1 || count > resourceapi.AllocationResultsMaxSize {
					return fmt.Errorf("--count %d: must be from 1 to %d", count, resourceapi.AllocationResultsMaxSize)
				}
			}
			// The counts depend on the pending pods of all namespaces, because they all compete for the devices.
			o.allNamespaces = true
			state, err := o.state(command.Context())
			if err != nil {
				return err
			}
			if err := namesConstraints(state, settings); err != nil {
				return err
			}
			chosen, err := o.nodes(state, nodes)
			if err != nil {
				return err
			}
			if len(nodes) == 0 {
				chosen = slices.DeleteFunc(slices.Clone(chosen), func(node *corev1.Node) bool { return node.Spec.Unschedulable })
			}
			ctx, cancel := context.WithTimeout(command.Context(), timeout)
			defer cancel()
			result, err := fragmentationOf(ctx, state, o.gates.features(), chosen, settings)
			if err != nil {
				return err
			}
			return written(o.data(result, result.print), o.Out, result.isComplete())
		},
	}
	o.addFlags(command, "json", "yaml")
	flags := command.Flags()
	o.gates.addFlag(flags, o.ErrOut)
	flags.StringVar(&settings.Class, "class", "", "Count only sets for the constraints of this DeviceClass.")
	flags.StringVar(&settings.Constraint, "constraint", "", "Count only sets for constraints with this name.")
	flags.IntSliceVar(&settings.Counts, "count", nil, "Count sets of this number of devices. By default, the numbers come from the claims.")
	flags.StringSliceVar(&nodes, "node", nil, "Count only sets on these nodes.")
	o.addSelector(flags, "Label selector of the nodes.")
	flags.DurationVar(&timeout, "timeout", timeout, "Time limit for the report.")
	return command
}

// nodes returns the nodes to report on: the named nodes, or all nodes if names is empty. With -l, only nodes that match the
// selector remain.
func (o *options) nodes(state *clusterstate.State, names []string) ([]*corev1.Node, error) {
	chosen, err := state.ChosenNodes(names)
	if err != nil {
		return nil, err
	}
	selects, err := o.selects()
	if err != nil {
		return nil, err
	}
	chosen = slices.DeleteFunc(slices.Clone(chosen), func(node *corev1.Node) bool { return !selects(node) })
	if len(chosen) == 0 && o.selector != "" {
		return nil, fmt.Errorf("--selector %q: no node has these labels", o.selector)
	}
	return chosen, nil
}

// maxNamed is the maximum number of class names that an error lists.
const maxNamed = 10

// namesConstraints returns an error if the settings name an unknown class, or a constraint that no class defines.
func namesConstraints(state *clusterstate.State, settings fragmentation.Options) error {
	var classes, constraints []string
	for _, class := range state.Objects.Classes {
		classes = append(classes, class.Name)
		if settings.Class != "" && settings.Class != class.Name {
			continue
		}
		definitions, _ := v1alpha1.ClassDefinitions(class)
		for _, definition := range definitions {
			constraints = append(constraints, definition.Name)
		}
	}
	if settings.Class != "" && !slices.Contains(classes, settings.Class) {
		near := nearest.DidYouMean("", settings.Class, slices.Values(classes))
		if near == "" && len(classes) > 0 {
			near = "; existing names: " + strings.Join(classes[:min(len(classes), maxNamed)], ", ")
		}
		return fmt.Errorf("--class: there is no DeviceClass %q%s", settings.Class, near)
	}
	if settings.Constraint != "" && !slices.Contains(constraints, settings.Constraint) {
		of := "a DeviceClass"
		if settings.Class != "" {
			of = fmt.Sprintf("DeviceClass %q", settings.Class)
		}
		return fmt.Errorf("--constraint: no constraint of %s has the name %q%s", of, settings.Constraint, nearest.DidYouMean("", settings.Constraint, slices.Values(constraints)))
	}
	return nil
}

// fragmented is a report that can print itself as text.
type fragmented struct {
	output.Meta
	*fragmentation.Report
}

func fragmentationOf(ctx context.Context, state *clusterstate.State, features structured.Features, nodes []*corev1.Node, settings fragmentation.Options) (fragmented, error) {
	problem := state.Problem(nil, features, allocator.WithAttemptBudget(fragmentation.NewBudget()))
	problem.Allocated = append(slices.Clone(problem.Allocated), state.Waiting()...)
	report, err := fragmentation.New(ctx, problem, nodes, settings)
	return fragmented{output.NewMeta(output.FragmentationReport), report}, err
}

// isComplete reports whether all set shapes were counted before the time limit.
func (f fragmented) isComplete() bool {
	return !slices.ContainsFunc(f.Shapes, func(s fragmentation.Shape) bool { return s.Error != "" })
}

func (f fragmented) print(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s with devices", explain.Counted(int64(f.Nodes), "node"), explain.Counted(int64(f.Claims), "claim"))
	if f.Pinned > 0 {
		fmt.Fprintf(&b, ", %d of them on other nodes", f.Pinned)
	}
	b.WriteString("\n\n")
	if len(f.Shapes) == 0 {
		b.WriteString("No set of devices on these nodes satisfies a constraint of a DeviceClass.\n")
	} else {
		f.printShapes(&b)
	}
	if f.NotPacked != "" {
		fmt.Fprintf(&b, "\nPACKED is incomplete: %s\n", f.NotPacked)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (f fragmented) printShapes(b *strings.Builder) {
	// Writes to a strings.Builder never fail.
	table := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "CLASS\tCONSTRAINT\tDEVICES\tASKED\tNOW\tPACKED\tIDLE")
	for _, s := range f.Shapes {
		_, _ = fmt.Fprintf(table, "%s\t%s\t%d\t%d\t", s.Class, s.Constraint, s.Devices, s.Asked)
		if s.Error != "" {
			_, _ = fmt.Fprintln(table, "error: "+strings.ReplaceAll(s.Error, "\n", " "))
			continue
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\n", sets(s.Now), sets(s.Packed), sets(s.Idle))
	}
	_ = table.Flush()
}

func sets(c fragmentation.Count) string {
	if c.AtLeast {
		return ">=" + strconv.Itoa(c.Sets)
	}
	return strconv.Itoa(c.Sets)
}
