// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/celset/celset/cmd/kubectl-celset/cli"
	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/test/internal/env"
)

// explained is a pod and the answer that "kubectl celset explain" must give about it.
type explained struct {
	*corev1.Pod
	kind string
	// reason is a text that explain's answer must contain while the pod waits. It is empty if the pod runs.
	reason string
	// before is a text that explain's answer must contain before the pod evicts other pods and runs. It is empty if the pod
	// evicts no pod.
	before string
	// ignored is set if the scheduler does not try the pod: the pod names another scheduler, has a scheduling gate, or lacks a
	// claim.
	ignored bool
	// created changes the pod after its creation. The pod has a scheduling gate until then.
	created func(*corev1.Pod)
}

// TestExplainAgreesWithTheScheduler creates pods that run, and pods that wait for all possible reasons. Before each pod is
// created, explain must predict from a manifest whether it will run. Afterwards explain must report the same about the pod. The
// answer must be yes if and only if the scheduler binds the pod.
//
// The pods never free their resources, so a waiting pod keeps waiting.
func TestExplainAgreesWithTheScheduler(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(cases.Seed(), 7))
	l := newExplainLab(t, random)
	kinds := l.kinds()
	var pods []explained
	for i := range max(len(kinds), cases.Of(len(kinds), 200)) {
		l.number = i
		kind := kinds[i%len(kinds)]
		e := kind.make(t)
		e.kind = kind.name
		if e.created == nil {
			l.predict(t, &e)
		}
		l.create(t, &e)
		pods = append(pods, e)
	}
	l.explainAll(t, pods)
}

// predict runs explain with the manifest of a pod that does not exist yet.
func (l *explainLab) predict(t *testing.T, e *explained) {
	t.Helper()
	pod := e.DeepCopy()
	pod.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	text, err := json.Marshal(pod)
	require.NoError(t, err)
	l.requireExplained(t, e, cmp.Or(e.before, e.reason), text, "-f", "-", "--with-cluster")
}

// requireExplained runs explain, and compares its answer with the expected reason. An empty reason means that the pod fits.
func (l *explainLab) requireExplained(t *testing.T, e *explained, reason string, stdin []byte, args ...string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	args = append([]string{"explain", "pod/" + e.Name, "--kubeconfig=" + cluster.Kubeconfig(), "--namespace=" + l.Namespace}, args...)
	code := cli.Run(t.Context(), args, genericiooptions.IOStreams{In: bytes.NewReader(stdin), Out: &stdout, ErrOut: &stderr})
	want := cli.ExitOK
	if reason != "" {
		want = cli.ExitNegative
	}
	if code != want || !strings.Contains(stdout.String(), reason) {
		t.Errorf("pod %s (%s): exit code %d, want %d and %q\n%s%s", e.Name, e.kind, code, want, reason, &stdout, &stderr)
	}
}

// create creates the pod. If the pod should run, create waits until it is bound.
func (l *explainLab) create(t *testing.T, e *explained) {
	t.Helper()
	if e.created != nil {
		e.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/test"}}
	}
	l.CreatePodAsIs(t, e.Pod)
	if e.created != nil {
		e.created(l.Pod(t, e.Name))
		env.Until(t, "the gate is removed", func(ctx context.Context) (bool, error) {
			pod := l.Pod(t, e.Name)
			pod.Spec.SchedulingGates = nil
			_, err := client().CoreV1().Pods(l.Namespace).Update(ctx, pod, metav1.UpdateOptions{})
			return err == nil, nil
		})
	}
	if e.reason == "" {
		l.EventuallyPod(t, e.Name, "bound ("+e.kind+")", isBound)
	}
}

// explainAll waits until the scheduler has tried all pods, and runs explain for each of them.
func (l *explainLab) explainAll(t *testing.T, pods []explained) {
	for i := range pods {
		e := &pods[i]
		if e.reason != "" && !e.ignored {
			l.EventuallyPod(t, e.Name, "refused ("+e.kind+")", func(_ context.Context, pod *corev1.Pod) (bool, error) { return env.IsRefused(pod), nil })
		}
	}
	next, group := make(chan *explained), sync.WaitGroup{}
	for range 4 {
		group.Go(func() {
			for e := range next {
				l.requireExplained(t, e, e.reason, nil)
			}
		})
	}
	for i := range pods {
		next <- &pods[i]
	}
	close(next)
	group.Wait()
	bound, waiting := 0, 0
	for i := range pods {
		e, pod := &pods[i], l.Pod(t, pods[i].Name)
		if (pod.Spec.NodeName != "") != (e.reason == "") {
			t.Errorf("pod %s (%s) is on node %q, but %q was expected", e.Name, e.kind, pod.Spec.NodeName, e.reason)
		}
		if pod.Spec.NodeName != "" {
			bound++
		} else {
			waiting++
		}
	}
	t.Logf("%d pods of %d kinds: %d are bound, %d wait", len(pods), len(kindNames(pods)), bound, waiting)
	require.Greater(t, bound, len(pods)/8)
	require.Greater(t, waiting, len(pods)/8)
}

func kindNames(pods []explained) (names []string) {
	for i := range pods {
		names = append(names, fmt.Sprint(pods[i].kind))
	}
	slices.Sort(names)
	return slices.Compact(names)
}
