// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package answers_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/cmd/kubectl-celset/answers"
	"github.com/celset/celset/cmd/kubectl-celset/answers/playground"
	"github.com/celset/celset/cmd/kubectl-celset/placements"
	"github.com/celset/celset/internal/clusterstate"
	"github.com/celset/celset/placement/report"
)

// features has the features that the models of machines need.
var features = playground.Features()

// ask asks a question, and decodes the answer as the page does.
func ask[A any](t *testing.T, a *answers.Answers, name string, question any) A {
	t.Helper()
	raw, err := json.Marshal(question)
	require.NoError(t, err)
	answer, err := a.Answer(t.Context(), name, raw)
	require.NoError(t, err)
	raw, err = json.Marshal(answer)
	require.NoError(t, err)
	var decoded A
	require.NoError(t, json.Unmarshal(raw, &decoded))
	return decoded
}

// empty returns answers for a source without objects.
func empty() *answers.Answers { return over(answers.View{Objects: &clusterstate.Objects{}}) }

func over(view answers.View) *answers.Answers {
	return answers.New(answers.Static(view), answers.Options{Features: features, Timeout: time.Hour})
}

// read returns an example of the documentation.
func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../../manifests/examples/" + name)
	require.NoError(t, err)
	return string(text)
}

func TestTryFits(t *testing.T) {
	text := read(t, "trn1-2x2.yaml") + "---\n" + read(t, "deviceclasses.yaml")
	answer := ask[answers.TryAnswer](t, empty(), answers.Try, answers.TryQuestion{Documents: text, Machine: "aws-trn1", Nodes: 2, InUse: 4})
	require.Empty(t, answer.Problems)
	require.Len(t, answer.Subjects, 1, "the pod uses the template")
	subject := answer.Subjects[0]
	require.Equal(t, "pod default/neurons", subject.Subject)
	require.True(t, subject.Fits)
	require.Equal(t, "On 2 of 2 nodes.", subject.Summary)
	require.Contains(t, subject.Text, "Pod default/neurons\n  node node-1: yes (")
	require.Len(t, subject.Nodes, 2)
	require.Len(t, subject.Nodes[0].Devices, 6)
	require.Equal(t, &answers.More{Count: 3}, subject.More, "two blocks of 2x2 are free on each node, and one is the subject's")
	require.Equal(t, "devices for pod default/neurons", subject.Picture.Caption)
	require.Equal(t, "node-1", subject.Picture.Node)
	require.NotContains(t, subject.Picture.SVG, "<style")
	require.Equal(t, 6, strings.Count(subject.Picture.SVG, ": default/neurons-devices</title>"))
	var texts []string
	for _, step := range subject.Steps {
		require.False(t, step.Failed)
		texts = append(texts, fmt.Sprint(step.Left, " ", step.Text))
	}
	require.Equal(t, []string{
		"25 devices on node node-1", "16 match the selectors for request neuron", "12 are free for request neuron, 4 wanted",
		"8 match the selectors for request efa", "8 are free for request efa, 2 wanted",
	}, texts[:5])
	require.Contains(t, texts[5], "-1 constraint block2x2, line 1, column 1: devices.map(")
	require.Contains(t, texts[len(texts)-1], "-1 search: ")

	second := ask[answers.TryAnswer](t, empty(), answers.Try, answers.TryQuestion{Documents: text, Machine: "aws-trn1", Nodes: 2, InUse: 4, Node: "node-2"})
	require.Equal(t, "node-2", second.Subjects[0].Picture.Node)
}

func TestTryMisses(t *testing.T) {
	text := strings.Replace(claimWith("          expression: devices.all(d, d.driver == 'gpu.nvidia.com') && devices.map(d, d.attributes['resource.kubernetes.io'].pcieRoot).distinct().size() == 1\n"), "count: 2", "count: 8", 1)
	answer := ask[answers.TryAnswer](t, empty(), answers.Try, answers.TryQuestion{Documents: text, Machine: "hgx-h100", Nodes: 1})
	require.Len(t, answer.Subjects, 1)
	subject := answer.Subjects[0]
	require.Equal(t, "claim default/a", subject.Subject)
	require.False(t, subject.Fits)
	require.Nil(t, subject.More)
	require.Contains(t, subject.Summary, "On node-1, the only node: ")
	require.Contains(t, subject.Picture.Caption, "the nearest miss: 8 of 8 requested devices free and match")
	var failed []string
	for _, step := range subject.Steps {
		if step.Failed {
			failed = append(failed, step.Text)
		}
	}
	require.Len(t, failed, 1)
	require.Contains(t, failed[0], "constraint c, line 1, column 49: ")

	text = strings.Replace(claimWith("          expression: 'true'\n"), "count: 2", "count: 8", 1)
	answer = ask[answers.TryAnswer](t, empty(), answers.Try, answers.TryQuestion{Documents: text, Machine: "hgx-h100", Nodes: 3, InUse: 1})
	subject = answer.Subjects[0]
	require.Equal(t, "the nearest miss: 7 of 8 requested devices free and match, and the highlighted devices are in the way: other/node-1.gpu-3", subject.Picture.Caption)
	require.Contains(t, subject.Picture.SVG, ": other/node-1.gpu-3</title>")
	require.Equal(t, answers.Step{Text: "are free, 8 wanted", Left: 7, Failed: true}, subject.Steps[2])
}

func TestTryGroupsAndPlacements(t *testing.T) {
	for _, dir := range []string{"gangs", "placement"} {
		files, err := os.ReadDir("../../../manifests/examples/" + dir)
		require.NoError(t, err)
		for _, file := range files {
			if !strings.HasSuffix(file.Name(), ".yaml") {
				continue
			}
			t.Run(dir+"/"+file.Name(), func(t *testing.T) {
				text := read(t, dir+"/"+file.Name())
				answer := ask[answers.TryAnswer](t, empty(), answers.Try, answers.TryQuestion{Documents: text, Machine: "hgx-h100", Nodes: 4})
				for _, problem := range answer.Problems {
					require.NotContains(t, problem.Message, "unknown field")
				}
				require.Equal(t, strings.Contains(text, "kind: PodGroup\n"), strings.Contains(fmt.Sprint(answer.Subjects), "podgroup default/"))
				for _, subject := range answer.Subjects {
					require.NotEmpty(t, subject.Summary)
					require.NotEmpty(t, subject.Text)
				}
			})
		}
	}
}

// cluster returns a view with two nodes, a running pod, waiting pods and a group.
func cluster(t *testing.T) answers.View {
	view := large(t, 2)
	claims := view.Objects.Claims
	claims[0].Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{{Resource: "pods", Name: "running"}}
	pod := func(name, claim, node string) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, CreationTimestamp: metav1.Unix(1000, 0)},
			Spec: corev1.PodSpec{
				NodeName: node, ResourceClaims: []corev1.PodResourceClaim{{Name: "x", ResourceClaimName: &claim}},
				SchedulingGroup: &corev1.PodSchedulingGroup{PodGroupName: ptr.To("g")},
			},
		}
	}
	waits := pod("waits", "too-large", "")
	waits.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "no devices"}}
	view.Objects.Pods = []*corev1.Pod{waits, pod("running", claims[0].Name, "node-0000"), {ObjectMeta: metav1.ObjectMeta{Name: "plain"}}}
	view.Objects.Groups = []*schedulingapi.PodGroup{{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "g"}, Spec: schedulingapi.PodGroupSpec{
		SchedulingConstraints: &schedulingapi.PodGroupSchedulingConstraints{Topology: []schedulingapi.TopologyConstraint{{Key: "celset.dev/near"}}},
	}}}
	view.Objects.TaintRules = []*resourceapi.DeviceTaintRule{{ObjectMeta: metav1.ObjectMeta{Name: "broken"}, Spec: resourceapi.DeviceTaintRuleSpec{
		DeviceSelector: &resourceapi.DeviceTaintSelector{Pool: ptr.To("node-0001"), Device: ptr.To(view.Objects.Slices[1].Spec.Devices[7].Name)},
		Taint:          resourceapi.DeviceTaint{Key: "broken", Value: "yes", Effect: resourceapi.DeviceTaintEffectNoSchedule},
	}}}
	return view
}

func TestOverview(t *testing.T) {
	answer := ask[answers.OverviewAnswer](t, over(cluster(t)), answers.Overview, struct{}{})
	require.Equal(t, []answers.NodeSummary{
		{Name: "node-0000", Drivers: []string{"gaudi.intel.com"}, Devices: 8, Allocated: 4},
		{Name: "node-0001", Drivers: []string{"gaudi.intel.com"}, Devices: 8, Allocated: 4, Unusable: 1},
	}, answer.Nodes)
	require.Equal(t, []answers.Waiting{
		{Subject: "claim/fits", Namespace: "default"},
		{Subject: "pod/waits", Namespace: "default", Since: "1970-01-01T00:16:40Z", Message: "no devices", Group: "g"},
	}, answer.Waiting)
	require.Equal(t, []answers.GroupSummary{{Name: "g", Namespace: "default", Constraint: "celset.dev/near", Running: 1, Waiting: 1}}, answer.Groups)
	require.Equal(t, "test", answer.Origin)
	require.NotEmpty(t, answer.Machines)
	require.NotNil(t, answer.Placements)
}

func TestNode(t *testing.T) {
	a := over(cluster(t))
	answer := ask[answers.NodeAnswer](t, a, answers.Node, answers.NodeQuestion{Name: "node-0000", Claim: "default/used-node-0000"})
	require.Len(t, answer.Devices, 8)
	require.Equal(t, []answers.Holder{{Claim: "default/used-node-0000", Request: "devices", ReservedFor: []string{"pod/running"}}}, answer.Devices[0].Holders)
	require.NotEmpty(t, answer.Devices[0].Attributes)
	require.Equal(t, 4, strings.Count(answer.SVG, ": default/used-node-0000</title>"))
	require.Contains(t, answer.SVG, "box chosen")
	answer = ask[answers.NodeAnswer](t, a, answers.Node, answers.NodeQuestion{Name: "node-0001"})
	require.Equal(t, []string{"broken=yes:NoSchedule"}, answer.Devices[7].Taints)
	require.NotContains(t, answer.SVG, "box chosen")
}

func TestExplain(t *testing.T) {
	a := over(cluster(t))
	fits := ask[answers.SubjectAnswer](t, a, answers.Explain, answers.ExplainQuestion{Subject: "claim/fits", Namespace: "default"})
	require.Equal(t, "On 1 of 2 nodes.", fits.Summary, "a device of the second node has a taint")
	require.Equal(t, &answers.More{}, fits.More)
	waits := ask[answers.SubjectAnswer](t, a, answers.Explain, answers.ExplainQuestion{Subject: "pod/waits", Namespace: "default"})
	require.False(t, waits.Fits)
	require.Equal(t, "node-0000", waits.Picture.Node, "the node with more free devices is nearer")
	other := ask[answers.SubjectAnswer](t, a, answers.Explain, answers.ExplainQuestion{Subject: "pod/waits", Namespace: "default", Node: "node-0001"})
	require.Equal(t, "node-0001", other.Picture.Node)
	running := ask[answers.SubjectAnswer](t, a, answers.Explain, answers.ExplainQuestion{Subject: "pod/running", Namespace: "default"})
	require.Equal(t, "devices of pod default/running", running.Picture.Caption)
	require.Equal(t, "It has its devices.", running.Summary)
	group := ask[answers.SubjectAnswer](t, a, answers.Explain, answers.ExplainQuestion{Subject: "podgroup/g", Namespace: "default"})
	require.Equal(t, "podgroup default/g", group.Subject)
	require.Equal(t, answers.Failed, group.Verdict)
}

func TestPlacement(t *testing.T) {
	documents, err := clusterstate.Decode("hub", []byte(hubText))
	require.NoError(t, err)
	hub, err := placements.FromDocuments(documents, "default")
	require.NoError(t, err)
	a := over(answers.View{Objects: &clusterstate.Objects{}, Hub: hub})
	question := answers.PlacementQuestion{Namespace: "default", Name: "p"}
	require.Len(t, ask[report.Report](t, a, answers.Placement, question).Candidates, 1)
	question.Without, question.Now = ptr.To(0), "2026-08-01T12:00:00Z"
	without := ask[report.Report](t, a, answers.Placement, question)
	require.Len(t, without.Candidates, 2)
	require.Equal(t, "2026-08-01T12:00:00Z", without.Time.UTC().Format(time.RFC3339))
	overview := ask[answers.OverviewAnswer](t, a, answers.Overview, struct{}{})
	require.Equal(t, []answers.PlacementSummary{{Name: "p", Namespace: "default"}}, overview.Placements)
	explained := ask[answers.SubjectAnswer](t, a, answers.Explain, answers.ExplainQuestion{Subject: "placement/p", Namespace: "default"})
	require.Equal(t, "1 of 2 clusters selected.", explained.Summary)
	require.NotNil(t, explained.Placement)

	// A Placement in documents selects from the clusters of the hub. A cluster in documents replaces the cluster of the hub.
	changed := strings.Replace(hubText[:strings.Index(hubText, "---")], "{region: east}", "{region: west}", 1)
	tried := ask[answers.TryAnswer](t, a, answers.Try, answers.TryQuestion{Documents: changed})
	require.Equal(t, "0 of 2 clusters selected.", tried.Subjects[0].Summary)
	tried = ask[answers.TryAnswer](t, a, answers.Try, answers.TryQuestion{Documents: changed + `---
apiVersion: cluster.open-cluster-management.io/v1
kind: ManagedCluster
metadata: {name: two, labels: {region: west, cluster.open-cluster-management.io/clusterset: all}}
`})
	require.Equal(t, "1 of 2 clusters selected.", tried.Subjects[0].Summary)
}

const hubText = `
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata: {name: p}
spec:
  predicates:
  - requiredClusterSelector: {labelSelector: {matchLabels: {region: east}}}
---
apiVersion: cluster.open-cluster-management.io/v1
kind: ManagedCluster
metadata: {name: one, labels: {region: east, cluster.open-cluster-management.io/clusterset: all}}
---
apiVersion: cluster.open-cluster-management.io/v1
kind: ManagedCluster
metadata: {name: two, labels: {cluster.open-cluster-management.io/clusterset: all}}
---
apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSet
metadata: {name: all}
---
apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSetBinding
metadata: {name: all}
spec: {clusterSet: all}
`

func TestErrors(t *testing.T) {
	a := over(cluster(t))
	for _, c := range []struct{ name, question, want string }{
		{"nothing", "{}", `there is no question "nothing"`},
		{answers.Node, `{"name": "node-0002"}`, `there is no node "node-0002"; did you mean`},
		{answers.Node, `{"name": "node-0001", "claim": "default/none"}`, `there is no claim "default/none"`},
		{answers.Node, `{"name": "node-0001", "nam": 1}`, `the question is not valid: unknown field "nam"`},
		{answers.Node, `{} {}`, "there is text after it"},
		{answers.Node, `{`, "the question is not valid: "},
		{answers.Explain, `{"subject": "claim/none", "namespace": "default"}`, `there is no pod, claim or template "claim/none"`},
		{answers.Explain, `{"subject": "podgroup/none", "namespace": "default"}`, `there is no PodGroup "none"`},
		{answers.Explain, `{"subject": "placement/none", "namespace": "default"}`, "because no hub was read"},
		{answers.Explain, `{"subject": "node/none", "namespace": "default"}`, "must be NAME or pod/NAME"},
		{answers.Explain, `{"subject": "claim/fits", "namespace": "default", "node": "x"}`, `there is no node "x"`},
		{answers.Placement, `{}`, "no hub was read"},
		{answers.Try, `{"machine": "none"}`, `machine "none": must be one of `},
		{answers.Try, `{"machine": "hgx-h100"}`, "nodes: 0: must be from 1 to 200"},
		{answers.Try, `{"machine": "hgx-h100", "nodes": 1, "inUse": -1}`, "inUse: -1: must not be negative"},
	} {
		_, err := a.Answer(t.Context(), c.name, []byte(c.question))
		require.ErrorContains(t, err, c.want, c.question)
	}
}

// TestConcurrently asks questions from several goroutines while the revision changes.
func TestConcurrently(t *testing.T) {
	a := answers.New(&revising{view: cluster(t), revises: true}, answers.Options{Features: features, Timeout: time.Hour})
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 5 {
				for name, question := range map[string]string{
					answers.Overview: "{}", answers.Node: `{"name": "node-0000"}`, answers.Explain: `{"subject": "claim/fits", "namespace": "default"}`,
				} {
					_, err := a.Answer(t.Context(), name, []byte(question))
					assert.NoError(t, err)
				}
			}
		})
	}
	group.Wait()
}
