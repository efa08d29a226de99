// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/cmd/kubectl-celset/cli"
	"github.com/celset/celset/test/internal/env"
)

// These tests run the gang examples whose constraints read pods. The API server has no LeaderWorkerSets and JobSets, so the tests
// create the pods that the controllers of these kinds create, with the same labels.

// workload holds the fields of a Job, a LeaderWorkerSet or a JobSet that matter here.
type workload struct {
	Kind     string
	Metadata metav1.ObjectMeta
	Spec     struct {
		SchedulingPolicy struct{ Gang struct{ MinCount int } }

		Replicas             int
		LeaderWorkerTemplate struct {
			Size                           int
			LeaderTemplate, WorkerTemplate corev1.PodTemplateSpec
		}
		ReplicatedJobs []struct {
			Name     string
			Replicas int
			Template batchv1.JobTemplateSpec
		}
	}
}

// fromTemplate creates a pod of a workload and returns its name.
func (l *nodes) fromTemplate(t *testing.T, name string, template *corev1.PodTemplateSpec, labels map[string]string) string {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: *template.Spec.DeepCopy()}
	pod.Name, pod.Labels = name, maps.Clone(template.Labels)
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	maps.Copy(pod.Labels, labels)
	l.CreatePodAsIs(t, pod)
	return name
}

// expand creates the pods of a workload whose controller does not run.
func (l *nodes) expand(t *testing.T, w *workload) {
	t.Helper()
	switch w.Kind {
	case "LeaderWorkerSet":
		of := &w.Spec.LeaderWorkerTemplate
		for group := range w.Spec.Replicas {
			for worker := range of.Size {
				template := &of.WorkerTemplate
				if worker == 0 {
					template = &of.LeaderTemplate
				}
				l.fromTemplate(t, fmt.Sprintf("%s-%d-%d", w.Metadata.Name, group, worker), template, map[string]string{
					"leaderworkerset.sigs.k8s.io/group-index": strconv.Itoa(group), workerIndex: strconv.Itoa(worker),
				})
			}
		}
	case "JobSet":
		global := 0
		for _, of := range w.Spec.ReplicatedJobs {
			for job := range of.Replicas {
				for i := range *of.Template.Spec.Completions {
					l.fromTemplate(t, fmt.Sprintf("%s-%s-%d-%d", w.Metadata.Name, of.Name, job, i), &of.Template.Spec.Template, map[string]string{
						"jobset.sigs.k8s.io/replicatedjob-name": of.Name, "jobset.sigs.k8s.io/job-index": strconv.Itoa(job),
						"jobset.sigs.k8s.io/job-global-index": strconv.Itoa(global), completionIndex: strconv.Itoa(int(i)),
					})
				}
				global++
			}
		}
	}
}

// run applies an example, waits until as many pods run as the PodGroup needs, and compares with kubectl. The result maps the numbers
// of nodes to their pods.
func (l *nodes) run(t *testing.T, example string) map[int]*corev1.Pod {
	t.Helper()
	content, err := os.ReadFile(env.Manifest(t, "examples", "gangs", example))
	require.NoError(t, err)
	var apply []string
	var others []*workload
	pods, group := 0, ""
	for _, document := range strings.Split(string(content), "\n---\n") {
		w := &workload{}
		require.NoError(t, yaml.Unmarshal([]byte(document), w))
		switch w.Kind {
		case "PodGroup":
			pods, group = w.Spec.SchedulingPolicy.Gang.MinCount, w.Metadata.Name
			apply = append(apply, document)
		case "Job":
			apply = append(apply, document)
		default:
			others = append(others, w)
		}
	}
	file := filepath.Join(t.TempDir(), example)
	require.NoError(t, os.WriteFile(file, []byte(strings.Join(apply, "\n---\n")), 0o600))
	_, err = l.Kubectl(t, l.Namespace, "apply", "-f", file)
	require.NoError(t, err)
	for _, w := range others {
		l.expand(t, w)
	}
	return l.running(t, group, pods)
}

// running waits until a number of pods of a group run on different nodes.
func (l *nodes) running(t *testing.T, group string, count int) map[int]*corev1.Pod {
	t.Helper()
	var on map[int]*corev1.Pod
	env.Eventually(t, "the pods run", func(ctx context.Context) (string, error) {
		on = map[int]*corev1.Pod{}
		list, err := l.Client().CoreV1().Pods(l.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return "", err
		}
		for i := range list.Items {
			pod := &list.Items[i]
			if pod.Spec.SchedulingGroup != nil && *pod.Spec.SchedulingGroup.PodGroupName == group && pod.Spec.NodeName != "" && pod.DeletionTimestamp == nil {
				on[slices.Index(l.Nodes, pod.Spec.NodeName)] = pod
			}
		}
		if len(on) != count {
			return fmt.Sprintf("%d of %d pods run", len(on), count), nil
		}
		return "", nil
	})
	require.Contains(t, l.celset(t, cli.ExitOK, "explain", "podgroup/"+group), "which satisfy the constraint")
	return on
}

// racksOf returns the numbers of the racks of the pods with a label. Racks have size nodes.
func racksOf(on map[int]*corev1.Pod, size int, pairs ...string) []int {
	racks := map[int]bool{}
	for node, pod := range on {
		matches := true
		for i := 0; i < len(pairs); i += 2 {
			matches = matches && pod.Labels[pairs[i]] == pairs[i+1]
		}
		if matches {
			racks[node/size] = true
		}
	}
	return slices.Sorted(maps.Keys(racks))
}

// TestExampleOfPrefillAndDecode runs the example on two racks with two leaf switches each.
func TestExampleOfPrefillAndDecode(t *testing.T) {
	l := newNodes(t, "example-prefill", 32, func(i int) map[string]string {
		return map[string]string{"example.com/rack": fmt.Sprint(i / 16), "example.com/leaf": fmt.Sprint(i / 8)}
	})
	l.occupy(t, 4, 5, 6, 7, 12, 13, 14, 15, 29)
	on := l.run(t, "prefill-decode.yaml")
	require.Equal(t, []int{2}, racksOf(on, 8, "role", "decode"))
	require.Equal(t, []int{3}, racksOf(on, 8, "role", "prefill"))
}

// TestExampleOfLeaderAndWorkers runs the example on racks with one node for leaders each.
func TestExampleOfLeaderAndWorkers(t *testing.T) {
	l := newNodes(t, "example-leader", 15, func(i int) map[string]string {
		return map[string]string{"example.com/rack": fmt.Sprint(i / 5), "example.com/type": []string{"cpu", "gpu", "gpu", "gpu", "gpu"}[i%5]}
	})
	l.occupy(t, 5, 11)
	on := l.run(t, "leader-workers.yaml")
	for group := range 2 {
		require.Len(t, racksOf(on, 5, "leaderworkerset.sigs.k8s.io/group-index", strconv.Itoa(group)), 1)
		require.Equal(t, "0", on[group*10].Labels[workerIndex])
	}
	require.Equal(t, []int{0, 2}, racksOf(on, 5))
}

// TestExampleOfSegments runs the example on racks with eighteen nodes each. The pods are created in parallel.
func TestExampleOfSegments(t *testing.T) {
	l := newNodes(t, "example-segments", 54, func(i int) map[string]string { return map[string]string{"nvidia.com/gpu.clique": fmt.Sprint(i / 18)} })
	l.occupy(t, 0, 1, 2)
	on := l.run(t, "segments.yaml")
	for segment := range 4 {
		racks := map[int]bool{}
		for node, pod := range on {
			if rank, err := strconv.Atoi(pod.Labels[completionIndex]); err == nil && rank/8 == segment {
				racks[node/18] = true
			}
		}
		require.Len(t, racks, 1, "segment %d", segment)
	}
}

// TestExampleOfAJobSet runs the example on racks with room for one job each.
func TestExampleOfAJobSet(t *testing.T) {
	l := newNodes(t, "example-jobset", 18, func(i int) map[string]string { return map[string]string{"example.com/rack": fmt.Sprint(i / 6)} })
	l.occupy(t, 0, 1, 2, 6)
	on := l.run(t, "jobset.yaml")
	for job := range 2 {
		require.Len(t, racksOf(on, 6, "jobset.sigs.k8s.io/replicatedjob-name", "workers", "jobset.sigs.k8s.io/job-index", strconv.Itoa(job)), 1)
	}
}

// TestExampleOfSpareNodes runs the example on domains with spare nodes. The pod of a node that dies must get a spare node.
func TestExampleOfSpareNodes(t *testing.T) {
	l := newNodes(t, "example-spare", 20, func(i int) map[string]string {
		labels := map[string]string{"nvidia.com/gpu.clique": fmt.Sprint(i / 10)}
		if i%10 < 2 {
			labels["example.com/spare"] = "true"
		}
		return labels
	})
	l.occupy(t, 5)
	on := l.run(t, "spare.yaml")
	require.Equal(t, []int{12, 13, 14, 15, 16, 17, 18, 19}, slices.Sorted(maps.Keys(on)))
	dead := on[14]
	l.dies(t, dead.Name)
	on = l.running(t, "train-spare", 8)
	require.NotNil(t, on[10], "the first spare node of the domain")
	require.Equal(t, dead.Labels[completionIndex], on[10].Labels[completionIndex])
}
