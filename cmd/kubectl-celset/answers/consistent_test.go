// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package answers_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/celset/celset/allocator/explain"
	configv1alpha1 "github.com/celset/celset/apis/config/v1alpha1"
	"github.com/celset/celset/cmd/internal/served"
	"github.com/celset/celset/cmd/kubectl-celset/answers"
	"github.com/celset/celset/cmd/kubectl-celset/fit"
	"github.com/celset/celset/internal/clusterstate"
	"github.com/celset/celset/internal/testing/cases"
)

// TestAnswersAreConsistent compares the parts of the answers for random objects. The number of further subjects must be the number
// of copies that fit one after another.
func TestAnswersAreConsistent(t *testing.T) {
	cases.CheckN(t, cases.Of(15, 1000), func(rt *rapid.T) {
		text := drawWorld(rt).text(t)
		answer := ask[answers.TryAnswer](t, empty(), answers.Try, answers.TryQuestion{Documents: text})
		for _, subject := range answer.Subjects {
			fitting := 0
			for _, node := range subject.Nodes {
				if node.Fits {
					fitting++
				}
			}
			failed := slices.ContainsFunc(subject.Steps, func(s answers.Step) bool { return s.Failed })
			if subject.Fits {
				require.Positive(rt, fitting)
				require.False(rt, failed)
				if subject.More != nil && !subject.More.AtLeast {
					require.Equal(rt, copies(t, text, subject.Subject), subject.More.Count, text)
				}
				continue
			}
			require.Nil(rt, subject.More)
			require.NotEqual(rt, "It has its devices.", subject.Summary)
			require.True(rt, failed || len(subject.Steps) == 0, subject.Text)
			if subject.Picture == nil || !strings.HasPrefix(subject.Picture.Caption, "the nearest miss") || !strings.Contains(subject.Summary, "On "+subject.Picture.Node) {
				continue
			}
			i := slices.IndexFunc(subject.Nodes, func(v answers.NodeVerdict) bool { return v.Name == subject.Picture.Node })
			require.True(rt, strings.HasSuffix(subject.Summary, ": "+subject.Nodes[i].Reason), subject.Summary)
		}
	})
}

// copies returns how many copies of a subject fit, besides the subject itself. It considers all nodes for each copy.
func copies(t *testing.T, text, name string) int {
	all, args := objectsOf(t, text), &configv1alpha1.DynamicResourcesCELArgs{}
	configv1alpha1.SetDefaults(args)
	require.NoError(t, all.Enrich(t.Context()))
	state := clusterstate.New(all.Overlay(&clusterstate.Objects{}))
	subject, err := state.Subject(strings.Replace(name, " default", "", 1), "default")
	require.NoError(t, err)
	for count := 0; ; count++ {
		report, err := fit.Run(t.Context(), state, subject, fit.Options{Features: features, Args: args, OfGroup: true})
		require.NoError(t, err)
		require.Empty(t, report.Error)
		at := slices.IndexFunc(report.Nodes, func(e *explain.Explanation) bool { return e.Fits })
		if at < 0 {
			return count - 1
		}
		pending := state.PendingOn(subject, state.Node(report.Nodes[at].Node))
		for i, allocation := range report.Nodes[at].Allocations() {
			claim := pending[i].DeepCopy()
			claim.Name, claim.Status.Allocation = fmt.Sprintf("copy-%d-%d", count, i), &allocation
			all.Claims = append(all.Claims, claim)
		}
		if subject.Pod != nil {
			pod := subject.Pod.DeepCopy()
			pod.Name, pod.Spec.NodeName = fmt.Sprintf("copy-%d", count), report.Nodes[at].Node
			all.Pods = append(all.Pods, pod)
		}
		state = clusterstate.New(all.Overlay(&clusterstate.Objects{}))
	}
}

func objectsOf(t *testing.T, text string) *clusterstate.Objects {
	objects := &clusterstate.Objects{}
	documents, err := clusterstate.Decode("documents", []byte(text))
	require.NoError(t, err)
	for _, document := range documents {
		require.NoError(t, objects.Add(document, "default"))
	}
	return objects
}

// TestSeveralClaims checks that steps name the claim if several claims have requests with the same name.
func TestSeveralClaims(t *testing.T) {
	text := claimWith("          expression: 'false'\n") + "---\n" + strings.Replace(claimWith("          expression: 'true'\n"), "name: a", "name: b", 1) + `---
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  containers: [{name: c, resources: {claims: [{name: x}, {name: z}]}}]
  resourceClaims: [{name: x, resourceClaimName: b}, {name: z, resourceClaimName: a}]
`
	answer := ask[answers.TryAnswer](t, empty(), answers.Try, answers.TryQuestion{Documents: text, Machine: "hgx-h100", Nodes: 1})
	require.Len(t, answer.Subjects, 1, answer.Problems)
	steps := answer.Subjects[0].Steps
	require.Equal(t, "match the selectors for request gpus of claim default/b", steps[1].Text)
	require.Equal(t, "are free for request gpus of claim default/a, 2 wanted", steps[4].Text)
	require.Equal(t, answers.Step{Text: "constraint c, line 1, column 1: false, for claim default/a", Left: -1, Failed: true}, steps[6])
}

// TestExcludedNode checks the caption for a node that the pod excludes, and that such a pod has no devices.
func TestExcludedNode(t *testing.T) {
	text := claimWith("          expression: 'true'\n") + `---
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  containers: [{name: c}]
  nodeSelector: {rack: a}
  resourceClaims: [{name: x, resourceClaimName: a}]
`
	answer := ask[answers.TryAnswer](t, empty(), answers.Try, answers.TryQuestion{Documents: text, Machine: "hgx-h100", Nodes: 1, Node: "node-1"})
	require.Equal(t, "On node-1, the only node: the pod's node selector or affinity does not match", answer.Subjects[0].Summary)
	require.Equal(t, "the devices were not searched: the pod's node selector or affinity does not match", answer.Subjects[0].Picture.Caption)
	require.NotContains(t, answer.Subjects[0].Picture.SVG, "a</title>")

	text = strings.Replace(text, "nodeSelector: {rack: a}", "affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {}}]}}", 1)
	answer = ask[answers.TryAnswer](t, empty(), answers.Try, answers.TryQuestion{Documents: text, Machine: "hgx-h100", Nodes: 1})
	require.True(t, answer.Subjects[0].Fits)
	require.Nil(t, answer.Subjects[0].More, "anti-affinity is not checked")
}

// TestSchedulers checks that the answer about a pod uses the published budgets of its scheduler, and says whether the scheduler
// supports constraints.
func TestSchedulers(t *testing.T) {
	text := claimWith("          expression: devices.size() == 2\n") + `---
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  schedulerName: celset-scheduler
  containers: [{name: c}]
  resourceClaims: [{name: x, resourceClaimName: a}]
`
	var published served.Schedulers
	var failure error
	a := answers.New(answers.Static(answers.View{Objects: &clusterstate.Objects{}}), answers.Options{
		Features: features, Timeout: time.Hour, Served: func(context.Context) (served.Schedulers, string, error) { return published, "kube-system", failure },
	})
	try := func() answers.SubjectAnswer {
		return ask[answers.TryAnswer](t, a, answers.Try, answers.TryQuestion{Documents: text, Machine: "hgx-h100", Nodes: 1}).Subjects[0]
	}
	require.Contains(t, try().Summary, "no Lease in namespace kube-system has the profiles of a celset-scheduler")

	profile := served.Profile{SchedulerName: "celset-scheduler"}
	configv1alpha1.SetDefaults(&profile.Args)
	published = served.Schedulers{{Lease: "kube-system/celset", Until: time.Now().Add(time.Hour), Constraints: true, Profiles: []served.Profile{profile}}}
	require.Equal(t, "On node-1, the only node.", try().Summary)
	published[0].Profiles[0].Args.Budget.Steps = ptr.To(int64(1))
	require.Equal(t, answers.Failed, try().Verdict)
	published[0].Constraints = false
	require.Contains(t, try().Text, "the feature gate DRACELDeviceConstraint is off in the scheduler with Lease kube-system/celset")
	failure = errors.New("forbidden")
	require.Contains(t, try().Text, `not checked: whether the scheduler "celset-scheduler" supports constraints: forbidden`)
}

// TestPlainGroup checks that a PodGroup without a node set constraint is no mistake.
func TestPlainGroup(t *testing.T) {
	answer := ask[answers.TryAnswer](t, empty(), answers.Try, answers.TryQuestion{Machine: "hgx-h100", Nodes: 1, Documents: `apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: g}
spec: {schedulingPolicy: {gang: {minCount: 1}}}
`})
	require.Empty(t, answer.Problems)
	require.Empty(t, answer.Subjects)
}

// TestOverviewAgreesWithNodes compares the counts of the overview with the devices of each node, and the answer to Explain with the
// answer to Try.
func TestOverviewAgreesWithNodes(t *testing.T) {
	cases.CheckN(t, cases.Of(15, 1000), func(rt *rapid.T) {
		text := drawWorld(rt).text(t)
		objects := objectsOf(t, text)
		objects.LimitQuantities()
		a := over(answers.View{Objects: objects})
		for _, summary := range ask[answers.OverviewAnswer](t, a, answers.Overview, struct{}{}).Nodes {
			allocated, unusable := 0, 0
			devices := ask[answers.NodeAnswer](t, a, answers.Node, answers.NodeQuestion{Name: summary.Name}).Devices
			for _, device := range devices {
				if slices.ContainsFunc(device.Holders, func(h answers.Holder) bool { return !h.AdminAccess }) {
					allocated++
				}
				if len(device.Taints) > 0 {
					unusable++
				}
			}
			require.Equal(rt, []int{summary.Devices, summary.Allocated, summary.Unusable}, []int{len(devices), allocated, unusable}, text)
		}
		for _, subject := range ask[answers.TryAnswer](t, empty(), answers.Try, answers.TryQuestion{Documents: text}).Subjects {
			kind, name, _ := strings.Cut(subject.Subject, " default/")
			explained := ask[answers.SubjectAnswer](t, a, answers.Explain, answers.ExplainQuestion{Subject: kind + "/" + name, Namespace: "default"})
			if subject.More != nil && explained.More != nil && (subject.More.AtLeast || explained.More.AtLeast) {
				subject.More, explained.More = nil, nil // the count depends on the time
			}
			require.Equal(rt, subject, explained)
		}
	})
}
