// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/pflag"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	"k8s.io/dynamic-resource-allocation/structured"

	configv1alpha1 "github.com/celset/celset/apis/config/v1alpha1"
	"github.com/celset/celset/cmd/kubectl-celset/draw"
	"github.com/celset/celset/cmd/kubectl-celset/fit"
	"github.com/celset/celset/cmd/kubectl-celset/gang"
	"github.com/celset/celset/internal/clusterstate"
)

// isAboutGroup reports whether an argument names a PodGroup.
func isAboutGroup(args []string) bool {
	return slices.ContainsFunc(args, func(arg string) bool {
		kind, _, err := clusterstate.Split(arg, clusterstate.GroupKind)
		return err == nil && kind == clusterstate.GroupKind
	})
}

// groupOf returns the PodGroup that the argument names. If the argument is empty, it returns the only PodGroup of the input.
func (o *options) groupOf(state *clusterstate.State, argument string) (*schedulingapi.PodGroup, error) {
	if argument == "" {
		return state.Asked().Groups[0], nil
	}
	_, name, err := clusterstate.Split(argument, clusterstate.GroupKind)
	if err != nil {
		return nil, err
	}
	namespace, err := o.namespace()
	if err != nil {
		return nil, err
	}
	if group := state.Group(namespace, name); group != nil {
		return group, nil
	}
	return nil, fmt.Errorf("there is no PodGroup %q in namespace %q%s", name, namespace, state.NearGroup(namespace, name))
}

// group prints the nodes on which a PodGroup would run.
func (f *fitOptions) group(ctx context.Context, flags *pflag.FlagSet, state *clusterstate.State, argument string) error {
	group, err := f.groupOf(state, argument)
	if err != nil {
		return err
	}
	subject := gang.SubjectOf(state, group)
	known, err := f.clusterInfoOf(ctx, subject)
	if err != nil {
		return err
	}
	f.asked.Features, f.asked.Args, f.asked.OfGroup = f.gates.features(), f.argsWith(known.profile, flags), true
	progress := f.newProgress("nodes")
	defer progress.end()
	f.asked.Progress = progress.at
	ctx, cancel := context.WithTimeoutCause(ctx, f.timeout, fmt.Errorf("--timeout: the time limit of %s was exceeded: set a higher limit", f.timeout))
	defer cancel()
	report, err := gang.Run(ctx, state, group, f.asked)
	if err != nil {
		return err
	}
	progress.end()
	report.Refused = append(report.Refused, fit.GroupRefusals(state, group)...)
	known.addTo(&report.Scheduling, state, subject)
	for _, pod := range state.Pods {
		if state.GroupOf(pod) != group || pod.Spec.NodeName != "" {
			continue
		}
		if member, err := state.SubjectOf(pod); err == nil {
			if err := known.admit(ctx, &report.Scheduling, member); err != nil {
				return err
			}
		}
	}
	return ended(f.data(report, report.Print)(f.Out), report.Incomplete, report.Positive())
}

// groupPicture draws the nodes where the pods of a PodGroup run, and the nodes that its pending pods would get. If there are no
// such nodes, it prints the reason.
func (o *options) groupPicture(ctx context.Context, state *clusterstate.State, argument string, features structured.Features) (*draw.Picture, error) {
	group, err := o.groupOf(state, argument)
	if err != nil {
		return nil, err
	}
	args := &configv1alpha1.DynamicResourcesCELArgs{}
	configv1alpha1.SetDefaults(args)
	report, err := gang.Run(ctx, state, group, fit.Options{Features: features, Args: args})
	if err != nil {
		return nil, err
	}
	if len(report.Running)+len(report.Chosen) == 0 {
		return nil, ended(report.Print(o.ErrOut), report.Incomplete, false)
	}
	return report.Picture(), nil
}
