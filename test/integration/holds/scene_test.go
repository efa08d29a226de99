// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package holds

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/metrics/testutil"
	schedulerconfig "k8s.io/kube-scheduler/config/v1"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/internal/crossing"
	"github.com/celset/celset/test/internal/env"
	"github.com/celset/celset/test/internal/minor"
)

// grace is the grace period of pods in seconds. It must be less than the time limit of a hold. The grace period itself has no
// effect, because the test ends deleted pods.
const grace = 240

// A scene is a lab with its own scheduler and its own profiles.
type scene struct {
	*env.Lab
	*testing.T
	form   form
	driver string
	// ours is the name of the scheduler's profile with our plugin, stock of the profile with upstream's. They are unique to
	// this scene.
	ours, stock string

	scheduler *controlplane.Process
	crossing  *crossing.Crossing
	starts    int

	// mutex guards the fields that the watch writes.
	mutex sync.Mutex
	// evictions maps the UID of each pod that a scheduler has evicted to the pod's name.
	evictions map[types.UID]string
}

// newScene creates nodes with the devices of a form, and starts a scheduler.
func newScene(t *testing.T, name string, nodes int, f form, options ...option) *scene {
	t.Helper()
	minor.Needs(t, f.gates...)
	t.Parallel()
	s := &scene{Lab: cluster(t).NewLab(t, name, nodes), T: t, form: f, evictions: map[types.UID]string{}}
	s.driver = s.Family("d").Driver
	s.ours, s.stock = env.CelsetProfile+"-"+s.Namespace, env.StockProfile+"-"+s.Namespace
	s.CreateClass(t, s.driver)
	for _, node := range s.Nodes {
		for _, slice := range f.resourceSlices(s.driver, node) {
			s.CreateSlice(t, slice)
		}
	}
	s.watch()
	t.Cleanup(s.clear)
	s.start(options...)
	return s
}

// start starts a scheduler. Its requests to the API server go through a proxy, s.crossing, that can stop or reject them.
func (s *scene) start(options ...option) {
	s.Helper()
	config, err := s.RESTConfigFor(env.Scheduler.Name)
	require.NoError(s, err)
	c, err := crossing.New(config)
	require.NoError(s, err)
	s.starts++
	process := s.StartScheduler(s, controlplane.SchedulerOptions{
		// Use the binary that was built with the cluster. Running go build for each scene would take longer than most scenes.
		Binary: s.Binary(controlplane.CelsetScheduler),
		Name:   fmt.Sprintf("%s-%d", s.Namespace, s.starts), Config: schedulerConfig(s, append([]option{s.named}, options...)...),
		Kubeconfig: env.Kubeconfig(s, c.URL()), Args: []string{"--v=3"},
		FeatureGates: minor.SchedulerGates(map[string]bool{"CelsetDevicePreemption": true}),
	})
	s.Cleanup(func() {
		process.Kill()
		c.Close()
	})
	s.scheduler, s.crossing = process, c
}

// named gives the profiles names that are unique to this scene.
func (s *scene) named(config *schedulerconfig.KubeSchedulerConfiguration) {
	config.Profiles[0].SchedulerName, ours(config).SchedulerName = &s.stock, &s.ours
}

// kill kills the scheduler. Writes that the proxy has stopped never reach the API server.
func (s *scene) kill() {
	s.scheduler.Kill()
	s.crossing.Close()
}

// watch records the evictions of pods until the test ends.
func (s *scene) watch() {
	s.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	factory := informers.NewSharedInformerFactoryWithOptions(s.Client(), 0, informers.WithNamespace(s.Namespace))
	note := func(object any) {
		if pod, is := object.(*corev1.Pod); is {
			s.note(pod)
		}
	}
	_, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: note, UpdateFunc: func(_, object any) { note(object) }, DeleteFunc: note,
	})
	require.NoError(s, err)
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	s.Cleanup(func() {
		cancel()
		factory.Shutdown()
	})
}

// note records the pod if it is being deleted because a scheduler preempted it.
func (s *scene) note(pod *corev1.Pod) {
	isTarget := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue && c.Reason == corev1.PodReasonPreemptionByScheduler
	})
	if pod.DeletionTimestamp == nil || !isTarget {
		return
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.evictions[pod.UID] = pod.Name
}

// evicted returns the sorted names of the pods that schedulers have evicted so far.
func (s *scene) evicted() []string {
	s.Helper()
	// The watch may not have seen the latest evictions, so list the pods.
	for _, pod := range s.allPods(s.Context()) {
		s.note(&pod)
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	names := []string{}
	for _, name := range s.evictions {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (s *scene) pods() typedcorev1.PodInterface { return s.Client().CoreV1().Pods(s.Namespace) }

func (s *scene) allPods(ctx context.Context) []corev1.Pod {
	s.Helper()
	pods, err := s.pods().List(ctx, metav1.ListOptions{})
	require.NoError(s, err)
	return pods.Items
}

// clear deletes all pods, so that no later scheduler tries them.
func (s *scene) clear() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_ = s.Client().AppsV1().ReplicaSets(s.Namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
	for _, pod := range s.allPods(ctx) {
		if len(pod.Finalizers) > 0 {
			pod.Finalizers = nil
			_, _ = s.pods().Update(ctx, &pod, metav1.UpdateOptions{})
		}
		_ = s.pods().Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)})
	}
}

// pod creates a pod that uses the named claims.
func (s *scene) pod(name string, claims []string, requests ...request) {
	s.Helper()
	pod := env.Pod(name, s.ours, claims...)
	pod.Spec.NodeSelector = map[string]string{env.LabLabel: s.Namespace}
	pod.Spec.TerminationGracePeriodSeconds = ptr.To[int64](grace)
	for _, change := range requests {
		change(pod)
	}
	s.CreatePodAsIs(s, pod)
}

// run creates a claim, and a pod of the same name that uses it.
func (s *scene) run(name string, parts []env.Part, requests ...request) {
	s.Helper()
	s.CreateClaim(s, name, parts...)
	s.pod(name, []string{name}, requests...)
}

// occupy creates a pod of a PriorityClass that uses the i-th unit of a node.
func (s *scene) occupy(name, node string, i int, class string) {
	s.Helper()
	s.run(name, s.form.unit(s.driver, i), of(class), on(node))
	s.RequireRunning(s, name)
}

// ending waits until the pods are being deleted.
func (s *scene) ending(names ...string) {
	s.Helper()
	for _, name := range names {
		s.EventuallyPod(s, name, "ending", func(_ context.Context, pod *corev1.Pod) (bool, error) { return pod.DeletionTimestamp != nil, nil })
	}
}

// end ends the pods, as a kubelet does when their containers have stopped.
func (s *scene) end(names ...string) {
	s.Helper()
	for _, name := range names {
		require.NoError(s, s.pods().Delete(s.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}))
	}
}

// isBound reports whether a pod is bound to a node.
func (s *scene) isBound(name string) bool {
	s.Helper()
	return s.Pod(s, name).Spec.NodeName != ""
}

// refusedOrBound waits until the scheduler has tried each of the pods at least once.
func (s *scene) refusedOrBound(names ...string) {
	s.Helper()
	for _, name := range names {
		s.EventuallyPod(s, name, "refused or bound", func(_ context.Context, pod *corev1.Pod) (bool, error) {
			return pod.Spec.NodeName != "" || env.IsRefused(pod), nil
		})
	}
}

// requireKept waits until the scheduler has tried the pods two more times, and requires that it has bound none of them.
func (s *scene) requireKept(names ...string) {
	s.Helper()
	s.refusedOrBound(names...)
	s.requireUnbound(names...)
	s.tryAgain(2, names...)
	s.requireUnbound(names...)
}

func (s *scene) requireUnbound(names ...string) {
	s.Helper()
	for _, name := range names {
		require.False(s, s.isBound(name), "pod %s got devices that are held for another pod", name)
	}
}

// requireEvicted requires that schedulers have evicted exactly these pods.
func (s *scene) requireEvicted(names ...string) {
	s.Helper()
	slices.Sort(names)
	require.Equal(s, append([]string{}, names...), s.evicted(), "evicted pods")
}

// requireNothingHeld waits until the scheduler holds no devices, and requires that no pod's condition records held devices.
func (s *scene) requireNothingHeld() {
	s.Helper()
	env.Eventually(s, "nothing is held", func(ctx context.Context) (string, error) {
		if holds := s.metric("celset_scheduler_device_holds"); holds != 0 {
			return fmt.Sprintf("%v holds", holds), nil
		}
		for _, pod := range s.allPods(ctx) {
			for _, c := range pod.Status.Conditions {
				if strings.HasPrefix(string(c.Type), "celset.dev/") && c.Status == corev1.ConditionTrue {
					return fmt.Sprintf("pod %s has condition %s: %s", pod.Name, c.Type, c.Message), nil
				}
			}
		}
		return "", nil
	})
}

// requireNoneInVain requires that each preemptor was bound after pods were evicted for it.
func (s *scene) requireNoneInVain() {
	s.Helper()
	require.Zero(s, s.metric("celset_scheduler_device_preemption_victims_without_bind_total"), "pods that were evicted in vain")
}

// metric returns the value of a metric of the scheduler, summed over all samples with the given label values.
func (s *scene) metric(name string, labels ...string) float64 {
	s.Helper()
	content, err := s.scheduler.Get(s.Context(), "/metrics")
	require.NoError(s, err)
	families, err := testutil.TextToMetricFamilies(bytes.NewReader(content))
	require.NoError(s, err)
	sum := 0.
	for _, metric := range families[name].GetMetric() {
		var values []string
		for _, pair := range metric.GetLabel() {
			values = append(values, pair.GetValue())
		}
		if slices.ContainsFunc(labels, func(label string) bool { return !slices.Contains(values, label) }) {
			continue
		}
		sum += metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
	}
	return sum
}

// logged returns the number of lines in the scheduler's log that contain all of the texts.
func (s *scene) logged(texts ...string) (n int) {
	s.Helper()
	content, err := os.ReadFile(s.scheduler.LogFile())
	require.NoError(s, err)
	for line := range strings.Lines(string(content)) {
		if env.ContainsAll(line, texts) {
			n++
		}
	}
	return n
}

// awaitLog waits until the scheduler's log has a line with the message and the pod.
func (s *scene) awaitLog(message, pod string) {
	s.Helper()
	env.Eventually(s, fmt.Sprintf("the scheduler logs %q for pod %s", message, pod), func(context.Context) (string, error) {
		if s.logged(message, fmt.Sprintf("=%q", s.Namespace+"/"+pod)) == 0 {
			return "it has not", nil
		}
		return "", nil
	})
}

// tries returns how many scheduling attempts of a pod have begun.
func (s *scene) tries(name string) int {
	s.Helper()
	return s.logged(`"Attempting to schedule pod"`, fmt.Sprintf("pod=%q", s.Namespace+"/"+name))
}

// tryAgain waits until the scheduler has completed n more attempts for each of the pods that is not bound. It triggers attempts
// by publishing devices that the pods don't need.
func (s *scene) tryAgain(n int, names ...string) {
	s.Helper()
	pokes := time.NewTicker(300 * time.Millisecond)
	defer pokes.Stop()
	// An attempt and its evictions have ended when the next attempt begins.
	before := map[string]int{}
	for _, name := range names {
		before[name] = s.tries(name)
	}
	env.Eventually(s, fmt.Sprintf("pods %v are tried %d times more", names, n), func(ctx context.Context) (string, error) {
		select {
		case <-pokes.C:
			if err := s.poke(ctx); err != nil {
				return "", err
			}
		default:
		}
		for _, name := range names {
			if tries := s.tries(name) - before[name]; tries <= n && !s.isBound(name) {
				return fmt.Sprintf("the scheduler has begun to try pod %s %d times", name, tries), nil
			}
		}
		return "", nil
	})
}

// poke publishes a device that no pod needs. The scheduler then tries the pods that wait for devices again.
func (s *scene) poke(ctx context.Context) error {
	slices := s.Client().ResourceV1().ResourceSlices()
	name := s.Namespace + "-other"
	slice, err := slices.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		s.CreateSlice(s, resourceSlicesNamed(name, "other."+s.driver, s.Nodes[0]))
		return nil
	}
	if err != nil {
		return err
	}
	slice.Spec.Pool.Generation++
	_, err = slices.Update(ctx, slice, metav1.UpdateOptions{})
	return err
}

func resourceSlicesNamed(name, driver, node string) *resourceapi.ResourceSlice {
	slice := resourceSlicesOf(driver, node, resourceapi.ResourceSliceSpec{Devices: row(0, 1)})[0]
	slice.Name = name
	return slice
}
