// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	schedulerconfig "k8s.io/kube-scheduler/config/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/internal/controlplane"
	"github.com/celset/celset/plugin"
)

// configured is a scheduler, and the policy that stands for it in simulation.
type configured struct {
	name, policy string
	keepWhole    bool
	// inOrder has the scheduler take the first of several nodes, as the policy does: pods prefer nodes in
	// their order, and nothing else but preferences for devices has a part in the score. Otherwise
	// scores are those of the manifests.
	inOrder bool
}

// schedulers are those that traces are replayed on.
var schedulers = []configured{
	{name: "manifests", policy: Today},
	{name: "manifests, KeepWhole", policy: KeepWholeTies, keepWhole: true},
	{name: "nodes in order", policy: FirstFit, inOrder: true},
	{name: "nodes in order, KeepWhole", policy: KeepWhole, keepWhole: true, inOrder: true},
}

// config is the configuration in manifests with what is different.
func (c configured) config(t *testing.T) []byte {
	t.Helper()
	root, err := controlplane.ModuleRoot()
	require.NoError(t, err)
	content, err := os.ReadFile(filepath.Join(root, "manifests", "scheduler", "config.yaml"))
	require.NoError(t, err)
	config := &schedulerconfig.KubeSchedulerConfiguration{}
	require.NoError(t, yaml.UnmarshalStrict(content, config))
	profile := &config.Profiles[len(config.Profiles)-1]
	if c.keepWhole {
		args := map[string]any{}
		require.NoError(t, json.Unmarshal(profile.PluginConfig[0].Args.Raw, &args))
		args["defaultPreference"] = v1alpha1.PolicyKeepWhole
		raw, err := json.Marshal(args)
		require.NoError(t, err)
		profile.PluginConfig[0].Args = runtime.RawExtension{Raw: raw}
	}
	if c.inOrder {
		profile.Plugins = profile.Plugins.DeepCopy()
		profile.Plugins.Score = schedulerconfig.PluginSet{
			// Different values of a preference are at least one of its hundred points apart.
			Enabled:  []schedulerconfig.Plugin{{Name: "NodeAffinity", Weight: ptr.To[int32](1)}, {Name: plugin.PreferenceName, Weight: ptr.To[int32](200)}},
			Disabled: []schedulerconfig.Plugin{{Name: "*"}},
		}
	}
	config.LeaderElection.LeaderElect = ptr.To(false)
	config.ClientConnection.QPS, config.ClientConnection.Burst = 1000, 2000
	// Whoever waits is tried again at once.
	config.PodInitialBackoffSeconds, config.PodMaxBackoffSeconds = ptr.To[int64](1), ptr.To[int64](1)
	content, err = yaml.Marshal(config)
	require.NoError(t, err)
	return content
}

// affinity prefers nodes in their order.
func (c configured) affinity(nodes []string) *corev1.Affinity {
	if !c.inOrder {
		return nil
	}
	preferred := &corev1.NodeAffinity{}
	for i, name := range nodes {
		preferred.PreferredDuringSchedulingIgnoredDuringExecution = append(preferred.PreferredDuringSchedulingIgnoredDuringExecution, corev1.PreferredSchedulingTerm{
			Weight: int32(len(nodes) - i),
			Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{
				Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{name},
			}}},
		})
	}
	return &corev1.Affinity{NodeAffinity: preferred}
}

// expects compares with the policy: the node and the devices if it goes through nodes in order, and
// otherwise the devices of the node that was taken.
func (c configured) expects(t *testing.T, m *Machine, nodes int) func(free []Set, size int, got placement) (bool, error) {
	t.Helper()
	chooses := choosing{machine: m, nodes: nodes, remembers: map[string]opener{}}
	if c.inOrder {
		p, err := chooses.policy(c.policy, nil)
		require.NoError(t, err)
		return func(free []Set, size int, got placement) (bool, error) {
			node, set, err := p.place(free, size)
			return node == got.node && set == got.set, err
		}
	}
	open, err := chooses.opener(c.policy, rand.New(rand.NewPCG(1, 1)))
	require.NoError(t, err)
	choose, err := open(nil)
	require.NoError(t, err)
	return func(free []Set, size int, got placement) (bool, error) {
		chosen, err := choose(got.node, free[got.node], size)
		return chosen.set == got.set, err
	}
}

// stage is a control plane with nodes of one kind.
type stage struct {
	*controlplane.ControlPlane
	machine *Machine
	nodes   []string
}

// newStage starts one, without anybody who runs pods.
func newStage(t *testing.T, m *Machine, nodes int) *stage {
	t.Helper()
	cp, err := controlplane.Start(t.Context(), controlplane.Options{
		DataDir: t.TempDir(), Progress: os.Stderr, SkipKwok: true, Controllers: []string{"resourceclaim-controller"},
		ControllerManagerArgs: []string{"--kube-api-qps=500", "--kube-api-burst=500"},
	})
	require.NoError(t, err)
	t.Cleanup(cp.Stop)
	s := &stage{ControlPlane: cp, machine: m}
	client, ctx := cp.Client(), t.Context()
	class, err := m.class(nil)
	require.NoError(t, err)
	_, err = client.ResourceV1().DeviceClasses().Create(ctx, class, metav1.CreateOptions{})
	require.NoError(t, err)
	s.nodes, err = controlplane.CreateNodes(ctx, client, nodes, controlplane.NodeOptions{Static: true})
	require.NoError(t, err)
	for _, name := range s.nodes {
		published, err := m.Topology.ResourceSlices(name)
		require.NoError(t, err)
		for _, slice := range published {
			_, err = client.ResourceV1().ResourceSlices().Create(ctx, slice, metav1.CreateOptions{})
			require.NoError(t, err)
		}
	}
	// A claim of each size, which nobody uses: the scheduler knows all shapes from the beginning, as
	// those of the simulation do.
	s.namespace(t, "asked")
	for _, c := range m.constraints {
		claim := m.claim(c.size)
		claim.Namespace = "asked"
		_, err := client.ResourceV1().ResourceClaims("asked").Create(ctx, claim, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	return s
}

func (s *stage) namespace(t *testing.T, name string) {
	t.Helper()
	_, err := s.Client().CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	require.NoError(t, err)
}

// replay has a scheduler that was just started replay a trace.
func (s *stage) replay(t *testing.T, c configured, trace *Trace, name string) (Outcome, *scheduled) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	scheduler, err := s.StartScheduler(ctx, controlplane.SchedulerOptions{
		Name: "celset-scheduler-" + name, Config: c.config(t), FeatureGates: map[string]bool{v1alpha1.FeatureGate: true},
	})
	require.NoError(t, err)
	defer scheduler.Stop()
	s.namespace(t, name)
	q := &scheduled{
		client: s.Client(), machine: s.machine, namespace: name, profile: "celset-scheduler", nodes: map[string]int{},
		affinity: c.affinity(s.nodes), expects: c.expects(t, s.machine, len(s.nodes)),
		places: map[string]int{}, sizes: map[int]int{}, placed: map[int]placement{},
	}
	for i, node := range s.nodes {
		q.nodes[node] = i
		q.free = append(q.free, s.machine.all())
	}
	for i, d := range s.machine.Topology.Devices {
		q.places[d.Name] = i
	}
	require.NoError(t, q.follow(ctx))
	outcome, err := runOn(q, len(s.nodes)*s.machine.all().len(), trace)
	require.NoError(t, err, "%s, %s", s.machine.Name, c.name)
	require.NoError(t, q.end())
	require.NoError(t, scheduler.Err())
	return outcome, q
}

// total is how many claims were placed at once, and in all.
func total(o Outcome) string {
	atOnce, placed, claims := 0, 0, 0
	for _, tally := range o.Sizes {
		atOnce, placed, claims = atOnce+tally.AtOnce, placed+tally.Placed, claims+tally.Claims
	}
	return fmt.Sprintf("%d at once, %d placed of %d", atOnce, placed, claims)
}
