// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	"k8s.io/dynamic-resource-allocation/structured"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/allocator/explain"
	configv1alpha1 "github.com/celset/celset/apis/config/v1alpha1"
	"github.com/celset/celset/cmd/kubectl-celset/fit"
	"github.com/celset/celset/cmd/kubectl-celset/gang"
	"github.com/celset/celset/cmd/kubectl-celset/placements"
	"github.com/celset/celset/internal/clusterstate"
	"github.com/celset/celset/placement"
)

// answer is the result of the same functions that the commands explain and check use.
type answer struct {
	// of is the kind of the subject. The kind determines which fields are set.
	of kind
	// node is the first node that fits, and devices are the devices there.
	node    string
	devices []explain.Device
	// requests are the names of the requests, and of alternatives as "request/alternative".
	requests []string
	// fitting are the nodes that fit.
	fitting []string
	// nodes are the chosen nodes of a group. clusters are the selected clusters of a Placement.
	nodes, clusters []string
	// reasons are the reasons why nothing is chosen. The list is empty if something is chosen.
	reasons []string
	// printed are the reasons in the words of the scheduler, which the commands explain and simulate print, too.
	printed []string
	// steps is the largest number of steps of the search on one node.
	steps int64
	// errors are the errors of a check.
	errors []string
	// satisfies evaluates an expression over the chosen devices, nodes or clusters. It returns an *expressionError if the expression
	// can't be used.
	satisfies func(ctx context.Context, expression string) (bool, error)
}

// kind is the kind of an answer.
type kind string

const (
	ofDevices    kind = "claims"
	ofGroup      kind = "a PodGroup"
	ofPlacement  kind = "a Placement"
	ofDefinition kind = "a check"
)

// chosen returns the chosen devices, nodes or clusters as text.
func (a *answer) chosen() []string {
	switch a.of {
	case ofDevices:
		return names(a.devices)
	case ofGroup:
		return a.nodes
	default:
		return a.clusters
	}
}

// ask gets the answer for a case.
func (in *input) ask(ctx context.Context, e *Expectations, features structured.Features, timeout time.Duration) (*answer, error) {
	if e.Errors != nil {
		return in.askCheck(ctx, features, timeout)
	}
	if in.hub != nil {
		return in.askPlacement(ctx, timeout)
	}
	args := &configv1alpha1.DynamicResourcesCELArgs{}
	configv1alpha1.SetDefaults(args)
	// Only the time limit of the case applies, so that a slow machine gives the same answer.
	args.FilterTimeout.Duration = 0
	options := fit.Options{Features: features, Args: args, Why: true, Nodes: in.Nodes}
	group, err := in.group()
	if err != nil {
		return nil, err
	}
	if group != nil {
		options.OfGroup = true
		return in.askGroup(ctx, group, options)
	}
	return in.askDevices(ctx, options)
}

// group returns the PodGroup that the case is about, or nil.
func (in *input) group() (*schedulingapi.PodGroup, error) {
	if in.Subject == "" {
		return gang.Only(in.state), nil
	}
	kind, name, err := clusterstate.Split(in.Subject, clusterstate.GroupKind)
	if err != nil || kind == "" {
		return nil, nil //nolint:nilerr // the subject is of another kind
	}
	if group := in.state.Group(in.Namespace, name); group != nil {
		return group, nil
	}
	return nil, fmt.Errorf("subject: there is no PodGroup %q in namespace %q%s", name, in.Namespace, in.state.NearGroup(in.Namespace, name))
}

func (in *input) askDevices(ctx context.Context, options fit.Options) (*answer, error) {
	subject, err := in.state.Subject(in.Subject, in.Namespace)
	if err != nil {
		return nil, fmt.Errorf("subject: %w", err)
	}
	if len(subject.Claims) == 0 {
		return nil, fmt.Errorf("subject: %s has no claims, and no extended resources of a DeviceClass", subject)
	}
	report, err := fit.Run(ctx, in.state, subject, options)
	if err != nil {
		return nil, err
	}
	if report.Incomplete != "" {
		return nil, errors.New(report.Incomplete)
	}
	a := &answer{of: ofDevices, requests: requestsOf(subject.Claims), reasons: slices.Clone(report.Refused)}
	if report.Error != "" {
		a.reasons = append(a.reasons, report.Error)
	}
	if len(report.Nodes) == 0 && report.Error == "" {
		a.reasons = append(a.reasons, "there are no nodes")
	}
	var reasons []string
	for _, node := range report.Nodes {
		a.steps = max(a.steps, node.Steps)
		if !node.Fits {
			reasons = append(reasons, fmt.Sprintf("node %s: %s", node.Node, node))
			a.printed = append(a.printed, node.Reason)
			continue
		}
		if a.fitting = append(a.fitting, node.Node); len(a.fitting) > 1 {
			continue
		}
		a.node = node.Node
		for _, claim := range slices.Concat(report.Allocated, node.Claims) {
			a.devices = append(a.devices, claim.Devices...)
		}
	}
	if report.Fits() {
		a.satisfies = in.overDevices(a.devices, options.Features)
		return a, nil
	}
	a.reasons = append(a.reasons, reasons...)
	a.node, a.devices, a.fitting = "", nil, nil
	return a, nil
}

// requestsOf returns the names of the requests of the claims.
func requestsOf(claims []*resourceapi.ResourceClaim) (all []string) {
	for _, claim := range claims {
		for i := range claim.Spec.Devices.Requests {
			request := &claim.Spec.Devices.Requests[i]
			all = append(all, request.Name)
			for j := range request.FirstAvailable {
				all = append(all, request.Name+"/"+request.FirstAvailable[j].Name)
			}
		}
	}
	return all
}

func (in *input) askGroup(ctx context.Context, group *schedulingapi.PodGroup, options fit.Options) (*answer, error) {
	report, err := gang.Run(ctx, in.state, group, options)
	if err != nil {
		return nil, err
	}
	if report.Incomplete != "" {
		return nil, errors.New(report.Incomplete)
	}
	report.Refused = append(report.Refused, fit.GroupRefusals(in.state, group)...)
	a := &answer{of: ofGroup}
	if report.Positive() {
		for _, member := range report.Chosen {
			a.nodes = append(a.nodes, member.Node)
		}
		a.satisfies = overNodes(report)
		return a, nil
	}
	a.reasons = slices.Clone(report.Refused)
	for _, reason := range []string{report.Reason, report.Error} {
		if reason != "" {
			a.reasons = append(a.reasons, reason)
		}
	}
	if len(a.reasons) == 0 {
		a.reasons = []string{"the running pods don't satisfy the constraint, and no pod waits for a node"}
	}
	return a, nil
}

// placement returns the Placement that the case is about.
func (in *input) placement() (*clusterv1beta1.Placement, error) {
	_, name, found := strings.Cut(in.Subject, "/")
	if !found {
		name = ""
	}
	object, err := in.hub.Placement(name, in.Namespace)
	if err != nil {
		return nil, fmt.Errorf("subject: %w", err)
	}
	return object, nil
}

// time returns the time at which Placements are decided.
func (in *input) time() time.Time {
	if in.Now != nil {
		return in.Now.Time
	}
	return time.Now()
}

func (in *input) askPlacement(ctx context.Context, timeout time.Duration) (*answer, error) {
	object, err := in.placement()
	if err != nil {
		return nil, err
	}
	now := in.time()
	limited, cancel := placement.WithDeadline(ctx, timeout, timeout)
	defer cancel()
	decided, err := in.hub.Decide(limited, object, now, placements.Options{Why: true})
	if err != nil {
		return nil, err
	}
	a := &answer{of: ofPlacement, clusters: decided.Selected}
	if decided.Positive() {
		a.satisfies = in.overClusters(decided.Selected, now)
		return a, nil
	}
	for _, wrong := range decided.Misconfigurations {
		a.reasons = append(a.reasons, fmt.Sprintf("%s: %s", wrong.Field, wrong.Message))
	}
	for _, condition := range decided.Status.Conditions {
		if condition.Type == clusterv1beta1.PlacementConditionSatisfied {
			a.reasons = append(a.reasons, condition.Message)
		}
	}
	a.reasons = append(a.reasons, decided.Text())
	return a, nil
}

// names returns the names of devices. If several devices have the same name, the driver is in front of it, and the pool if needed.
func names(devices []explain.Device) []string {
	count := map[string]int{}
	for _, d := range devices {
		count[d.Device]++
		count[d.Driver+"/"+d.Device]++
	}
	result := make([]string, len(devices))
	for i, d := range devices {
		switch {
		case count[d.Device] == 1:
			result[i] = d.Device
		case count[d.Driver+"/"+d.Device] == 1:
			result[i] = d.Driver + "/" + d.Device
		default:
			result[i] = d.Driver + "/" + d.Pool + "/" + d.Device
		}
	}
	return result
}

// isNamed reports whether an expected name is a name of the device.
func isNamed(d *explain.Device, name string) bool {
	return name == d.Device || name == d.Driver+"/"+d.Device || name == d.Driver+"/"+d.Pool+"/"+d.Device
}
