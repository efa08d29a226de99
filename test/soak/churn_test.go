// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

// churn keeps a number of pods, and exchanges one after the other for a new one.
type churn struct {
	client    kubernetes.Interface
	namespace string
	random    *rand.Rand
	names     []string // of the pods that there are
	problems  []string

	mu        sync.Mutex
	made      int
	created   map[string]time.Time // of pods that have no node yet
	latencies []time.Duration      // from the creation of pods to their nodes, since they were taken
	bound     int
}

func newChurn(client kubernetes.Interface, namespace string) *churn {
	return &churn{client: client, namespace: namespace, random: rand.New(rand.NewPCG(7, 7)), created: map[string]time.Time{}}
}

// watch notices when pods get nodes, until the context ends.
func (c *churn) watch(ctx context.Context) error {
	return watchPods(ctx, c.client, c.namespace, func(_, obj any) { c.notice(obj) })
}

// watchPods has notice be called with pods as they were, nil for new ones, and as they are, until the context
// ends.
func watchPods(ctx context.Context, client kubernetes.Interface, namespace string, notice func(before, obj any)) error {
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace))
	if _, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { notice(nil, obj) },
		UpdateFunc: notice,
	}); err != nil {
		return err
	}
	factory.StartWithContext(ctx)
	factory.WaitForCacheSync(ctx.Done())
	context.AfterFunc(ctx, factory.Shutdown)
	return nil
}

func (c *churn) notice(obj any) {
	pod, ok := obj.(*corev1.Pod)
	if !ok || pod.Spec.NodeName == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if created, waiting := c.created[pod.Name]; waiting {
		delete(c.created, pod.Name)
		c.latencies = append(c.latencies, time.Since(created))
		c.bound++
	}
}

// run makes rate pods a second, and deletes as many once there are target of them.
func (c *churn) run(ctx context.Context, target, rate int) {
	ticker := time.NewTicker(time.Second / time.Duration(rate))
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		err := c.add(ctx)
		if err == nil && len(c.names) > target {
			err = c.remove(ctx)
		}
		if err != nil && ctx.Err() == nil {
			c.problems = append(c.problems, err.Error())
		}
	}
}

func (c *churn) add(ctx context.Context) error {
	k := kinds[c.random.IntN(len(kinds))]
	c.mu.Lock()
	c.made++
	name := fmt.Sprintf("%s-%d", k.name, c.made)
	c.created[name] = time.Now()
	c.mu.Unlock()
	_, err := c.client.CoreV1().Pods(c.namespace).Create(ctx, k.pod(name), metav1.CreateOptions{})
	c.names = append(c.names, name)
	return err
}

// remove deletes any pod. Some of them are on their way to a node.
func (c *churn) remove(ctx context.Context) error {
	at := c.random.IntN(len(c.names))
	if c.random.IntN(20) == 0 {
		at = len(c.names) - 1
	}
	name := c.names[at]
	c.names = slices.Delete(c.names, at, at+1)
	c.mu.Lock()
	delete(c.created, name)
	c.mu.Unlock()
	return c.client.CoreV1().Pods(c.namespace).Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)})
}

// takeLatencies returns those since it was last asked, in ascending order.
func (c *churn) takeLatencies() []time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := c.latencies
	c.latencies = nil
	slices.Sort(taken)
	return taken
}

// counts are the pods that were made so far, those that got nodes, and those that wait.
func (c *churn) counts() (made, bound, waiting int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.made, c.bound, len(c.created)
}
