// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/allocator/explain"
	"github.com/celset/celset/internal/clusterstate"
)

const explainLong = `Tell node by node why a pod or a claim gets no devices: how many devices match and are free,
the first condition that no set of them satisfies, and the claims that stand in the way. The
conditions are the constraints of the claims in their order, and of a CEL constraint its
conjuncts.

Nodes without any device for the claims are left out, unless all are.

Of a claim that has its devices, tell what its preferences say of them, of the best set among the
free devices and its own, and of the best if no device of the node were in use.
` + exitCodes

const explainExample = `  kubectl celset explain pod/train
  kubectl celset explain claim/mine --node node-1 -o yaml`

func newExplainCommand(o *options) *cobra.Command {
	timeout := time.Minute
	var nodes []string
	command := &cobra.Command{
		Use:     "explain [NAME | pod/NAME | claim/NAME | template/NAME]",
		Short:   "Tell why a pod or a claim gets no devices, node by node, or how good those are that it has",
		Long:    explainLong,
		Example: explainExample,
		Args:    cobra.MaximumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			state, subject, err := o.subject(command.Context(), args)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(command.Context(), timeout)
			defer cancel()
			result, err := explainAll(ctx, state, subject, o.gates.features(), nodes)
			if err != nil {
				return err
			}
			if len(subject.Pending()) == 0 && result.Error == "" && len(result.Allocated) == 0 {
				_, _ = fmt.Fprintf(o.ErrOut, "%s: all claims have been allocated\n", subject)
				return nil
			}
			return written(o.data(result, result.print), o.Out, result.fits())
		},
	}
	o.addFlags(command, "json", "yaml")
	o.gates.addFlag(command.Flags())
	command.Flags().StringSliceVar(&nodes, "node", nil, "Explain these nodes only.")
	command.Flags().DurationVar(&timeout, "timeout", timeout, "Time for all nodes together.")
	return command
}

// explanation is what is said of all nodes.
type explanation struct {
	Subject string `json:"subject"`
	// Error keeps the claims from being allocated anywhere.
	Error string `json:"error,omitempty"`
	// Allocated are claims with preferences that have their devices.
	Allocated []*explain.Score       `json:"allocated,omitempty"`
	Nodes     []*explain.Explanation `json:"nodes"`
	// allAllocated: there is nothing to be allocated.
	allAllocated bool
}

func explainAll(ctx context.Context, state *clusterstate.State, subject *clusterstate.Subject, features structured.Features, names []string) (*explanation, error) {
	problem := explain.Problem{
		Problem:  state.Problem(subject, features, allocator.WithCache(allocator.NewCache())),
		NamesAll: true, // they were read with the rights of who asks
	}
	nodes, err := state.ChosenNodes(names)
	if err != nil {
		return nil, err
	}
	result := &explanation{Subject: subject.String(), Nodes: []*explain.Explanation{}, allAllocated: len(subject.Pending()) == 0}
	for _, claim := range subject.Claims {
		if claim.Status.Allocation == nil || !problem.Prefers(claim) {
			continue
		}
		score, err := problem.Score(ctx, nodes, claim)
		if score != nil {
			result.Allocated = append(result.Allocated, score)
		}
		if err != nil {
			result.Error = err.Error()
			return result, nil
		}
	}
	if result.allAllocated {
		return result, nil
	}
	for _, node := range nodes {
		onNode := problem
		onNode.Claims = state.PendingOn(subject, node)
		one, err := onNode.Node(ctx, node)
		if one != nil {
			result.Nodes = append(result.Nodes, one)
		}
		if err != nil {
			result.Error = err.Error()
			break
		}
	}
	result.leaveOut()
	return result, nil
}

// leaveOut removes the nodes that have no device for any request, if there are others.
func (e *explanation) leaveOut() {
	infeasible := func(one *explain.Explanation) bool {
		return !one.Fits && !slices.ContainsFunc(one.Requests, func(r explain.Request) bool { return r.Matching+r.Failed > 0 })
	}
	if slices.ContainsFunc(e.Nodes, func(one *explain.Explanation) bool { return !infeasible(one) }) {
		e.Nodes = slices.DeleteFunc(e.Nodes, infeasible)
	}
}

func (e *explanation) fits() bool {
	return e.Error == "" && (e.allAllocated || slices.ContainsFunc(e.Nodes, func(one *explain.Explanation) bool { return one.Fits }))
}

func (e *explanation) print(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintln(&b, e.Subject)
	for _, score := range e.Allocated {
		printScore(&b, score)
	}
	for _, one := range e.Nodes {
		printNode(&b, one)
	}
	if e.Error != "" {
		fmt.Fprintf(&b, "  error: %s\n", strings.ReplaceAll(strings.TrimSpace(e.Error), "\n", "\n    "))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func printNode(b *strings.Builder, one *explain.Explanation) {
	fits := "no"
	if one.Fits {
		fits = "yes"
	}
	fmt.Fprintf(b, "  node %s: %s\n", one.Node, fits)
	for _, r := range one.Requests {
		fmt.Fprintf(b, "    claim %s, request %s: wants %d, %d match, %d free\n", r.Claim, r.Name, r.Wanted, r.Matching, r.Free)
	}
	if one.Unmet != nil {
		fmt.Fprintf(b, "    no set satisfies %s\n", one.Unmet)
	} else if one.Reason != "" {
		fmt.Fprintf(b, "    %s\n", one.Reason)
	}
	for _, owner := range one.InTheWay {
		fmt.Fprintf(b, "    in the way: claim %s with %s\n", owner.Claim, strings.Join(owner.Devices, ", "))
	}
	if one.Never {
		fmt.Fprintln(b, "    it would not fit either if all devices of the node were free")
	}
}

func printScore(b *strings.Builder, score *explain.Score) {
	fmt.Fprintf(b, "  claim %s has its devices on node %s: %s\n", score.Claim, score.Node, cmp.Or(values(score.Has), "no preference tells a value of them"))
	printBest(b, "of the free devices and its own", score.Free)
	printBest(b, "if no device of the node were in use", score.Ever)
}

func printBest(b *strings.Builder, of string, best explain.Best) {
	if best.Reason != "" {
		fmt.Fprintf(b, "    %s: none: %s\n", of, best.Reason)
		return
	}
	fmt.Fprintf(b, "    %s: %s: %s: %s\n", of, cmp.Or(string(best.Outcome), "any"), values(best.Values), strings.Join(best.Devices, ", "))
}

// values are those of preferences, the most important one first.
func values(of []explain.Value) string {
	texts := make([]string, len(of))
	for i, value := range of {
		texts[i] = value.Name + " " + allocator.DescribeValue(value.Value, value.Losses)
		if value.Error != "" {
			texts[i] = fmt.Sprintf("%s fails: %s", value.Name, strings.Join(strings.Fields(value.Error), " "))
		}
	}
	return strings.Join(texts, ", ")
}
