// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/apis/celset/v1alpha1"
	configv1alpha1 "github.com/celset/celset/apis/config/v1alpha1"
	"github.com/celset/celset/cmd/kubectl-celset/simulate"
)

const simulateLong = `Tell on which nodes the claims of a pod, or a claim, would get devices now, and which. A
template stands for a claim made from it. Nothing is created.

The allocator of the scheduler is asked for each node, with the slices, classes and
allocations that were read. Of a pod its claims, the claim that the scheduler makes for
extended resources, node selector, node affinity and tolerations count; what else a scheduler
looks at, such as CPU, memory and what device plugins provide, does not. Where several nodes
fit, the scheduler chooses by its scores.

Where a preference is about the devices, its value is told, and whether no set of the node is
better or the search ended before it was through.
` + exitCodes

const simulateExample = `  # A pod that waits
  kubectl celset simulate pod/train
  # A template that is not in the cluster yet, on its devices
  kubectl celset simulate -f template.yaml --with-cluster
  # Everything from files
  kubectl celset simulate -f claims.yaml -f slices.yaml -f classes.yaml claim/mine`

func newSimulateCommand(o *options) *cobra.Command {
	settings := simulate.Options{
		FilterTimeout: 10 * time.Second,
		CostBudget:    uint64(configv1alpha1.DefaultBudgetCost),
		StepBudget:    configv1alpha1.DefaultBudgetSteps,

		PreferenceCost:  allocator.DefaultPreferenceCostBudget,
		PreferenceSteps: allocator.DefaultPreferenceStepBudget,
	}
	policy := ""
	var nodes []string
	command := &cobra.Command{
		Use:     "simulate [NAME | pod/NAME | claim/NAME | template/NAME]",
		Short:   "Tell where a claim or a pod would get devices, and which, without creating anything",
		Long:    simulateLong,
		Example: simulateExample,
		Args:    cobra.MaximumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			state, subject, err := o.subject(command.Context(), args)
			if err != nil {
				return err
			}
			if len(subject.Claims) == 0 {
				return fmt.Errorf("%s needs no claims, and no extended resources that a class stands for", subject)
			}
			settings.Features = o.gates.features()
			if settings.DefaultPreference, err = policyOf(policy); err != nil {
				return err
			}
			result, err := simulate.Run(command.Context(), state, subject, settings, nodes...)
			if err != nil {
				return err
			}
			return written(o.data(result, result.Print), o.Out, result.Fits())
		},
	}
	o.addFlags(command, "json", "yaml")
	flags := command.Flags()
	o.gates.addFlag(flags)
	flags.StringSliceVar(&nodes, "node", nil, "Ask for these nodes only.")
	flags.DurationVar(&settings.FilterTimeout, "filter-timeout", settings.FilterTimeout, "Time for one node, as in the plugin's arguments.")
	flags.Uint64Var(&settings.CostBudget, "cost-budget", settings.CostBudget, "budget.cost of the plugin's arguments, in CEL cost units.")
	flags.Int64Var(&settings.StepBudget, "step-budget", settings.StepBudget, "budget.steps of the plugin's arguments.")
	flags.Uint64Var(&settings.PreferenceCost, "preference-cost-budget", settings.PreferenceCost, "What looking for better sets may cost on one node, in CEL cost units.")
	flags.Int64Var(&settings.PreferenceSteps, "preference-step-budget", settings.PreferenceSteps, "How many steps looking for better sets may take on one node.")
	flags.StringVar(&policy, "default-preference", policy, fmt.Sprintf("The policy, one of %v, for claims without a preference; none if empty.", v1alpha1.PreferencePolicies))
	return command
}

// policyOf reads the name of a policy.
func policyOf(name string) (v1alpha1.PreferencePolicy, error) {
	policy := v1alpha1.PreferencePolicy(name)
	if name != "" && !slices.Contains(v1alpha1.PreferencePolicies, policy) {
		return "", fmt.Errorf("--default-preference %s: must be one of %v", name, v1alpha1.PreferencePolicies)
	}
	return policy, nil
}
